#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker/model/handwritten/handwritten_backward.h"
#include "worker/model/kernels/dense_attention.h"
#include "worker/model/kernels/gemm.h"

namespace traind {

// A layer norm's pass. Threads: confined to one.
class HandwrittenNorm {
 public:
  // What the backward pass needs of the forward pass.
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

// A fully connected layer's products; biases are added by what comes after.
class HandwrittenLinear {
 public:
  HandwrittenLinear(const HandwrittenSetup& setup, const std::string& weight,
                    const std::string& bias, int64_t out, int64_t in);
  const float* bias() const { return weights_ + bias_; }
  // y [rows, end - begin] of the outputs begin .. end - 1; no bias.
  void Forward(const float* x, float* y, int64_t rows, int64_t begin, int64_t end) const;
  void Forward(const float* x, float* y, int64_t rows) const { Forward(x, y, rows, 0, out_); }
  // Gradients of those outputs' weights and biases; without_bias: of the weights.
  void Gradients(const float* x, const float* d, int64_t rows, int64_t begin, int64_t end,
                 bool without_bias, float* gradient) const;
  // dx [rows, in] = d x W, or added to it.
  void Input(const float* d, float* dx, int64_t rows, int64_t begin, int64_t end, bool add) const;

  int64_t out() const { return out_; }
  int64_t bias_offset() const { return bias_; }

 private:
  const int64_t out_, in_, weight_, bias_;
  const float* const weights_;
};

// What a layer's backward pass needs of its forward pass, besides its input. B samples of
// T steps; Q: the steps that come out.
struct EncoderActivations {
  std::vector<float> normed, kept_x, kept_seen;
  std::vector<float> query_key_value, query;        // [B, T, 3D]; Q < T: [B, T, 2D], [B, Q, D]
  std::vector<float> shares;                        // [B, heads, Q, T]
  std::vector<float> mixed, middle, normed_middle;  // [B, Q, D]
  std::vector<float> hidden;                        // [B, Q, F]
  std::vector<float> share_factors, mixed_factors, out_factors;  // of dropouts
  HandwrittenNorm::Kept norm1, norm2;
};

// What a pass puts down between its products; layers take turns with it.
struct EncoderRoom {
  std::vector<float> d_query_key_value, d_query, d_hidden, d_wide, dropped, small;
};

// One layer of CreateTransformer's encoder. Q: T or (last_step) 1, the last one.
// Threads: confined to one.
class HandwrittenEncoderLayer {
 public:
  // room outlives it.
  HandwrittenEncoderLayer(const HandwrittenSetup& setup, int64_t index, bool last_step,
                          EncoderRoom& room);

  // Keeps its activations there, where another layer's may take their place: ForwardAgain()
  // then has to come before Backward(). Null: in memory of its own.
  void KeepIn(EncoderActivations* shared);

  // x: [B, T, D], left as it is until Backward returns. Returns [B, Q, D], the layer's own.
  // seed: of its dropouts.
  const float* Forward(const float* x, int64_t batch, uint64_t seed);
  // As the last time, to the same values.
  void ForwardAgain() { Forward(x_, batch_, seed_); }
  // d: [B, Q, D], the loss's gradient by what came out, overwritten; dx: [B, T, D].
  void Backward(float* d, float* dx, float* gradient);

 private:
  void Reserve();
  void Attend(const float* seen);
  void AttendBackward(const float* d_mixed, float* d_seen, float* gradient);
  // Rows of the steps that come out, [B, Q, D]: x itself, or copies.
  const float* Kept(const float* x, std::vector<float>& copies) const;
  void AddToKept(const float* d, float* dx) const;
  const float* DropFactors(int64_t site, std::vector<float>& factors, int64_t size) const;
  // d times the factors of a dropout, in the room; d itself without one.
  const float* ThroughDropout(const float* d, const std::vector<float>& factors, int64_t size);

  const plain::TransformerSpec spec_;
  const bool pre_norm_;
  const double dropout_;
  const int64_t steps_, asking_;
  const HandwrittenLinear in_proj_, out_proj_, linear1_, linear2_;
  const HandwrittenNorm norm1_, norm2_;

  const float* x_ = nullptr;
  int64_t batch_ = 0;
  uint64_t seed_ = 0;
  const float* seen_ = nullptr;   // what attention takes, [B, T, D]
  const float* asked_ = nullptr;  // its last steps, [B, Q, D]
  std::vector<float> out_;        // [B, Q, D]
  EncoderActivations own_;
  EncoderActivations* kept_ = &own_;
  EncoderRoom& room_;
};

}  // namespace traind
