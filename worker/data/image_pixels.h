// Pixels as a network takes them: normalised, and changed a little while it trains.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace traind {

// How bytes become numbers: (byte - mean) x inverse_scale, [channels].
struct PixelScale {
  std::vector<float> mean, inverse_scale;
};

// pixels: [rows, stride], of `channels` each. The scale makes each channel's mean 0 and its
// standard deviation 1 over the rows named; a constant channel is all 0. Sums are whole
// numbers: the same for any order of the rows.
PixelScale FitPixelScale(const uint8_t* pixels, int64_t stride, int64_t channels,
                         absl::Span<const int32_t> rows);

// Changes that leave what an image shows as it is (AugmentSpec in proto/job.proto).
struct Augmentation {
  bool flip = false;
  double crop = 0;    // share of the size
  double colour = 0;  // share of brightness, contrast and saturation

  bool any() const { return flip || crop > 0 || colour > 0; }
};

// Threads: immutable.
class PixelWriter {
 public:
  // Of images [size, size, channels].
  PixelWriter(int64_t size, int64_t channels, const PixelScale& scale);

  // out: [size, size, channels].
  void Write(const uint8_t* pixels, float* out) const;
  // The same image changed; how follows from the seed alone.
  void WriteChanged(const uint8_t* pixels, const Augmentation& augmentation, uint64_t seed,
                    float* out) const;

 private:
  const int64_t size_, channels_;
  std::vector<float> factor_, offset_;  // [size x channels], of a line
};

}  // namespace traind
