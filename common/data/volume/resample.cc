#include "common/data/volume/resample.h"

#include <algorithm>
#include <cmath>

#include "common/base/status_macros.h"

namespace traind {
namespace {

// Half of a Gaussian's weights, from its middle on; all of them sum to 1.
std::vector<double> HalfGaussian(double deviation) {
  constexpr double kCutAt = 4;
  const auto radius = static_cast<size_t>(kCutAt * deviation + 0.5);
  std::vector<double> weights;
  double sum = 0;
  for (size_t i = 0; i <= radius; ++i) {
    const double at = static_cast<double>(i) / deviation;
    weights.push_back(std::exp(-0.5 * at * at));
    sum += (i == 0 ? 1 : 2) * weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Where voxel `index` of an axis of `to` voxels lies: between two of `from`, or at one.
AxisTaps LinearTaps(int64_t index, int64_t from, int64_t to) {
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  const double at = std::max(0.0, (static_cast<double>(index) + 0.5) * ratio - 0.5);
  const int64_t low = std::min(static_cast<int64_t>(at), from - 1);
  const auto share = static_cast<float>(at - static_cast<double>(low));
  if (share > 0 && low + 1 < from) return {low, {1 - share, share}};
  return {low, {1}};
}

// The taps of the blurred voxels that `taps` takes.
AxisTaps Blurred(const AxisTaps& taps, const std::vector<double>& half, int64_t from) {
  const auto radius = static_cast<int64_t>(half.size()) - 1;
  const auto count = static_cast<int64_t>(taps.weights.size());
  const auto inside = [from](int64_t at) { return std::clamp<int64_t>(at, 0, from - 1); };
  const int64_t first = inside(taps.first - radius), last = inside(taps.first + count - 1 + radius);
  std::vector<double> sums(static_cast<size_t>(last - first + 1));
  for (int64_t k = 0; k < count; ++k) {
    for (int64_t away = -radius; away <= radius; ++away) {
      sums[static_cast<size_t>(inside(taps.first + k + away) - first)] +=
          taps.weights[static_cast<size_t>(k)] * half[static_cast<size_t>(std::abs(away))];
    }
  }
  return {first, std::vector<float>(sums.begin(), sums.end())};
}

size_t MostTaps(const std::vector<AxisTaps>& axis) {
  size_t most = 0;
  for (const AxisTaps& taps : axis) most = std::max(most, taps.weights.size());
  return most;
}

// out: [count], the sum of the weighted vectors, of which of(k) is the k-th.
template <class Of>
void Join(const std::vector<float>& weights, const Of& of, int64_t count, float* out) {
  const float* const only = of(size_t{0});
  for (int64_t i = 0; i < count; ++i) out[i] = weights[0] * only[i];
  for (size_t k = 1; k < weights.size(); ++k) {
    const float* const next = of(k);
    const float weight = weights[k];
    for (int64_t i = 0; i < count; ++i) out[i] += weight * next[i];
  }
}

}  // namespace

std::vector<AxisTaps> TapsOf(int64_t from, int64_t to, LowPass low_pass) {
  std::vector<AxisTaps> axis;
  for (int64_t i = 0; i < to; ++i) axis.push_back(LinearTaps(i, from, to));
  if (low_pass == LowPass::kNone || to >= from) return axis;
  const double factor = static_cast<double>(from) / static_cast<double>(to);
  const std::vector<double> half = HalfGaussian((factor - 1) / 2);
  for (AxisTaps& taps : axis) taps = Blurred(taps, half, from);
  return axis;
}

SliceResampler::SliceResampler(const VolumeShape& from, const VolumeShape& to, int64_t values,
                               LowPass low_pass)
    : from_width_(from.width),
      values_(values),
      slices_(TapsOf(from.depth, to.depth, low_pass)),
      rows_(TapsOf(from.height, to.height, low_pass)),
      columns_(TapsOf(from.width, to.width, low_pass)),
      resized_(MostTaps(slices_)),
      row_(static_cast<size_t>(from.width * values)),
      joined_(static_cast<size_t>(to.height * to.width * values)) {
  for (std::vector<float>& slice : resized_) slice.resize(joined_.size());
}

void SliceResampler::Resize(const float* slice, std::vector<float>& out) {
  const int64_t width = from_width_ * values_;
  float* to = out.data();
  for (const AxisTaps& y : rows_) {
    const auto row = [&](size_t k) { return slice + (y.first + static_cast<int64_t>(k)) * width; };
    Join(y.weights, row, width, row_.data());
    for (const AxisTaps& x : columns_) {
      const auto voxel = [&](size_t k) {
        return row_.data() + (x.first + static_cast<int64_t>(k)) * values_;
      };
      Join(x.weights, voxel, values_, to);
      to += values_;
    }
  }
}

absl::Status SliceResampler::Add(absl::Span<const float> slice, const Take& take) {
  const size_t held = resized_.size();
  Resize(slice.data(), resized_[static_cast<size_t>(added_) % held]);
  ++added_;
  for (; done_ < slices_.size(); ++done_) {
    const AxisTaps& z = slices_[done_];
    const auto first = static_cast<size_t>(z.first);
    if (first + z.weights.size() > static_cast<size_t>(added_)) break;
    const auto resized = [&](size_t k) { return resized_[(first + k) % held].data(); };
    Join(z.weights, resized, static_cast<int64_t>(joined_.size()), joined_.data());
    RETURN_IF_ERROR(take(joined_));
  }
  return absl::OkStatus();
}

}  // namespace traind
