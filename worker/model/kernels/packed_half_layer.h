// A fully connected layer for many rows in bfloat16, as packed_layer.h is for float32.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/model/kernels/bf16.h"
#include "worker/model/kernels/half_tiles.h"

namespace traind {

// Rounds x [rows, columns] to [rows, HalfWidth(columns)].
void RoundRows(const float* x, int64_t rows, int64_t columns, Bf16* to);

// How the processor multiplies: pairs of values in vectors (AVX512_BF16), or tiles (AMX). Both add
// up in float32, in orders of their own.
enum class HalfKernel { kVectors, kTiles };

// Weights and inputs are rounded to bf16.
// Threads: immutable after Pack().
class PackedHalfLayer {
 public:
  // Whether this machine has a kernel. REQUIRES for all other methods: it has.
  static bool Available();
  // The fastest of this machine's kernels.
  static HalfKernel Best();

  PackedHalfLayer() = default;
  explicit PackedHalfLayer(HalfKernel kernel) : kernel_(kernel) {}

  // Copies weight [out, in] and bias [out].
  void Pack(const float* weight, const float* bias, int64_t out, int64_t in);
  // y = max(0, x W^T + b). x: [rows, HalfWidth(in)], y: [rows, HalfWidth(out)].
  void ApplyRelu(const Bf16* x, int64_t rows, Bf16* y) const;
  // y [rows, out] = x [rows, HalfWidth(in)] W^T + b.
  void Apply(const Bf16* x, int64_t rows, float* y) const;

 private:
  HalfPanels panels() const { return {weights_.data(), bias_.data(), out_, in_}; }

  HalfKernel kernel_ = Best();
  int64_t out_ = 0, in_ = 0;   // in_: HalfWidth
  int64_t used_ = 0;           // the first inputs, an even number; those beyond are 0
  std::vector<Bf16> weights_;  // as HalfPanels say, padded with zeros
  std::vector<float> bias_;    // the same
};

}  // namespace traind
