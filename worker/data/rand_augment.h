// RandAugment (Cubuk, Zoph, Shlens, Le 2020): several changes of an image, drawn from a list, with
// one strength for all. Changes and strengths are torchvision's.
#pragma once

#include <absl/types/span.h>

#include <cstdint>

#include "worker/data/random.h"

namespace traind {

enum class ImageChange {
  kNone,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColour,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
};
inline constexpr int kImageChanges = 14;

// The strength of a change at a magnitude of 0 to 30, without its sign: a shear, pixels, degrees, a
// share of brightness, colour, contrast or sharpness, bits that are left, or the least value that
// is inverted. 0 for changes that have none.
double StrengthOf(ImageChange change, int magnitude, int64_t size);
// Whether either sign of the strength is drawn.
bool HasSign(ImageChange change);

// Changes the bytes of an image [size, size, channels] in place. What comes from outside it is 0.
void ChangeImage(ImageChange change, double strength, int64_t size, int64_t channels,
                 absl::Span<uint8_t> pixels);

// Draws `count` changes and applies them one after the other.
void RandAugment(int count, int magnitude, int64_t size, int64_t channels, Random& random,
                 absl::Span<uint8_t> pixels);

}  // namespace traind
