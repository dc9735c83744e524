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
#include "worker/inference/row_model.h"
#include "worker/inference/rows_file.h"
#include "worker/predict/model_file.h"

namespace traind {

// Loads and runs one model, of whatever kind. Threads: confined to one.
class TrainedModel : public RowModel {
 public:
  // dir: the folder of the Attempt that trained the model, relative to the state folder. Loads
  // the newest sound checkpoint there.
  // Errors: FailedPrecondition: it is a forecast without a horizon, or an older engine left no
  // model.json or not all that a forecast needs;
  // NotFound: there is no checkpoint; those of ReadModelFile and of reading checkpoints.
  static absl::StatusOr<std::unique_ptr<TrainedModel>> Load(const std::string& state_dir,
                                                            const std::string& dir, int threads);

  const InputSchema& input() const override { return file_.input; }
  const ImageFields* image() const override {
    return file_.pixel_scale.mean.empty() ? nullptr : &file_.image;
  }
  const SeriesInput* series() const override {
    return file_.series.has_value() ? &*file_.series : nullptr;
  }
  const std::string& table_sha256() const override { return file_.table_sha256; }
  int64_t attempt() const override { return attempt_; }
  double epoch() const override { return epoch_; }
  int64_t step() const override { return step_; }

  int64_t RowsPerStep() const override { return rows_per_step_; }

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
