#include "worker/learner/body_features.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "worker/learner/resident_rows.h"

namespace traind {
namespace {

at::Tensor IndexOf(absl::Span<const int32_t> rows, c10::Device device) {
  return ToDevice(std::vector<int32_t>(rows.begin(), rows.end()),
                  {static_cast<int64_t>(rows.size())}, device)
      .to(at::kLong);
}

}  // namespace

void BodyFeatures::Reset(int64_t rows, int64_t width, c10::Device device) {
  Clear();
  if (rows * width > kMostBytes / static_cast<int64_t>(sizeof(float))) return;
  // Memory that no row is written to is not taken from the machine.
  values_ = at::empty({rows, width}, at::TensorOptions(device).dtype(at::kFloat));
  known_.assign(static_cast<size_t>(rows), false);
}

void BodyFeatures::Clear() {
  values_.reset();
  known_.clear();
}

std::vector<int32_t> BodyFeatures::Missing(absl::Span<const int32_t> rows) const {
  std::vector<int32_t> missing;
  for (const int32_t row : rows) {
    if (!known_[static_cast<size_t>(row)]) missing.push_back(row);
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  return missing;
}

void BodyFeatures::Put(absl::Span<const int32_t> rows, const at::Tensor& values) {
  values_.index_copy_(0, IndexOf(rows, values_.device()), values);
  for (const int32_t row : rows) known_[static_cast<size_t>(row)] = true;
}

at::Tensor BodyFeatures::Get(absl::Span<const int32_t> rows) const {
  return values_.index_select(0, IndexOf(rows, values_.device()));
}

}  // namespace traind
