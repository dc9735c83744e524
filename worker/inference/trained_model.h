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

// Loads and runs one model. Threads: confined to one. Errors: those of its Learner.
class TrainedModel {
 public:
  // dir: the folder of the Attempt that trained the model, relative to the state folder. Loads
  // the newest sound checkpoint there.
  // Errors: FailedPrecondition: it is a forecast, or an older engine left no model.json;
  // NotFound: there is no checkpoint; those of ReadModelFile and ReadCheckpoint.
  static absl::StatusOr<std::unique_ptr<TrainedModel>> Load(const std::string& state_dir,
                                                            const std::string& dir);

  const InputSchema& input() const { return file_.input; }
  // The format of the rows' images; null: rows have none.
  const ImageFields* image() const {
    return file_.pixel_scale.mean.empty() ? nullptr : &file_.image;
  }
  const std::string& table_sha256() const { return file_.table_sha256; }
  int64_t attempt() const { return attempt_; }  // the Attempt that trained it
  double epoch() const { return epoch_; }       // the epoch of the weights
  int64_t step() const { return step_; }        // the step of the checkpoint

  // Rows are predicted in blocks. Blocks whose size is a multiple of this number give, bit by
  // bit, the same result.
  int64_t RowsPerStep() const { return rows_per_step_; }
  // Predicts rows begin..end-1. out: float32 [end - begin, outputs], probabilities or values.
  // REQUIRES: rows have images if image() is not null.
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
