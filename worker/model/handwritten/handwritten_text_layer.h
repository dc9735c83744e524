#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/handwritten/handwritten_backward.h"
#include "worker/model/handwritten/handwritten_encoder_layer.h"
#include "worker/model/handwritten/handwritten_products.h"
#include "worker/model/kernels/packed_attention.h"

namespace traind {

// What a layer's backward pass needs of its forward pass, besides its input. N: tokens. T:
// what products take.
template <class T>
struct TextActivations {
  std::vector<T> normed, mixed, normed_middle;  // [N, D]
  std::vector<T> hidden, slope;                 // [N, F]
  std::vector<float> query_key_value;           // [N, 3 D]
  std::vector<float> relative;                  // [buckets, 2 D]
  std::vector<float> shares;
  HandwrittenNorm::Kept norm1, norm2;
};

// What a pass puts down between its products; layers take turns with it.
template <class T>
struct TextRoom {
  std::vector<T> wide, narrow, hidden, weight_gradient;
  std::vector<float> normed, middle, mixed, d_query_key_value, d_relative, sums;
  std::vector<float> share_factors, factors;  // of dropouts
};

// A batch that is being trained on.
struct TextBatch {
  PackedShape shape;
  const float* relative = nullptr;  // [buckets, D], the table; null where attention is plain
  uint64_t dropout_seed = 0;
};

// One layer of CreateTextEncoder's network. T: float or Bf16, of its products; what is
// added up and normed is float32. Threads: confined to one.
template <class T>
class HandwrittenTextLayer {
 public:
  // room outlives it.
  HandwrittenTextLayer(const HandwrittenSetup& setup, int64_t index, TextRoom<T>& room);

  // As HandwrittenEncoderLayer's.
  void KeepIn(TextActivations<T>* shared);

  // x: [N, D], left as it is until Backward returns. Returns [N, D], the layer's own.
  // batch outlives the pass.
  const float* Forward(const float* x, const TextBatch& batch);
  void ForwardAgain() { Forward(x_, *batch_); }
  // d: [N, D], the loss's gradient by what came out; becomes that by x. relative_gradient:
  // [buckets, D], added to.
  void Backward(float* d, float* gradient, float* relative_gradient);

 private:
  // y = x W^T of a weight, in the precision of products.
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
  TextRoom<T>& room_;
};

extern template class HandwrittenTextLayer<float>;
extern template class HandwrittenTextLayer<Bf16>;

}  // namespace traind
