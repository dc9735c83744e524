#include "worker/model/networks/modern_bert.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "worker/model/networks/dropout.h"
#include "worker/model/networks/encoder_parameters.h"
#include "worker/model/networks/input_columns.h"
#include "worker/model/networks/recompute.h"
#include "worker/model/networks/text_attention.h"
#include "worker/model/networks/text_encoder_sizes.h"
#include "worker/model/networks/text_samples.h"

namespace traind {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr uint64_t kSeedsOfLayer = 3;  // of the dropouts in a layer
constexpr uint64_t kSeedsAround = 2;   // of those before and after the layers

// Declared side by side in this order; none of them has a bias. The first layer has no norm before
// its attention.
struct Layer {
  size_t attention_norm = 0, query_key_value = 0, attention_output = 0;
  size_t norm = 0, gated = 0, output = 0;
  bool first = false;
};

class ModernBert final : public BodyModel {
 public:
  ModernBert(const TextConfig& config, double dropout, const ModelShape& shape,
             Parameters& parameters)
      : columns_(shape, parameters), config_(config), dropout_(dropout) {
    const int64_t width = config_.width;
    const absl::string_view body = TextBodyPrefix(config_.architecture);
    parameters.SetDepth(0);
    tokens_ = parameters.Declare(absl::StrCat(body, "embeddings.tok_embeddings.weight"),
                                 {config_.vocabulary, width}, kSmallNormal);
    const auto norm = [&](const std::string& name) {
      return parameters.Declare(name + ".weight", {width}, kOnes);
    };
    embedding_norm_ = norm(absl::StrCat(body, "embeddings.norm"));
    for (int64_t k = 0; k < config_.layers; ++k) {
      parameters.SetDepth(k + 1);
      const std::string name = absl::StrCat(body, "layers.", k, ".");
      const auto matrix = [&](const char* part, int64_t in, int64_t out) {
        return parameters.Declare(absl::StrCat(name, part, ".weight"), {out, in}, kSmallNormal);
      };
      Layer& layer = layers_.emplace_back();
      layer.first = k == 0;
      if (!layer.first) layer.attention_norm = norm(name + "attn_norm");
      layer.query_key_value = matrix("attn.Wqkv", width, 3 * width);
      layer.attention_output = matrix("attn.Wo", width, width);
      layer.norm = norm(name + "mlp_norm");
      layer.gated = matrix("mlp.Wi", width, 2 * config_.feedforward);
      layer.output = matrix("mlp.Wo", config_.feedforward, width);
    }
    last_norm_ = norm(absl::StrCat(body, "final_norm"));
    parameters.SetDepth(kHeadDepth);
    dense_ = parameters.Declare("head.dense.weight", {width, width}, kSmallNormal);
    head_norm_ = norm("head.norm");
    int64_t joined = width;
    if (columns_.width() > 0) {
      column_layer_ =
          DeclareLinear("columns", columns_.width(), TextEncoderSizes::kColumnWidth, parameters);
      joined += TextEncoderSizes::kColumnWidth;
    }
    output_ = DeclareSmall("classifier", {shape.outputs, joined}, parameters);
  }

  bool SetRecompute(bool on) override {
    recompute_ = on;
    return true;
  }

  int64_t body_width() const override { return config_.width; }

  at::Tensor Body(const Tensors& weights, const Inputs& inputs, bool training) const override {
    const auto trains = [&](int64_t depth) { return training && depth >= inputs.fixed_below; };
    const TextSamples samples = TextSamplesOf(inputs);
    at::Tensor x = Norm(at::embedding(weights[tokens_], inputs.tokens), weights[embedding_norm_]);
    if (trains(0) && dropout_ > 0) x = Dropout(x, dropout_, inputs.dropout_seed);
    const at::Tensor global = Rotations(samples.place, config_.global_base);
    const at::Tensor local = Rotations(samples.place, config_.local_base);
    const TextAttentionOptions attention =
        AttentionOver(samples.ends, config_.heads, /*buckets=*/nullptr, x.device());
    for (size_t k = 0; k < layers_.size(); ++k) {
      const bool sees_all = config_.global[k];
      const bool trained = trains(static_cast<int64_t>(k) + 1);
      // Captured by value, because a backward pass may call it again.
      const auto layer = [this, k, dropout = trained ? dropout_ : 0.0, attention,
                          window = sees_all ? 0 : config_.window,
                          rotations = sees_all ? global : local,
                          seed = inputs.dropout_seed + kSeedsAround + kSeedsOfLayer * k](
                             const Tensors& own, const at::Tensor& taken) {
        TextAttentionOptions options = attention;
        options.window = window;
        options.dropout = dropout;
        options.seed = seed;
        return Through(layers_[k], own, options, rotations, taken);
      };
      const size_t first =
          layers_[k].first ? layers_[k].query_key_value : layers_[k].attention_norm;
      const auto begin = weights.begin() + static_cast<int64_t>(first);
      const Tensors own(begin, begin + static_cast<int64_t>(layers_[k].output - first + 1));
      x = trained && recompute_ ? Recomputed(layer, own, x) : layer(own, x);
    }
    if (!config_.mean) return Norm(x.index_select(0, samples.first), weights[last_norm_]);
    x = Norm(x, weights[last_norm_]).to(at::kFloat);
    return at::zeros({samples.share.size(0), config_.width}, x.options())
        .index_add(0, samples.sample_of_token, x)
        .mul(samples.share);
  }

  at::Tensor Head(const Tensors& weights, const Inputs& inputs, const at::Tensor& body,
                  bool training) const override {
    const double dropout = training && dropout_ > 0 ? config_.head_dropout : 0.0;
    at::Tensor x = Norm(at::gelu(at::linear(body, weights[dense_])), weights[head_norm_]);
    if (dropout > 0) x = Dropout(x, dropout, inputs.dropout_seed + 1);
    const auto linear = [&](const at::Tensor& from, const LinearParameters& p) {
      return at::linear(from, weights[p.weight], weights[p.bias]);
    };
    if (columns_.width() > 0) {
      const at::Tensor columns =
          at::relu(linear(columns_.Concatenate(weights, inputs), column_layer_));
      x = at::cat({x, columns.to(x.scalar_type())}, 1);
    }
    return linear(x, output_);
  }

 private:
  at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight) const {
    return at::layer_norm(x, {x.size(-1)}, weight, {}, config_.epsilon);
  }

  // The angles of each token, [N, 1, d / 2] float32, where d is a head's width.
  at::Tensor Rotations(const at::Tensor& place, double base) const {
    const int64_t depth = config_.width / config_.heads;
    const at::Tensor powers =
        at::arange(0, depth, 2, place.options().dtype(at::kFloat)).div(static_cast<double>(depth));
    const at::Tensor frequencies = powers.mul(-std::log(base)).exp();
    return at::outer(place.to(at::kFloat), frequencies).unsqueeze(1);
  }

  // x: [N, heads, d]. The first half of a head is rotated with the second.
  static at::Tensor Rotated(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
    const int64_t half = x.size(-1) / 2;
    const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
    return at::cat({a.mul(cosine).sub(b.mul(sine)), b.mul(cosine).add(a.mul(sine))}, -1);
  }

  // own: the layer's weights, in order of declaration.
  at::Tensor Through(const Layer& layer, const Tensors& own, TextAttentionOptions options,
                     const at::Tensor& angles, at::Tensor x) const {
    const size_t first = layer.first ? layer.query_key_value : layer.attention_norm;
    const auto weight = [&](size_t index) -> const at::Tensor& { return own[index - first]; };
    uint64_t seed = options.seed;
    const double dropout = options.dropout;
    const auto drop = [&](const at::Tensor& from) {
      return dropout > 0 ? Dropout(from, dropout, ++seed) : from;
    };
    const at::Tensor seen = layer.first ? x : Norm(x, weight(layer.attention_norm));
    const int64_t width = config_.width;
    const at::Tensor all = at::linear(seen, weight(layer.query_key_value)).to(at::kFloat);
    const at::Tensor cosine = angles.cos(), sine = angles.sin();
    const auto rotated = [&](int64_t column) {
      const at::Tensor heads =
          all.narrow(1, column, width).view({-1, config_.heads, width / config_.heads});
      return Rotated(heads, cosine, sine).reshape({-1, width});
    };
    const at::Tensor joined =
        at::cat({rotated(0), rotated(width), all.narrow(1, 2 * width, width)}, 1);
    const at::Tensor mixed = TextAttention(joined, at::Tensor(), options);
    x = x.add(drop(at::linear(mixed, weight(layer.attention_output))));
    const at::Tensor wide = at::linear(Norm(x, weight(layer.norm)), weight(layer.gated));
    const at::Tensor hidden = at::gelu(wide.narrow(1, 0, config_.feedforward))
                                  .mul(wide.narrow(1, config_.feedforward, config_.feedforward));
    return x.add(at::linear(drop(hidden), weight(layer.output)));
  }

  const InputColumns columns_;
  const TextConfig config_;
  const double dropout_;
  size_t tokens_ = 0, embedding_norm_ = 0, last_norm_ = 0, dense_ = 0, head_norm_ = 0;
  std::vector<Layer> layers_;
  LinearParameters column_layer_, output_;
  bool recompute_ = false;
};

}  // namespace

std::unique_ptr<Model> MakeModernBert(const TextConfig& config, double dropout,
                                      const ModelShape& shape, Parameters& parameters) {
  return std::make_unique<ModernBert>(config, dropout, shape, parameters);
}

}  // namespace traind
