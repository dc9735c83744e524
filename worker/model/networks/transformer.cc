#include "worker/model/networks/transformer.h"

#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "worker/model/networks/dropout.h"
#include "worker/model/networks/encoder_parameters.h"
#include "worker/model/networks/input_columns.h"
#include "worker/model/networks/recompute.h"

namespace traind {
namespace {

constexpr uint64_t kSeedsOfLayer = 4;  // number of dropouts in a layer

class Transformer final : public Model {
 public:
  Transformer(const plain::TransformerSpec& spec, const ModelShape& shape, Parameters& parameters)
      : columns_(shape, parameters),
        spec_(spec),
        pre_norm_(spec.norm == "pre"),
        dropout_(spec.dropout) {
    input_ = DeclareLinear("input", columns_.width(), spec_.width, parameters);
    position_ = parameters.Declare("position", {shape.window, spec_.width},
                                   {Initial::Kind::kNormal, 0.02, -1});
    for (int64_t k = 0; k < spec_.layers; ++k) {
      layers_.push_back(DeclareEncoderLayer(absl::StrCat("encoder.layers.", k), spec_.width,
                                            spec_.feedforward, parameters));
    }
    if (pre_norm_) norm_ = DeclareNorm("encoder.norm", spec_.width, parameters);
    head_ = DeclareLinear("head", spec_.width, shape.outputs, parameters);
  }

  bool SetRecompute(bool on) override {
    recompute_ = on;
    return true;
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                     bool training) const override {
    const double dropout = training ? dropout_ : 0.0;
    Pass pass{weights, dropout, inputs.dropout_seed};
    at::Tensor x = pass.Linear(columns_.Sequence(weights, inputs), input_);  // [B, T, D]
    // A shorter window uses the positions of the last steps.
    x = x.add(weights[position_].slice(0, weights[position_].size(0) - x.size(1)));
    for (size_t k = 0; k < layers_.size(); ++k) {
      const auto layer = [this, k, dropout, seed = inputs.dropout_seed + kSeedsOfLayer * k](
                             const std::vector<at::Tensor>& all, const at::Tensor& taken) {
        Pass layer_pass{all, dropout, seed};
        return Layer(layer_pass, k, taken);
      };
      x = training && recompute_ ? WithoutActivations(layer, k, weights, x) : layer(weights, x);
    }
    if (pre_norm_) x = pass.Norm(x, norm_);
    return pass.Linear(x.mean(1), head_);
  }

 private:
  // The state of one forward pass.
  struct Pass {
    const std::vector<at::Tensor>& weights;
    double dropout;
    uint64_t seed;  // of the next dropout

    at::Tensor Linear(const at::Tensor& x, const LinearParameters& p) const {
      return at::linear(x, weights[p.weight], weights[p.bias]);
    }
    at::Tensor Norm(const at::Tensor& x, const NormParameters& p) const {
      return at::layer_norm(x, {x.size(-1)}, weights[p.weight], weights[p.bias]);
    }
    at::Tensor Drop(const at::Tensor& x) { return dropout > 0 ? Dropout(x, dropout, seed++) : x; }
  };

  // Only the layer's own weights are passed in, because it computes no gradients for the
  // others.
  at::Tensor WithoutActivations(const Block& layer, size_t k,
                                const std::vector<at::Tensor>& weights, const at::Tensor& x) const {
    const auto begin = static_cast<int64_t>(layers_[k].in_proj.weight);
    const auto end = static_cast<int64_t>(layers_[k].norm2.bias) + 1;
    const Block with_own_weights = [layer, begin, size = weights.size()](
                                       const std::vector<at::Tensor>& own,
                                       const at::Tensor& taken) {
      std::vector<at::Tensor> all(size);
      std::copy(own.begin(), own.end(), all.begin() + begin);
      return layer(all, taken);
    };
    return Recomputed(with_own_weights, {weights.begin() + begin, weights.begin() + end}, x);
  }

  // The last layer computes only the step that the head sees.
  at::Tensor Layer(Pass& pass, size_t k, at::Tensor x) const {
    const EncoderLayer& layer = layers_[k];
    const bool last_step = k + 1 == layers_.size() && spec_.pooling == "last";
    const auto kept = [last_step](const at::Tensor& t) {
      return last_step ? t.narrow(1, t.size(1) - 1, 1) : t;
    };
    if (pre_norm_) {
      const at::Tensor seen = pass.Norm(x, layer.norm1);
      x = kept(x).add(pass.Drop(Attention(pass, layer, kept(seen), seen)));
      return x.add(pass.Drop(Feedforward(pass, layer, pass.Norm(x, layer.norm2))));
    }
    x = pass.Norm(kept(x).add(pass.Drop(Attention(pass, layer, kept(x), x))), layer.norm1);
    return pass.Norm(x.add(pass.Drop(Feedforward(pass, layer, x))), layer.norm2);
  }

  // Sequences are short: the scores are [B, heads, Q, T], and small matrix products are faster
  // than a fused kernel that computes the scores twice. query_input: [B, Q, D], the Q query steps
  // of seen [B, T, D].
  at::Tensor Attention(Pass& pass, const EncoderLayer& layer, const at::Tensor& query_input,
                       const at::Tensor& seen) const {
    const int64_t rows = seen.size(0), depth = spec_.width / spec_.heads;
    at::Tensor query, key_value;
    if (query_input.is_same(seen)) {
      const at::Tensor all = pass.Linear(seen, layer.in_proj);
      query = all.narrow(2, 0, spec_.width);
      key_value = all.narrow(2, spec_.width, 2 * spec_.width);
    } else {
      const at::Tensor& weight = pass.weights[layer.in_proj.weight];
      const at::Tensor& bias = pass.weights[layer.in_proj.bias];
      query =
          at::linear(query_input, weight.narrow(0, 0, spec_.width), bias.narrow(0, 0, spec_.width));
      key_value = at::linear(seen, weight.narrow(0, spec_.width, 2 * spec_.width),
                             bias.narrow(0, spec_.width, 2 * spec_.width));
    }
    const auto heads = [&](const at::Tensor& t, int64_t begin) {  // [B, heads, steps, depth]
      return t.narrow(2, begin, spec_.width)
          .view({rows, t.size(1), spec_.heads, depth})
          .transpose(1, 2);
    };
    const at::Tensor mixed = Mixed(pass, heads(query, 0), heads(key_value, 0),
                                   heads(key_value, spec_.width));  // [B, heads, Q, depth]
    return pass.Linear(mixed.transpose(1, 2).reshape({rows, query_input.size(1), spec_.width}),
                       layer.out_proj);
  }

  // The device's fused kernel draws other dropout than the pass written by hand.
  static at::Tensor Mixed(Pass& pass, const at::Tensor& query, const at::Tensor& key,
                          const at::Tensor& value) {
    if (pass.dropout <= 0) return at::scaled_dot_product_attention(query, key, value);
    const double scale = 1.0 / std::sqrt(static_cast<double>(query.size(3)));
    const at::Tensor scores = at::matmul(query.mul(scale), key.transpose(2, 3));
    const at::Tensor probabilities = pass.Drop(at::softmax(scores, -1));  // [B, heads, Q, T]
    return at::matmul(probabilities.to(value.scalar_type()), value);
  }

  at::Tensor Feedforward(Pass& pass, const EncoderLayer& layer, const at::Tensor& x) const {
    return pass.Linear(pass.Drop(at::relu(pass.Linear(x, layer.linear1))), layer.linear2);
  }

  const InputColumns columns_;
  const plain::TransformerSpec spec_;
  const bool pre_norm_;
  const double dropout_;
  LinearParameters input_, head_;
  size_t position_ = 0;
  std::vector<EncoderLayer> layers_;
  NormParameters norm_;  // with pre_norm
  bool recompute_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateTransformer(const ModelSpec& spec,
                                                         const ModelShape& shape,
                                                         Parameters& parameters) {
  return std::make_unique<Transformer>(*spec.transformer, shape, parameters);
}

}  // namespace traind
