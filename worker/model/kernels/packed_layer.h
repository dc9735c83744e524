// A fully connected layer for many rows, in float32, with its weights in the order in
// which a kernel for this machine reads them.
#pragma once

#include <cstdint>
#include <vector>

namespace traind {

// Products for networks of a few hundred columns: a BLAS would put the weights in order
// again at each call, and leave bias and ReLU to another pass.
// Threads: immutable after Pack().
class PackedLayer {
 public:
  // Whether this machine has a kernel; without one nothing else may be called.
  static bool Available();

  // weight: [out, in], bias: [out]; both are copied.
  void Pack(const float* weight, const float* bias, int64_t out, int64_t in);
  // y [rows, out] = x [rows, in] W^T + b, and max(0, y) where relu.
  void Apply(const float* x, int64_t rows, bool relu, float* y) const;

 private:
  int64_t out_ = 0, in_ = 0;
  std::vector<float> panels_;  // [out / width, in, width], zeros at the end
  std::vector<float> bias_;    // [out], zeros at the end
};

}  // namespace traind
