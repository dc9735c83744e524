// Mixup (Zhang, Cisse, Dauphin, Lopez-Paz 2018) and CutMix (Yun and others 2019): training on
// mixtures of two samples.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace traind {

// Draws the larger share of a mixture, 0.5-1, from Beta(alpha, alpha). It
// follows from the seed alone.
// REQUIRES: 0 < alpha <= 1.
double MixupShare(double alpha, uint64_t seed);

// Mixes row i of x [B, ...] with row B - 1 - i: `share` of the former, the rest of the latter.
at::Tensor Mixed(const at::Tensor& x, double share);

// A rectangle of images, and the share of the pixels that are outside it.
struct CutBox {
  int64_t top = 0, left = 0, height = 0, width = 0;
  double share = 1;
};
// Draws a rectangle of the smaller share of a mixture from Beta(alpha, alpha), around a pixel that
// is drawn evenly; what lies beyond the image is cut off. It follows from the seed alone.
// REQUIRES: 0 < alpha <= 1.
CutBox DrawCut(double alpha, uint64_t seed, int64_t height, int64_t width);

// The rectangle of row i of x [B, C, H, W] becomes that of row B - 1 - i.
at::Tensor CutFromOthers(const at::Tensor& x, const CutBox& box);

// Whether a batch that may be mixed in both ways is cut; half of them are.
bool TossForCut(uint64_t seed);

}  // namespace traind
