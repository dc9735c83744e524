#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/handwritten/handwritten_backward.h"
#include "worker/model/handwritten/handwritten_encoder_layer.h"
#include "worker/model/handwritten/handwritten_products.h"
#include "worker/model/kernels/packed_attention.h"

namespace traind {

// The values of a layer's forward pass that its backward pass needs besides its input. N is the
// number of tokens, T the type of the products' operands.
template <class T>
struct TextActivations {
  std::vector<T> normed, mixed, normed_middle;  // [N, D]
  std::vector<T> hidden, slope;                 // [N, F]
  std::vector<float> query_key_value;           // [N, 3 D]
  std::vector<float> relative;                  // [buckets, 2 D]
  std::vector<float> probabilities;
  HandwrittenNorm::Kept norm1, norm2;
};

// Scratch memory of a pass, which the layers use in turn.
template <class T>
struct TextScratch {
  std::vector<T> wide, narrow, hidden, weight_gradient;
  std::vector<float> normed, middle, mixed, d_query_key_value, d_relative, sums;
  std::vector<float> probability_factors, factors;  // of the dropouts
};

// The batch of a training step.
struct TextBatch {
  PackedShape shape;
  const float* relative = nullptr;  // [buckets, D], the table; null: plain attention
  uint64_t dropout_seed = 0;
};

// One layer of CreateTextEncoder's network. T: float or Bf16, the type of its matrix products;
// residual sums and norms are float32. Threads: confined to one.
template <class T>
class HandwrittenTextLayer {
 public:
  // scratch outlives the layer.
  HandwrittenTextLayer(const HandwrittenSetup& setup, int64_t index, TextScratch<T>& scratch);

  // See HandwrittenEncoderLayer::KeepIn.
  void KeepIn(TextActivations<T>* shared);

  // x: [N, D], must stay unchanged until Backward() returns. Returns [N, D], owned by the
  // layer. batch outlives the pass.
  const float* Forward(const float* x, const TextBatch& batch);
  void ForwardAgain() { Forward(x_, *batch_); }
  // d: [N, D], the loss's gradient by the output; becomes the gradient by x. Adds to
  // relative_gradient [buckets, D].
  void Backward(float* d, float* gradient, float* relative_gradient);

 private:
  // y = x W^T in the precision of the products.
  struct Linear {
    Linear(const HandwrittenSetup& setup, const std::string& weight, const std::string& bias,
           int64_t outputs, int64_t inputs);
    int64_t out, in;
    int64_t weight, bias;  // offsets
    HandwrittenWeight<T> products;
  };

  void Attend(int64_t rows);
  void AttendBackward(int64_t rows, const float* d_mixed, float* gradient,
                      float* relative_gradient);
  void Gradient(const Linear& linear, const T* d, const T* x, int64_t rows, float* gradient);
  const float* Factors(int64_t site, std::vector<float>& factors, int64_t size);

  const int64_t index_, width_, heads_, feedforward_;
  const double dropout_;
  const float* const weights_;
  Linear in_proj_, out_proj_, linear1_, linear2_;
  const HandwrittenNorm norm1_, norm2_;

  const float* x_ = nullptr;
  const TextBatch* batch_ = nullptr;
  std::vector<float> out_;  // [N, D]
  TextActivations<T> own_;
  TextActivations<T>* kept_ = &own_;
  TextScratch<T>& scratch_;
};

extern template class HandwrittenTextLayer<float>;
extern template class HandwrittenTextLayer<Bf16>;

}  // namespace traind
