#include "common/data/volume/resample.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace traind {
namespace {

std::vector<LinearPlace> PlacesOf(int64_t from, int64_t to) {
  std::vector<LinearPlace> places;
  for (int64_t i = 0; i < to; ++i) places.push_back(LinearPlaceOf(i, from, to));
  return places;
}

// out: [count].
void Blend(const float* low, const float* high, float share_of_high, int64_t count, float* out) {
  const float share_of_low = 1 - share_of_high;
  for (int64_t i = 0; i < count; ++i) out[i] = share_of_low * low[i] + share_of_high * high[i];
}

}  // namespace

LinearPlace LinearPlaceOf(int64_t index, int64_t from, int64_t to) {
  const double ratio = static_cast<double>(from) / static_cast<double>(to);
  const double at = std::max(0.0, (static_cast<double>(index) + 0.5) * ratio - 0.5);
  LinearPlace place;
  place.low = std::min(static_cast<int64_t>(at), from - 1);
  place.high = place.low;
  const auto share = static_cast<float>(at - static_cast<double>(place.low));
  if (share > 0 && place.low + 1 < from) {
    place.high = place.low + 1;
    place.share_of_high = share;
  }
  return place;
}

SliceResampler::SliceResampler(const VolumeShape& from, const VolumeShape& to, int64_t values)
    : from_(from),
      to_(to),
      values_(values),
      rows_(PlacesOf(from.height, to.height)),
      columns_(PlacesOf(from.width, to.width)),
      row_(static_cast<size_t>(from.width * values)),
      between_(static_cast<size_t>(to.height * to.width * values)) {
  for (std::vector<float>& slice : resized_) slice.resize(between_.size());
}

void SliceResampler::Resize(const float* slice, std::vector<float>& out) {
  const int64_t width = from_.width * values_;
  float* to = out.data();
  for (const LinearPlace& y : rows_) {
    Blend(slice + y.low * width, slice + y.high * width, y.share_of_high, width, row_.data());
    for (const LinearPlace& x : columns_) {
      Blend(row_.data() + x.low * values_, row_.data() + x.high * values_, x.share_of_high, values_,
            to);
      to += values_;
    }
  }
}

absl::Status SliceResampler::Add(absl::Span<const float> slice, const Take& take) {
  Resize(slice.data(), resized_[static_cast<size_t>(added_ % 2)]);
  ++added_;
  for (; done_ < to_.depth; ++done_) {
    const LinearPlace z = LinearPlaceOf(done_, from_.depth, to_.depth);
    if (z.high >= added_) break;
    const std::vector<float>& low = resized_[static_cast<size_t>(z.low % 2)];
    const std::vector<float>& high = resized_[static_cast<size_t>(z.high % 2)];
    Blend(low.data(), high.data(), z.share_of_high, static_cast<int64_t>(between_.size()),
          between_.data());
    RETURN_IF_ERROR(take(between_));
  }
  return absl::OkStatus();
}

}  // namespace traind
