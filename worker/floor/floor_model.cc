#include "worker/floor/floor_model.h"

#include <algorithm>

namespace traind {

void FloorFold::Predict(const DesignRows& rows, size_t outputs, absl::Span<float> out) const {
  if (scales.empty()) return models.front().Predict(rows, out);
  std::vector<float> values(rows.rows);
  for (size_t target = 0; target < outputs; ++target) {
    models[target].Predict(rows, absl::MakeSpan(values));
    const ValueScale& scale = scales[target];
    for (size_t row = 0; row < rows.rows; ++row) {
      const auto value = static_cast<float>(values[row] * scale.deviation + scale.mean);
      out[row * outputs + target] = std::min(std::max(value, scale.low), scale.high);
    }
  }
}

Link FloorModel::LinkOf(const InputSchema& input) {
  if (input.target_kind != TargetKind::kClasses) return Link::kIdentity;
  return input.classes.size() == 2 ? Link::kLogistic : Link::kSoftmax;
}

size_t FloorModel::OutputsOf(const InputSchema& input) {
  return LinkOf(input) == Link::kSoftmax ? input.classes.size() : 1;
}

void FloorModel::Predict(const FloorLayout& layout, const FloorRows& from,
                         absl::Span<const size_t> rows, absl::Span<float> out) const {
  const size_t outputs = input.outputs();
  if (folds.empty()) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = prior[i % outputs];
    return;
  }
  std::fill(out.begin(), out.end(), 0.0f);
  const float part = 1.0f / static_cast<float>(folds.size());
  DesignRows design;
  std::vector<float> predicted(out.size());
  for (const FloorFold& fold : folds) {
    fold.encoder.Encode(layout, from, rows, design);
    fold.Predict(design, outputs, absl::MakeSpan(predicted));
    for (size_t i = 0; i < out.size(); ++i) out[i] += part * predicted[i];
  }
}

}  // namespace traind
