// Products of bf16 matrices by the tiles of AMX (Intel's Advanced Matrix Extensions), for
// packed_half_layer.h.
#pragma once

#include <cstdint>

#include "worker/model/kernels/bf16.h"

namespace traind {

constexpr int64_t kHalfPanel = 32;  // columns of a panel of weights

// A fully connected layer as PackedHalfLayer packs it. Does not own what it points to.
struct HalfPanels {
  const Bf16* weights;  // [panels, in / 2, kHalfPanel, 2]
  const float* bias;    // [panels, kHalfPanel]
  int64_t out, in;      // in: a multiple of kHalfPanel
};

// Whether the processor has tiles and the operating system lets this process use them. The first
// call asks for that.
// Threads: safe to call from any.
bool HasHalfTiles();

// y = max(0, x W^T + b). x: [rows, in], y: [rows, panels * kHalfPanel].
// REQUIRES: HasHalfTiles().
void TilesRelu(const HalfPanels& layer, const Bf16* x, int64_t rows, Bf16* y);
// y [rows, out] = x W^T + b.
// REQUIRES: HasHalfTiles().
void Tiles(const HalfPanels& layer, const Bf16* x, int64_t rows, float* y);

}  // namespace traind
