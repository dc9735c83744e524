#include "common/data/volume/sliding_window.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr float kLeastWeight = 1e-3f;

std::vector<float> AxisWeights(int64_t extent) {
  std::vector<float> weights;
  const double middle = static_cast<double>(extent - 1) / 2;
  const double deviation = std::max(1e-6, static_cast<double>(extent) / 8);
  for (int64_t i = 0; i < extent; ++i) {
    const double distance = (static_cast<double>(i) - middle) / deviation;
    weights.push_back(static_cast<float>(std::exp(-0.5 * distance * distance)));
  }
  return weights;
}

// Weighted sums over a few slices of the volume, moving along its depth.
class Slab {
 public:
  Slab(const SlidingWindow& window, std::vector<float> weights)
      : window_(window),
        plane_(window.volume[1] * window.volume[2]),
        depth_(std::min(window.patch[0], window.volume[0])),
        weights_(std::move(weights)),
        sum_(static_cast<size_t>(depth_ * plane_ * window.values)),
        weight_(static_cast<size_t>(depth_ * plane_)) {}

  int64_t begin() const { return begin_; }

  // Adds one patch. answer: [values, patch].
  void Add(const Extent3& begin, const float* answer) {
    const Extent3& patch = window_.patch;
    const int64_t values = window_.values, voxels = Volume(patch);
    const int64_t rows = std::min(patch[1], window_.volume[1] - begin[1]);
    const int64_t columns = std::min(patch[2], window_.volume[2] - begin[2]);
    for (int64_t z = 0; z < depth_; ++z) {
      for (int64_t y = 0; y < rows; ++y) {
        const int64_t from = (z * patch[1] + y) * patch[2];
        const int64_t to =
            (begin[0] + z - begin_) * plane_ + (begin[1] + y) * window_.volume[2] + begin[2];
        const float* weights = weights_.data() + from;
        float* sum = sum_.data() + to * values;
        float* weight = weight_.data() + to;
        for (int64_t x = 0; x < columns; ++x) weight[x] += weights[x];
        for (int64_t c = 0; c < values; ++c) {
          const float* of_value = answer + c * voxels + from;
          for (int64_t x = 0; x < columns; ++x) sum[x * values + c] += weights[x] * of_value[x];
        }
      }
    }
  }

  // Hands over the slices before `z`, which no later patch touches.
  absl::Status MoveTo(int64_t z, const ReceiveSlices& take) {
    const int64_t slices = std::min(z - begin_, depth_);
    const auto voxels = static_cast<size_t>(slices * plane_);
    const auto values = static_cast<size_t>(window_.values);
    for (size_t i = 0; i < voxels; ++i) {
      for (size_t c = 0; c < values; ++c) sum_[i * values + c] /= weight_[i];
    }
    RETURN_IF_ERROR(take(begin_, slices, absl::MakeConstSpan(sum_).first(voxels * values)));
    for (const auto& [part, gone] :
         {std::make_pair(&sum_, voxels * values), std::make_pair(&weight_, voxels)}) {
      std::move(part->begin() + static_cast<ptrdiff_t>(gone), part->end(), part->begin());
      std::fill(part->end() - static_cast<ptrdiff_t>(gone), part->end(), 0.0f);
    }
    begin_ = z;
    return absl::OkStatus();
  }

 private:
  const SlidingWindow& window_;
  const int64_t plane_, depth_;
  const std::vector<float> weights_;
  std::vector<float> sum_, weight_;
  int64_t begin_ = 0;
};

}  // namespace

std::vector<int64_t> WindowBegins(int64_t extent, int64_t patch, int64_t step) {
  if (patch >= extent) return {0};
  const int64_t last = extent - patch;
  const int64_t steps = (last + step - 1) / step;
  std::vector<int64_t> begins;
  for (int64_t i = 0; i <= steps; ++i) begins.push_back((last * i + steps / 2) / steps);
  return begins;
}

std::vector<float> GaussianWeights(const Extent3& patch) {
  std::vector<float> weights;
  weights.reserve(static_cast<size_t>(Volume(patch)));
  const std::vector<float> by_z = AxisWeights(patch[0]), by_y = AxisWeights(patch[1]),
                           by_x = AxisWeights(patch[2]);
  float most = 0;
  for (const float z : by_z) {
    for (const float y : by_y) {
      for (const float x : by_x) {
        weights.push_back(z * y * x);
        most = std::max(most, weights.back());
      }
    }
  }
  for (float& weight : weights) weight = std::max(weight / most, kLeastWeight);
  return weights;
}

absl::Status PredictBySlidingWindow(const SlidingWindow& window, const PredictPatches& predict,
                                    const ReceiveSlices& take) {
  std::array<std::vector<int64_t>, 3> begins;
  for (size_t axis = 0; axis < 3; ++axis) {
    begins[axis] = WindowBegins(window.volume[axis], window.patch[axis],
                                std::max<int64_t>(1, window.patch[axis] / 2));
  }
  Slab slab(window, GaussianWeights(window.patch));
  const auto patch = static_cast<size_t>(Volume(window.patch) * window.values);
  std::vector<float> answers(patch * static_cast<size_t>(window.at_once));
  for (const int64_t z : begins[0]) {
    if (z > 0) RETURN_IF_ERROR(slab.MoveTo(z, take));
    std::vector<Extent3> layer;
    for (const int64_t y : begins[1]) {
      for (const int64_t x : begins[2]) layer.push_back({z, y, x});
    }
    for (size_t at = 0; at < layer.size(); at += static_cast<size_t>(window.at_once)) {
      const auto part = absl::MakeConstSpan(layer).subspan(at, static_cast<size_t>(window.at_once));
      RETURN_IF_ERROR(predict(part, absl::MakeSpan(answers).first(part.size() * patch)));
      for (size_t i = 0; i < part.size(); ++i) slab.Add(part[i], answers.data() + i * patch);
    }
  }
  return slab.MoveTo(window.volume[0], take);
}

}  // namespace traind
