// Pixels in the form that a network takes: normalised and, in training, augmented.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace traind {

// Converts a byte to (byte - mean) x inverse_scale, per channel: [channels].
struct PixelScale {
  std::vector<float> mean, inverse_scale;
};

// Returns the scale that gives each channel mean 0 and standard deviation 1 over the given
// rows; a constant channel becomes 0. pixels: [rows, stride], with `channels` values per pixel.
// The sums are integers, so the order of the rows does not matter.
PixelScale FitPixelScale(const uint8_t* pixels, int64_t stride, int64_t channels,
                         absl::Span<const int32_t> rows);

// Random changes that leave what an image shows recognisable (AugmentSpec in proto/job.proto).
struct Augmentation {
  bool flip = false;
  double crop = 0;                           // fraction of the size
  double colour = 0;                         // fraction of brightness, contrast and saturation
  int rand_changes = 0, rand_magnitude = 0;  // of RandAugment

  bool any() const { return flip || crop > 0 || colour > 0 || rand_changes > 0; }
};

// Writes images as float32 pixels. Threads: immutable.
class PixelWriter {
 public:
  // For images [size, size, channels].
  PixelWriter(int64_t size, int64_t channels, const PixelScale& scale);

  // out: [size, size, channels].
  void Write(const uint8_t* pixels, float* out) const;
  // Writes an augmented image. The changes follow from the seed alone.
  void WriteChanged(const uint8_t* pixels, const Augmentation& augmentation, uint64_t seed,
                    float* out) const;

 private:
  const int64_t size_, channels_;
  std::vector<float> factor_, offset_;  // [size x channels], for one line
};

}  // namespace traind
