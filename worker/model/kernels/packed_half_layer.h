// A fully connected layer for many rows in bfloat16, as packed_layer.h is for float32.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/model/kernels/bf16.h"

namespace traind {

// Rows of bf16 values have an even length: HalfWidth(columns), the last one 0 if need be.
inline int64_t HalfWidth(int64_t columns) { return columns + columns % 2; }

// Rounds x [rows, columns] to [rows, HalfWidth(columns)].
void RoundRows(const float* x, int64_t rows, int64_t columns, Bf16* to);

// Weights and inputs are rounded to bf16; the processor (AVX512_BF16) multiplies pairs of them and
// adds up in float32.
// Threads: immutable after Pack().
class PackedHalfLayer {
 public:
  // Whether this machine has a kernel. REQUIRES for all other methods: it has.
  static bool Available();

  // Copies weight [out, in] and bias [out].
  void Pack(const float* weight, const float* bias, int64_t out, int64_t in);
  // y = max(0, x W^T + b). x: [rows, HalfWidth(in)], y: [rows, HalfWidth(out)].
  void ApplyRelu(const Bf16* x, int64_t rows, Bf16* y) const;
  // y [rows, out] = x [rows, HalfWidth(in)] W^T + b.
  void Apply(const Bf16* x, int64_t rows, float* y) const;

 private:
  int64_t out_ = 0, in_ = 0;
  std::vector<Bf16> panels_;  // [out / width, in / 2, width, 2], padded with zeros
  std::vector<float> bias_;   // [out], padded with zeros
};

}  // namespace traind
