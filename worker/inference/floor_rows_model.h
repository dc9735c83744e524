// The floor of a Job, ready to predict rows that come later.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "worker/floor/floor_model.h"
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

}  // namespace traind
