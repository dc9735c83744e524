// Matrix products for passes that are written once for float32 and bf16.
#pragma once

#include <cstdint>
#include <vector>

#include "worker/model/kernels/gemm.h"
#include "worker/model/kernels/layer_loops.h"

namespace traind {

// c [m, n] is dense.
inline void Product(int64_t m, int64_t n, int64_t k, Matrix<const float> a, Matrix<const float> b,
                    float* c) {
  Multiply(m, n, k, a, b, c, n);
}
inline void Product(int64_t m, int64_t n, int64_t k, Matrix<const Bf16> a, Matrix<const Bf16> b,
                    Bf16* c) {
  Multiply(m, n, k, a, b, c);
}

// c is float32, as gradients of weights are. scratch: scratch memory for the bf16 product.
inline void FloatProduct(int64_t m, int64_t n, int64_t k, Matrix<const float> a,
                         Matrix<const float> b, float* c, std::vector<float>&) {
  Multiply(m, n, k, a, b, c, n);
}
inline void FloatProduct(int64_t m, int64_t n, int64_t k, Matrix<const Bf16> a,
                         Matrix<const Bf16> b, float* c, std::vector<Bf16>& scratch) {
  if (static_cast<int64_t>(scratch.size()) < m * n) scratch.resize(static_cast<size_t>(m * n));
  Multiply(m, n, k, a, b, scratch.data());
  ToFloat(scratch.data(), c, m * n);
}

// A weight in the precision of the products: the weight itself, or its copy
// rounded to bf16 at each step.
// Threads: confined to one.
template <class T>
class HandwrittenWeight;

template <>
class HandwrittenWeight<float> {
 public:
  HandwrittenWeight(const float* weight, int64_t out, int64_t in) : weight_(weight), in_(in) {
    (void)out;
  }
  void Refresh() {}
  Matrix<const float> plain() const { return {weight_, in_, false}; }      // [out, in]
  Matrix<const float> transposed() const { return {weight_, in_, true}; }  // [in, out]

 private:
  const float* weight_;
  int64_t in_;
};

template <>
class HandwrittenWeight<Bf16> {
 public:
  HandwrittenWeight(const float* weight, int64_t out, int64_t in)
      : weight_(weight), in_(in), narrow_(static_cast<size_t>(out * in)) {}
  void Refresh() { ToBf16(weight_, narrow_.data(), static_cast<int64_t>(narrow_.size())); }
  Matrix<const Bf16> plain() const { return {narrow_.data(), in_, false}; }
  Matrix<const Bf16> transposed() const { return {narrow_.data(), in_, true}; }

 private:
  const float* weight_;
  int64_t in_;
  std::vector<Bf16> narrow_;
};

// The fully connected head of a network over sequences. It is small, so it stays in float32.
// Parameters: head.weight [outputs, in], head.bias. Threads: confined to one.
class HandwrittenHead {
 public:
  template <class Setup>
  HandwrittenHead(const Setup& setup, int64_t in)
      : in_(in),
        outputs_(setup.shape.outputs),
        weight_(setup.Offset("head.weight")),
        bias_(setup.Offset("head.bias")),
        weights_(setup.weights) {}

  // x: [count, in]. The caller may replace the result with the loss's gradient by it.
  std::vector<float>& Forward(const float* x, int64_t count) {
    output_.resize(static_cast<size_t>(count * outputs_));
    Multiply(count, outputs_, in_, {x, in_, false}, {weights_ + weight_, in_, true}, output_.data(),
             outputs_);
    AddBias(output_.data(), weights_ + bias_, count, outputs_);
    return output_;
  }

  // dx: [count, in], the loss's gradient by x.
  void Backward(const float* x, int64_t count, float* gradient, float* dx) {
    const float* d = output_.data();
    ColumnSums(d, gradient + bias_, count, outputs_);
    Multiply(outputs_, in_, count, {d, outputs_, true}, {x, in_, false}, gradient + weight_, in_);
    Multiply(count, in_, outputs_, {d, outputs_, false}, {weights_ + weight_, in_, false}, dx, in_);
  }

 private:
  const int64_t in_, outputs_, weight_, bias_;
  const float* const weights_;
  std::vector<float> output_;
};

}  // namespace traind
