// Products of bf16 matrices by the tiles of AMX (Intel's Advanced Matrix Extensions), for
// packed_half_layer.h.
#pragma once

#include <cstdint>

#include "worker/model/kernels/bf16.h"

namespace traind {

constexpr int64_t kHalfPanel = 32;  // columns of a panel of weights

// Rows of bf16 values have this length. What they have beyond their columns is 0.
inline int64_t HalfWidth(int64_t columns) {
  return (columns + kHalfPanel - 1) / kHalfPanel * kHalfPanel;
}

// A fully connected layer as PackedHalfLayer packs it. Does not own what it points to.
struct HalfPanels {
  const Bf16* weights;  // [panels, in / 2, kHalfPanel, 2]
  const float* bias;    // [panels, kHalfPanel]
  int64_t out, in;      // in: HalfWidth of the layer's inputs
};

// Whether the processor has tiles and the operating system lets this process use them. The first
// call asks for that.
// Threads: safe to call from any.
bool HasHalfTiles();

// y = max(0, x W^T + b). x: [rows, in], y: [rows, HalfWidth(out)].
// REQUIRES: HasHalfTiles(). Threads: safe to call from any.
void TilesRelu(const HalfPanels& layer, const Bf16* x, int64_t rows, Bf16* y);
// y [rows, out] = x W^T + b.
// REQUIRES: HasHalfTiles().
void Tiles(const HalfPanels& layer, const Bf16* x, int64_t rows, float* y);

}  // namespace traind
