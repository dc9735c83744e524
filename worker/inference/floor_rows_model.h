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

// What floors of all kinds share: they come from no Attempt. Model has `input` and `table_sha256`.
// Threads: confined to one.
template <typename Model>
class AnyFloorRowsModel : public RowModel {
 public:
  explicit AnyFloorRowsModel(Model model) : model_(std::move(model)) {}

  const InputSchema& input() const override { return model_.input; }
  const ImageFields* image() const override { return nullptr; }
  const std::string& table_sha256() const override { return model_.table_sha256; }
  int64_t attempt() const override { return 0; }
  double epoch() const override { return 0; }
  int64_t step() const override { return 0; }

 protected:
  const Model model_;
};

// The floor of a table. Threads: confined to one.
class FloorRowsModel : public AnyFloorRowsModel<FloorModel> {
 public:
  explicit FloorRowsModel(FloorModel model)
      : AnyFloorRowsModel(std::move(model)), layout_(model_.input.features) {}

  int64_t RowsPerStep() const override { return 256; }
  absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end,
                       absl::Span<float> out) override;

 private:
  const FloorLayout layout_;
};

// The floor of a forecast. Threads: confined to one.
class SeriesFloorRowsModel : public AnyFloorRowsModel<SeriesFloorModel> {
 public:
  using AnyFloorRowsModel::AnyFloorRowsModel;

  const SeriesInput* series() const override { return &model_.series; }
  int64_t RowsPerStep() const override { return kRowsPerBlock; }
  absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end,
                       absl::Span<float> out) override;
  absl::StatusOr<std::vector<float>> Forecast(std::shared_ptr<const Table> later) override {
    return model_.Predict(*later);
  }
};

// The floor of volumes. Threads: confined to one.
class VolumeFloorRowsModel : public AnyFloorRowsModel<VolumeFloorModel> {
 public:
  using AnyFloorRowsModel::AnyFloorRowsModel;

  int64_t RowsPerStep() const override { return kRowsPerBlock; }
  absl::Status Predict(const LaterRows& rows, int64_t begin, int64_t end,
                       absl::Span<float> out) override;
  absl::Status PredictVolumes(std::shared_ptr<const VolumeSet> volumes, const TakeValues& take,
                              const std::function<absl::Status()>& between) override;
};

}  // namespace traind
