// A fold's model, ready to predict rows that come later.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "worker/data/row_encoder.h"
#include "worker/inference/rows_file.h"
#include "worker/predict/model_file.h"

namespace traind {

// Loads and runs one model, of whatever kind. Threads: confined to one.
class TrainedModel {
 public:
  // dir: the folder of the Attempt that trained the model, relative to the state folder. Loads
  // the newest sound checkpoint there.
  // Errors: FailedPrecondition: it is a forecast, or an older engine left no model.json;
  // NotFound: there is no checkpoint; those of ReadModelFile and of reading checkpoints.
  static absl::StatusOr<std::unique_ptr<TrainedModel>> Load(const std::string& state_dir,
                                                            const std::string& dir, int threads);
  virtual ~TrainedModel() = default;

  const InputSchema& input() const { return file_.input; }
  // The format of the rows' images; null: rows have none.
  const ImageFields* image() const {
    return file_.pixel_scale.mean.empty() ? nullptr : &file_.image;
  }
  const std::string& table_sha256() const { return file_.table_sha256; }
  int64_t attempt() const { return attempt_; }  // the Attempt that trained it
  double epoch() const { return epoch_; }       // the epoch of what predicts
  int64_t step() const { return step_; }        // the step of the checkpoint

  // Rows are predicted in blocks. Blocks whose size is a multiple of this number give, bit by
  // bit, the same result.
  int64_t RowsPerStep() const { return rows_per_step_; }
  // Predicts rows begin..end-1. out: float32 [end - begin, outputs], probabilities or values.
  // REQUIRES: rows have images if image() is not null.
  virtual absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end,
                               absl::Span<float> out) = 0;

 protected:
  explicit TrainedModel(ModelFile file) : file_(std::move(file)), encoder_(file_.encoder) {}

  const ModelFile file_;
  const RowEncoder encoder_;
  int64_t attempt_ = 0;
  double epoch_ = 0;
  int64_t step_ = 0;
  int64_t rows_per_step_ = kRowsPerBlock;
};

}  // namespace traind
