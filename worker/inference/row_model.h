// A model that predicts rows which come later: that of a fold, or the floor.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/data/image/image_fields.h"
#include "common/data/table/feature_reader.h"
#include "common/data/table/folds.h"
#include "common/data/table/series_input.h"
#include "common/data/table/table.h"
#include "common/data/volume/volume_input.h"
#include "common/data/volume/volume_set.h"
#include "worker/inference/inference_spec.h"
#include "worker/inference/rows_file.h"

namespace traind {

using TakeValues = std::function<absl::Status(absl::Span<const float> values)>;

// Threads: confined to one.
class RowModel {
 public:
  virtual ~RowModel() = default;

  virtual const InputSchema& input() const = 0;
  // The format of the rows' images; null: rows have none.
  virtual const ImageFields* image() const = 0;
  virtual const std::string& table_sha256() const = 0;
  virtual int64_t attempt() const = 0;  // the Attempt that trained it; 0: the floor
  virtual double epoch() const = 0;     // the epoch of the weights
  virtual int64_t step() const = 0;     // the step of the checkpoint

  // The series that it forecasts; null: rows do not depend on earlier ones.
  virtual const SeriesInput* series() const { return nullptr; }

  // Rows are predicted in blocks. Blocks whose size is a multiple of this number give, bit by
  // bit, the same result.
  virtual int64_t RowsPerStep() const = 0;
  // Predicts rows begin..end-1. out: float32 [end - begin, outputs], probabilities or values.
  // REQUIRES: rows have images if image() is not null.
  virtual absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end,
                               absl::Span<float> out) = 0;
  // The memory, in bytes, of one more instance that predicts other rows on another thread; 0: there
  // is no use for one.
  virtual int64_t InstanceBytes() const { return 0; }
  // From now on few rows come at a time: float32 is then the quickest, whatever the fold answered
  // in.
  virtual void AnswerFewRows() {}
  // Predicts the test rows of a table (ReadLaterSeries) from its training rows. Returns
  // [test rows, outputs]. REQUIRES: series() is not null.
  virtual absl::StatusOr<std::vector<float>> Forecast(std::shared_ptr<const Table> /*later*/) {
    return absl::InternalError("the model does not forecast");
  }
  // Predicts test volumes, one after the other, and hands over their values in the order of voxels,
  // [some voxels, volumes.values()]. between: called after each part of the work. Errors: those of
  // `take` and `between`, too. REQUIRES: the model's input is volumes.
  virtual absl::Status PredictVolumes(std::shared_ptr<const VolumeSet> /*volumes*/,
                                      const TakeValues& /*take*/,
                                      const std::function<absl::Status()>& /*between*/) {
    return absl::InternalError("the model predicts no volumes");
  }
};

// The columns that a model reads, and what they belong to.
struct RowModelInput {
  InputSchema schema;
  ImageFields image;
  bool has_images = false;
  std::optional<VolumeInput> volume;  // none: rows are no volumes
  std::optional<SeriesInput> series;
  SampleShape shape;  // of a forecast's samples
  std::string table_sha256;
};

// Reads a model's input without its weights. Errors: those of ReadModelFile and ReadFloorModel.
absl::StatusOr<RowModelInput> ReadRowModelInput(const std::string& state_dir,
                                                const ModelChoice& model);

// Errors: those of TrainedModel::Load and ReadFloorModel; FailedPrecondition: the floor was made
// by an older engine, or predicts no other rows.
absl::StatusOr<std::unique_ptr<RowModel>> LoadRowModel(const std::string& state_dir,
                                                       const ModelChoice& model, int threads);

}  // namespace traind
