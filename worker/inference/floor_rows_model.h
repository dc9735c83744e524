// The floor of a Job, ready to predict rows that come later.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "worker/floor/floor_model.h"
#include "worker/floor/series_floor_model.h"
#include "worker/floor/volume_floor_model.h"
#include "worker/inference/row_model.h"

namespace traind {

// Threads: confined to one.
class FloorRowsModel : public RowModel {
 public:
  explicit FloorRowsModel(FloorModel model)
      : model_(std::move(model)), layout_(model_.input.features) {}

  const InputSchema& input() const override { return model_.input; }
  const ImageFields* image() const override { return nullptr; }
  const std::string& table_sha256() const override { return model_.table_sha256; }
  int64_t attempt() const override { return 0; }
  double epoch() const override { return 0; }
  int64_t step() const override { return 0; }
  int64_t RowsPerStep() const override { return 256; }
  absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end,
                       absl::Span<float> out) override;

 private:
  const FloorModel model_;
  const FloorLayout layout_;
};

// The floor of a forecast. Threads: confined to one.
class SeriesFloorRowsModel : public RowModel {
 public:
  explicit SeriesFloorRowsModel(SeriesFloorModel model) : model_(std::move(model)) {}

  const InputSchema& input() const override { return model_.input; }
  const ImageFields* image() const override { return nullptr; }
  const SeriesInput* series() const override { return &model_.series; }
  const std::string& table_sha256() const override { return model_.table_sha256; }
  int64_t attempt() const override { return 0; }
  double epoch() const override { return 0; }
  int64_t step() const override { return 0; }
  int64_t RowsPerStep() const override { return kRowsPerBlock; }
  absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end,
                       absl::Span<float> out) override;
  absl::StatusOr<std::vector<float>> Forecast(std::shared_ptr<const Table> later) override {
    return model_.Predict(*later);
  }

 private:
  const SeriesFloorModel model_;
};

// The floor of volumes. Threads: confined to one.
class VolumeFloorRowsModel : public RowModel {
 public:
  explicit VolumeFloorRowsModel(VolumeFloorModel model) : model_(std::move(model)) {}

  const InputSchema& input() const override { return model_.input; }
  const ImageFields* image() const override { return nullptr; }
  const std::string& table_sha256() const override { return model_.table_sha256; }
  int64_t attempt() const override { return 0; }
  double epoch() const override { return 0; }
  int64_t step() const override { return 0; }
  int64_t RowsPerStep() const override { return kRowsPerBlock; }
  absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end,
                       absl::Span<float> out) override;
  absl::Status PredictVolumes(std::shared_ptr<const VolumeSet> volumes, const TakeValues& take,
                              const std::function<absl::Status()>& between) override;

 private:
  const VolumeFloorModel model_;
};

}  // namespace traind
