#include "worker/inference/row_model.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/base/status_macros.h"
#include "worker/floor/floor_model_file.h"
#include "worker/inference/floor_rows_model.h"
#include "worker/inference/trained_model.h"
#include "worker/predict/model_file.h"

namespace traind {
namespace {

bool IsFloor(const ModelChoice& model) { return model.fold < 0; }

absl::StatusOr<FloorModel> ReadFloor(const std::string& state_dir, const ModelChoice& model) {
  absl::StatusOr<FloorModel> floor = ReadFloorModel(absl::StrCat(state_dir, "/", model.dir));
  if (absl::IsNotFound(floor.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat(model.dir, " has no model of the floor: it predicts no other rows"));
  }
  return floor;
}

absl::StatusOr<SeriesFloorModel> ReadSeriesFloor(const std::string& state_dir,
                                                 const ModelChoice& model) {
  return ReadSeriesFloorModel(absl::StrCat(state_dir, "/", model.dir));
}

absl::StatusOr<VolumeFloorModel> ReadVolumeFloor(const std::string& state_dir,
                                                 const ModelChoice& model) {
  return ReadVolumeFloorModel(absl::StrCat(state_dir, "/", model.dir));
}

}  // namespace

absl::StatusOr<RowModelInput> ReadRowModelInput(const std::string& state_dir,
                                                const ModelChoice& model) {
  RowModelInput input;
  if (IsFloor(model)) {
    auto forecast = ReadSeriesFloor(state_dir, model);
    if (forecast.ok()) {
      input.schema = std::move(forecast->input);
      input.series = std::move(forecast->series);
      input.shape = forecast->shape;
      input.table_sha256 = std::move(forecast->table_sha256);
      return input;
    }
    if (!absl::IsNotFound(forecast.status())) return forecast.status();
    auto volumes = ReadVolumeFloor(state_dir, model);
    if (volumes.ok()) {
      input.schema = std::move(volumes->input);
      input.volume = std::move(volumes->volume);
      input.table_sha256 = std::move(volumes->table_sha256);
      return input;
    }
    if (!absl::IsNotFound(volumes.status())) return volumes.status();
    ASSIGN_OR_RETURN(FloorModel floor, ReadFloor(state_dir, model));
    input.schema = std::move(floor.input);
    input.table_sha256 = std::move(floor.table_sha256);
    return input;
  }
  ASSIGN_OR_RETURN(ModelFile file, ReadModelFile(state_dir, model.dir));
  input.schema = std::move(file.input);
  input.has_images = !file.pixel_scale.mean.empty();
  input.image = std::move(file.image);
  input.volume = std::move(file.volume);
  input.series = std::move(file.series);
  input.shape = file.encoder.shape;
  input.table_sha256 = std::move(file.table_sha256);
  return input;
}

absl::StatusOr<std::unique_ptr<RowModel>> LoadRowModel(const std::string& state_dir,
                                                       const ModelChoice& model, int threads) {
  if (!IsFloor(model)) return TrainedModel::Load(state_dir, model.dir, threads);
  auto forecast = ReadSeriesFloor(state_dir, model);
  if (forecast.ok()) return std::make_unique<SeriesFloorRowsModel>(*std::move(forecast));
  if (!absl::IsNotFound(forecast.status())) return forecast.status();
  auto volumes = ReadVolumeFloor(state_dir, model);
  if (volumes.ok()) return std::make_unique<VolumeFloorRowsModel>(*std::move(volumes));
  if (!absl::IsNotFound(volumes.status())) return volumes.status();
  ASSIGN_OR_RETURN(FloorModel floor, ReadFloor(state_dir, model));
  return std::make_unique<FloorRowsModel>(std::move(floor));
}

}  // namespace traind
