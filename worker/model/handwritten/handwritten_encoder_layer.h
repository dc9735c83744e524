#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/handwritten/handwritten_backward.h"
#include "worker/model/kernels/dense_attention.h"
#include "worker/model/kernels/gemm.h"

namespace traind {

// A layer norm. Threads: confined to one.
class HandwrittenNorm {
 public:
  // The values of the forward pass that the backward pass needs.
  struct Kept {
    std::vector<float> centred, inverse;
  };

  HandwrittenNorm(const HandwrittenSetup& setup, const std::string& name, int64_t width);
  // y may be x.
  void Forward(const float* x, float* y, int64_t rows, Kept& kept) const;
  // dx may be dy.
  void Backward(const float* dy, float* dx, int64_t rows, const Kept& kept, float* gradient) const;

 private:
  const int64_t width_, weight_, bias_;
  const float* const weights_;
};

// The matrix products of a fully connected layer. The loop that follows adds the bias.
// Threads: confined to one.
class HandwrittenLinear {
 public:
  HandwrittenLinear(const HandwrittenSetup& setup, const std::string& weight,
                    const std::string& bias, int64_t out, int64_t in);
  const float* bias() const { return weights_ + bias_; }
  // y [rows, end - begin] receives the outputs begin .. end - 1, without bias.
  void Forward(const float* x, float* y, int64_t rows, int64_t begin, int64_t end) const;
  void Forward(const float* x, float* y, int64_t rows) const { Forward(x, y, rows, 0, out_); }
  // Writes the gradients of the weights and biases of those outputs;
  // without_bias: of the weights only.
  void WeightGradients(const float* x, const float* d, int64_t rows, int64_t begin, int64_t end,
                       bool without_bias, float* gradient) const;
  // dx [rows, in] = d x W; with add, dx += d x W.
  void InputGradient(const float* d, float* dx, int64_t rows, int64_t begin, int64_t end,
                     bool add) const;

  int64_t out() const { return out_; }
  int64_t bias_offset() const { return bias_; }

 private:
  const int64_t out_, in_, weight_, bias_;
  const float* const weights_;
};

// The values of a layer's forward pass that its backward pass needs besides its input. B
// samples of T steps; Q is the number of output steps.
struct EncoderActivations {
  std::vector<float> normed, kept_x, kept_seen;
  std::vector<float> query_key_value, query;  // Q = T: [B, T, 3D]; Q < T: [B, T, 2D], [B, Q, D]
  std::vector<float> probabilities;           // [B, heads, Q, T]
  std::vector<float> mixed, middle, normed_middle;                     // [B, Q, D]
  std::vector<float> hidden;                                           // [B, Q, F]
  std::vector<float> probability_factors, mixed_factors, out_factors;  // of the dropouts
  HandwrittenNorm::Kept norm1, norm2;
};

// Scratch memory of a pass, which the layers use in turn.
struct EncoderScratch {
  std::vector<float> d_query_key_value, d_query, d_hidden, d_wide, dropped, small;
};

// One layer of CreateTransformer's encoder. Q is T, or 1 (last_step): only the last step.
// Threads: confined to one.
class HandwrittenEncoderLayer {
 public:
  // scratch outlives the layer.
  HandwrittenEncoderLayer(const HandwrittenSetup& setup, int64_t index, bool last_step,
                          EncoderScratch& scratch);

  // Keeps the activations in `shared`, which other layers may overwrite; then ForwardAgain()
  // has to come before Backward(). Null: the layer keeps them in its own memory.
  void KeepIn(EncoderActivations* shared);

  // x: [B, T, D], must stay unchanged until Backward() returns. Returns [B, Q, D], owned by the
  // layer. seed: of its dropouts.
  const float* Forward(const float* x, int64_t batch, uint64_t seed);
  // Repeats the last forward pass with the same result.
  void ForwardAgain() { Forward(x_, batch_, seed_); }
  // d: [B, Q, D], the loss's gradient by the output, overwritten. dx: [B, T, D].
  void Backward(float* d, float* dx, float* gradient);

 private:
  void Reserve();
  void Attend(const float* seen);
  void AttendBackward(const float* d_mixed, float* d_seen, float* gradient);
  // The rows of the output steps, [B, Q, D]: x itself, or copies.
  const float* Kept(const float* x, std::vector<float>& copies) const;
  void AddToKept(const float* d, float* dx) const;
  const float* DropFactors(int64_t site, std::vector<float>& factors, int64_t size) const;
  // Returns d times the factors of a dropout, in scratch memory; without dropout d itself.
  const float* ThroughDropout(const float* d, const std::vector<float>& factors, int64_t size);

  const plain::TransformerSpec spec_;
  const bool pre_norm_;
  const double dropout_;
  const int64_t steps_, query_steps_;
  const HandwrittenLinear in_proj_, out_proj_, linear1_, linear2_;
  const HandwrittenNorm norm1_, norm2_;

  const float* x_ = nullptr;
  int64_t batch_ = 0;
  uint64_t seed_ = 0;
  const float* seen_ = nullptr;     // the input of attention, [B, T, D]
  const float* queries_ = nullptr;  // its query steps, [B, Q, D]
  std::vector<float> out_;          // [B, Q, D]
  EncoderActivations own_;
  EncoderActivations* kept_ = &own_;
  EncoderScratch& scratch_;
};

}  // namespace traind
