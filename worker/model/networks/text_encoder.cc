#include "worker/model/networks/text_encoder.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <absl/strings/str_cat.h>

#include <string>
#include <utility>
#include <vector>

#include "worker/model/networks/bert_encoder.h"
#include "worker/model/networks/dropout.h"
#include "worker/model/networks/encoder_parameters.h"
#include "worker/model/networks/input_columns.h"
#include "worker/model/networks/recompute.h"
#include "worker/model/networks/text_attention.h"
#include "worker/model/networks/text_encoder_sizes.h"
#include "worker/model/networks/text_samples.h"

namespace traind {
namespace {

constexpr uint64_t kSeedsOfLayer = 4;  // number of dropouts in a layer

class TextEncoder final : public Model {
 public:
  TextEncoder(const plain::TextEncoderSpec& spec, const ModelShape& shape, Parameters& parameters)
      : columns_(shape, parameters),  // first: HandwrittenColumns counts on it
        spec_(spec),
        disentangled_(spec.attention == "disentangled"),
        dropout_(spec.dropout),
        buckets_(TextEncoderSizes::kRelativeSpan, shape.max_tokens) {
    tokens_ = parameters.Declare("tokens.weight", {shape.vocabulary, spec_.width},
                                 {Initial::Kind::kNormal, TextEncoderSizes::kTokenScale, -1});
    position_ =
        disentangled_
            ? parameters.Declare("relative.weight", {buckets_.count(), spec_.width}, kSmallNormal)
            : parameters.Declare("position", {shape.max_tokens, spec_.width}, kSmallNormal);
    for (int64_t k = 0; k < spec_.layers; ++k) {
      layers_.push_back(DeclareEncoderLayer(absl::StrCat("encoder.layers.", k), spec_.width,
                                            spec_.feedforward, parameters));
    }
    int64_t joined = spec_.width;
    if (columns_.width() > 0) {
      column_layer_ =
          DeclareLinear("columns", columns_.width(), TextEncoderSizes::kColumnWidth, parameters);
      joined += TextEncoderSizes::kColumnWidth;
    }
    head_ = DeclareLinear("head.0", joined, TextEncoderSizes::kHeadWidth, parameters);
    output_ = DeclareLinear("head.2", TextEncoderSizes::kHeadWidth, shape.outputs, parameters);
  }

  bool SetRecompute(bool on) override {
    recompute_ = on;
    return true;
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                     bool training) const override {
    const double dropout = training ? dropout_ : 0.0;
    const TextSamples samples = TextSamplesOf(inputs);
    at::Tensor x = at::embedding(weights[tokens_], inputs.tokens);  // [N, D]
    if (!disentangled_) x = x.add(at::embedding(weights[position_], samples.place));
    const TextAttentionOptions attention =
        AttentionOver(samples.ends, spec_.heads, disentangled_ ? &buckets_ : nullptr, x.device());
    for (size_t k = 0; k < layers_.size(); ++k) {
      // Captured by value, because a backward pass may call it again.
      const auto layer = [this, k, dropout, attention,
                          seed = inputs.dropout_seed + kSeedsOfLayer * k](
                             const std::vector<at::Tensor>& own, const at::Tensor& taken) {
        return Layer({own, layers_[k].in_proj.weight, dropout, seed}, k, attention, taken);
      };
      const auto begin = weights.begin() + static_cast<int64_t>(layers_[k].in_proj.weight);
      std::vector<at::Tensor> own(begin, begin + kParametersOfLayer);
      if (disentangled_) own.push_back(weights[position_]);
      x = training && recompute_ ? Recomputed(layer, own, x) : layer(own, x);
    }
    const at::Tensor sums = at::zeros({samples.share.size(0), spec_.width}, x.options())
                                .index_add(0, samples.sample_of_token, x);
    return Head(weights, inputs, sums.mul(samples.share.to(sums.scalar_type())));
  }

 private:
  static constexpr int64_t kParametersOfLayer = 12;

  // The state of one layer's forward pass.
  struct Pass {
    const std::vector<at::Tensor>& own;  // the layer's weights, in order of declaration
    size_t first = 0;                    // index of own[0] among all weights
    double dropout = 0;
    uint64_t seed = 0;  // of the next dropout

    const at::Tensor& Weight(size_t index) const { return own[index - first]; }
    at::Tensor Linear(const at::Tensor& x, const LinearParameters& p) const {
      return at::linear(x, Weight(p.weight), Weight(p.bias));
    }
    at::Tensor Norm(const at::Tensor& x, const NormParameters& p) const {
      return at::layer_norm(x, {x.size(-1)}, Weight(p.weight), Weight(p.bias));
    }
    at::Tensor Drop(const at::Tensor& x) { return dropout > 0 ? Dropout(x, dropout, seed++) : x; }
  };

  at::Tensor Layer(Pass pass, size_t k, const TextAttentionOptions& attention, at::Tensor x) const {
    const EncoderLayer& layer = layers_[k];
    x = x.add(pass.Drop(Attention(pass, layer, attention, pass.Norm(x, layer.norm1))));
    const at::Tensor hidden = at::gelu(pass.Linear(pass.Norm(x, layer.norm2), layer.linear1));
    return x.add(pass.Drop(pass.Linear(pass.Drop(hidden), layer.linear2)));
  }

  // x: [N, D].
  at::Tensor Attention(Pass& pass, const EncoderLayer& layer, TextAttentionOptions options,
                       const at::Tensor& x) const {
    options.dropout = pass.dropout;
    options.seed = pass.seed++;
    at::Tensor relative;
    if (disentangled_) {  // as DeBERTa v3, by the same weights as the tokens'
      const int64_t both = 2 * spec_.width;
      relative = at::linear(pass.own.back(), pass.Weight(layer.in_proj.weight).narrow(0, 0, both),
                            pass.Weight(layer.in_proj.bias).narrow(0, 0, both));
    }
    return pass.Linear(TextAttention(pass.Linear(x, layer.in_proj), relative, options),
                       layer.out_proj);
  }

  at::Tensor Head(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                  at::Tensor joined) const {
    const auto linear = [&](const at::Tensor& x, const LinearParameters& p) {
      return at::linear(x, weights[p.weight], weights[p.bias]);
    };
    if (columns_.width() > 0) {
      const at::Tensor columns =
          at::relu(linear(columns_.Concatenate(weights, inputs), column_layer_));
      joined = at::cat({joined, columns.to(joined.scalar_type())}, 1);
    }
    return linear(at::relu(linear(joined, head_)), output_);
  }

  const InputColumns columns_;
  const plain::TextEncoderSpec spec_;
  const bool disentangled_;
  const double dropout_;
  const RelativeBuckets buckets_;
  size_t tokens_ = 0, position_ = 0;  // position_: the index of position or relative.weight
  std::vector<EncoderLayer> layers_;
  LinearParameters column_layer_, head_, output_;
  bool recompute_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateTextEncoder(const ModelSpec& spec,
                                                         const ModelShape& shape,
                                                         Parameters& parameters) {
  if (!spec.text->architecture.empty()) return CreateBertEncoder(spec, shape, parameters);
  return std::make_unique<TextEncoder>(*spec.text, shape, parameters);
}

}  // namespace traind
