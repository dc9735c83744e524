// A fully connected layer for many rows in float32. Its weights are stored in the order in
// which this machine's kernel reads them.
#pragma once

#include <cstdint>
#include <vector>

namespace traind {

// Meant for networks of a few hundred columns. There a BLAS would repack the weights at each
// call, and would leave bias and ReLU to another pass.
// Threads: immutable after Pack().
class PackedLayer {
 public:
  // Whether this machine has a kernel. REQUIRES for all other methods: it has.
  static bool Available();

  // Copies weight [out, in] and bias [out].
  void Pack(const float* weight, const float* bias, int64_t out, int64_t in);
  // y [rows, out] = x [rows, in] W^T + b; with relu, y = max(0, y).
  void Apply(const float* x, int64_t rows, bool relu, float* y) const;

 private:
  int64_t out_ = 0, in_ = 0;
  std::vector<float> panels_;  // [out / width, in, width], padded with zeros
  std::vector<float> bias_;    // [out], padded with zeros
};

}  // namespace traind
