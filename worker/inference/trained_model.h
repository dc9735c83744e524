// A fold's model, ready to predict rows that come later.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/data/text/tokenizer.h"
#include "worker/data/row_encoder.h"
#include "worker/inference/rows_file.h"
#include "worker/learner/learner.h"
#include "worker/predict/model_file.h"

namespace traind {

// Threads: confined to one.
class TrainedModel {
 public:
  // dir: of the Attempt that trained it, relative to the state folder. The newest sound
  // checkpoint there counts. FailedPrecondition: it forecasts, or an older engine left no
  // model.json; NotFound: no checkpoint; else as of ReadModelFile and ReadCheckpoint.
  static absl::StatusOr<std::unique_ptr<TrainedModel>> Load(const std::string& state_dir,
                                                            const std::string& dir);

  const InputSchema& input() const { return file_.input; }
  // Of the images that rows have; null: they have none.
  const ImageFields* image() const {
    return file_.pixel_scale.mean.empty() ? nullptr : &file_.image;
  }
  const std::string& table_sha256() const { return file_.table_sha256; }
  int64_t attempt() const { return attempt_; }  // that trained it
  double epoch() const { return epoch_; }       // of the weights
  int64_t step() const { return step_; }        // of the checkpoint

  // Cutting a block of rows every so many changes no bit of what is predicted.
  int64_t RowsPerStep() const { return rows_per_step_; }
  // Rows begin..end-1. out: float32 [end - begin, outputs]: probabilities, or values.
  // REQUIRES: rows have images where input() does.
  absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end, absl::Span<float> out);

 private:
  explicit TrainedModel(ModelFile file) : file_(std::move(file)), encoder_(file_.encoder) {}
  absl::Status CreateLearner(const std::string& state_dir);
  absl::Status LoadWeights(const std::string& state_dir, const std::string& dir);

  const ModelFile file_;
  const RowEncoder encoder_;
  std::unique_ptr<const Tokenizer> tokenizer_;  // null: rows have no texts
  int64_t max_tokens_ = 0;
  std::string architecture_, optimizer_;
  std::unique_ptr<Learner> learner_;
  int64_t attempt_ = 0;
  double epoch_ = 0;
  int64_t step_ = 0;
  int64_t rows_per_step_ = kRowsPerBlock;
};

}  // namespace traind
