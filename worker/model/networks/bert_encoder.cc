#include "worker/model/networks/bert_encoder.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/tanh.h>
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/data/weights/text_config.h"
#include "worker/model/networks/bert_names.h"
#include "worker/model/networks/dropout.h"
#include "worker/model/networks/encoder_parameters.h"
#include "worker/model/networks/input_columns.h"
#include "worker/model/networks/modern_bert.h"
#include "worker/model/networks/recompute.h"
#include "worker/model/networks/text_attention.h"
#include "worker/model/networks/text_encoder_sizes.h"
#include "worker/model/networks/text_samples.h"

namespace traind {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr uint64_t kSeedsOfLayer = 4;  // of the dropouts in a layer, at most
constexpr uint64_t kSeedsAround = 4;   // of those before and after the layers

// Declared side by side in this order.
struct Layer {
  LinearParameters query, key, value, attention_output;
  NormParameters attention_norm;
  LinearParameters linear1, linear2;
  NormParameters norm;
};
constexpr int64_t kParametersOfLayer = 16;

class BertEncoder final : public BodyModel {
 public:
  BertEncoder(const TextConfig& config, const BertNames& names, double dropout,
              const ModelShape& shape, Parameters& parameters)
      : columns_(shape, parameters), config_(config), dropout_(dropout) {
    if (config_.buckets > 0) buckets_.emplace(config_.buckets, shape.max_tokens, config_.farthest);
    const int64_t width = config_.width;
    const auto table = [&](const char* name, int64_t rows) {
      return parameters.Declare(absl::StrCat(names.Embedding(name), ".weight"), {rows, width},
                                kSmallNormal);
    };
    parameters.SetDepth(0);
    tokens_ = table("word_embeddings", config_.vocabulary);
    if (config_.has_positions()) positions_ = table("position_embeddings", config_.positions);
    if (config_.token_types > 0) types_ = table("token_type_embeddings", config_.token_types);
    embedding_norm_ = DeclareNorm(names.Embedding("LayerNorm"), width, parameters);
    if (buckets_.has_value()) {
      const absl::string_view body = TextBodyPrefix(config_.architecture);
      distances_ = parameters.Declare(absl::StrCat(body, "encoder.rel_embeddings.weight"),
                                      {2 * config_.buckets, width}, kSmallNormal);
      distance_norm_ = DeclareNorm(absl::StrCat(body, "encoder.LayerNorm"), width, parameters);
    }
    for (int64_t k = 0; k < config_.layers; ++k) {
      parameters.SetDepth(k + 1);
      DeclareLayer(names, k, parameters);
    }
    parameters.SetDepth(kHeadDepth);
    pooler_ = DeclareSmall(names.pooler, {width, width}, parameters);
    int64_t joined = width;
    if (columns_.width() > 0) {
      column_layer_ =
          DeclareLinear("columns", columns_.width(), TextEncoderSizes::kColumnWidth, parameters);
      joined += TextEncoderSizes::kColumnWidth;
    }
    output_ = DeclareSmall(names.classifier, {shape.outputs, joined}, parameters);
  }

  bool SetRecompute(bool on) override {
    recompute_ = on;
    return true;
  }

  int64_t body_width() const override { return config_.width; }

  at::Tensor Body(const Tensors& weights, const Inputs& inputs, bool training) const override {
    const auto trains = [&](int64_t depth) { return training && depth >= inputs.fixed_below; };
    const TextSamples samples = TextSamplesOf(inputs);
    at::Tensor x = Embedded(weights, inputs, samples, trains(0) ? dropout_ : 0.0);  // [N, D]
    at::Tensor distances;  // [buckets in use, D]
    if (buckets_.has_value()) {
      distances =
          at::layer_norm(weights[distances_], {config_.width}, weights[distance_norm_.weight],
                         weights[distance_norm_.bias], config_.epsilon)
              .narrow(0, buckets_->begin(), buckets_->count());
    }
    const TextAttentionOptions attention = AttentionOver(
        samples.ends, config_.heads, buckets_.has_value() ? &*buckets_ : nullptr, x.device());
    for (size_t k = 0; k < layers_.size(); ++k) {
      const bool last = k + 1 == layers_.size();
      const bool trained = trains(static_cast<int64_t>(k) + 1);
      // Captured by value, because a backward pass may call it again.
      const auto layer = [this, k, dropout = trained ? dropout_ : 0.0, attention,
                          first = last ? samples.first : at::Tensor(),
                          seed = inputs.dropout_seed + kSeedsAround + kSeedsOfLayer * k](
                             const Tensors& own, const at::Tensor& taken) {
        return Through({own, layers_[k].query.weight, config_.epsilon, dropout, seed}, layers_[k],
                       attention, first, taken);
      };
      const auto begin = weights.begin() + static_cast<int64_t>(layers_[k].query.weight);
      Tensors own(begin, begin + kParametersOfLayer);
      if (distances.defined()) own.push_back(distances);
      x = trained && recompute_ ? Recomputed(layer, own, x) : layer(own, x);
    }
    return x;
  }

  // body: [B, D], of each sample's first token.
  at::Tensor Head(const Tensors& weights, const Inputs& inputs, const at::Tensor& body,
                  bool training) const override {
    const double dropout = training && dropout_ > 0 ? config_.head_dropout : 0.0;
    const auto linear = [&](const at::Tensor& from, const LinearParameters& p) {
      return at::linear(from, weights[p.weight], weights[p.bias]);
    };
    const auto drop = [&](const at::Tensor& from, uint64_t seed) {
      return dropout > 0 ? Dropout(from, dropout, inputs.dropout_seed + seed) : from;
    };
    at::Tensor x = body;
    if (config_.architecture == "roberta") x = drop(x, 1);
    x = linear(x, pooler_);
    x = drop(config_.architecture == "distilbert"   ? at::relu(x)
             : config_.architecture == "deberta_v3" ? at::gelu(x)
                                                    : at::tanh(x),
             2);
    if (columns_.width() > 0) {
      const at::Tensor columns =
          at::relu(linear(columns_.Concatenate(weights, inputs), column_layer_));
      x = at::cat({x, columns.to(x.scalar_type())}, 1);
    }
    return linear(x, output_);
  }

 private:
  // The state of one layer's forward pass.
  struct Pass {
    const Tensors& own;  // the layer's weights, in order of declaration
    size_t first = 0;    // index of own[0] among all weights
    double epsilon = 0;
    double dropout = 0;
    uint64_t seed = 0;  // of the next dropout

    const at::Tensor& Weight(size_t index) const { return own[index - first]; }
    at::Tensor Linear(const at::Tensor& x, const LinearParameters& p) const {
      return at::linear(x, Weight(p.weight), Weight(p.bias));
    }
    at::Tensor Norm(const at::Tensor& x, const NormParameters& p) const {
      return at::layer_norm(x, {x.size(-1)}, Weight(p.weight), Weight(p.bias), epsilon);
    }
    at::Tensor Drop(const at::Tensor& x) { return dropout > 0 ? Dropout(x, dropout, seed++) : x; }
  };

  void DeclareLayer(const BertNames& names, int64_t k, Parameters& parameters) {
    const BertLayerNames& own = names.in_layer;
    const auto linear = [&](const char* name, int64_t in, int64_t out) {
      return DeclareSmall(names.Layer(k, name), {out, in}, parameters);
    };
    const int64_t width = config_.width;
    Layer& layer = layers_.emplace_back();
    layer.query = linear(own.query, width, width);
    layer.key = linear(own.key, width, width);
    layer.value = linear(own.value, width, width);
    layer.attention_output = linear(own.attention_output, width, width);
    layer.attention_norm = DeclareNorm(names.Layer(k, own.attention_norm), width, parameters);
    layer.linear1 = linear(own.linear1, width, config_.feedforward);
    layer.linear2 = linear(own.linear2, config_.feedforward, width);
    layer.norm = DeclareNorm(names.Layer(k, own.norm), width, parameters);
  }

  at::Tensor Embedded(const Tensors& weights, const Inputs& inputs, const TextSamples& samples,
                      double dropout) const {
    at::Tensor x = at::embedding(weights[tokens_], inputs.tokens);
    if (config_.has_positions()) {
      x = x.add(at::embedding(weights[positions_], samples.place.add(config_.first_position)));
    }
    if (config_.token_types > 0) x = x.add(weights[types_].select(0, 0));
    x = at::layer_norm(x, {x.size(-1)}, weights[embedding_norm_.weight],
                       weights[embedding_norm_.bias], config_.epsilon);
    return dropout > 0 ? Dropout(x, dropout, inputs.dropout_seed) : x;
  }

  // first: where it is defined, only these tokens' rows are wanted; attention sees all tokens.
  at::Tensor Through(Pass pass, const Layer& layer, TextAttentionOptions options,
                     const at::Tensor& first, at::Tensor x) const {
    options.dropout = pass.dropout;
    options.seed = pass.seed++;
    const auto joined = [&](size_t LinearParameters::*part) {
      return at::cat({pass.Weight(layer.query.*part), pass.Weight(layer.key.*part),
                      pass.Weight(layer.value.*part)});
    };
    const at::Tensor weight = joined(&LinearParameters::weight);
    const at::Tensor bias = joined(&LinearParameters::bias);
    at::Tensor relative;
    if (buckets_.has_value()) {  // by the same weights as the tokens' queries and keys
      const int64_t both = 2 * config_.width;
      relative = at::linear(pass.Drop(pass.own.back()), weight.narrow(0, 0, both),
                            bias.narrow(0, 0, both));
    }
    at::Tensor mixed = TextAttention(at::linear(x, weight, bias), relative, options);
    if (first.defined()) {
      mixed = mixed.index_select(0, first);
      x = x.index_select(0, first);
    }
    x = pass.Norm(x.add(pass.Drop(pass.Linear(mixed, layer.attention_output))),
                  layer.attention_norm);
    const at::Tensor hidden = Activated(pass.Linear(x, layer.linear1));
    return pass.Norm(x.add(pass.Drop(pass.Linear(hidden, layer.linear2))), layer.norm);
  }

  at::Tensor Activated(const at::Tensor& x) const {
    switch (config_.activation) {
      case TextConfig::Activation::kGelu:
        return at::gelu(x);
      case TextConfig::Activation::kGeluTanh:
        return at::gelu(x, "tanh");
      case TextConfig::Activation::kRelu:
        return at::relu(x);
    }
    return x;
  }

  const InputColumns columns_;
  const TextConfig config_;
  const double dropout_;
  size_t tokens_ = 0, positions_ = 0, types_ = 0;
  NormParameters embedding_norm_;
  std::optional<RelativeBuckets> buckets_;  // of disentangled attention
  size_t distances_ = 0;
  NormParameters distance_norm_;
  std::vector<Layer> layers_;
  LinearParameters pooler_, column_layer_, output_;
  bool recompute_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateBertEncoder(const ModelSpec& spec,
                                                         const ModelShape& shape,
                                                         Parameters& parameters) {
  const std::string& architecture = spec.text->architecture;
  if (!spec.pretrained.has_value() || spec.pretrained->config.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.text.architecture: ", architecture,
                     ": its sizes are in the config.json of model.pretrained.folder"));
  }
  ASSIGN_OR_RETURN(const TextConfig config, ParseTextConfig(architecture, spec.pretrained->config));
  // The shape's last id stands for an empty text, which no such tokenizer makes.
  if (shape.vocabulary - 1 > config.vocabulary) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.pretrained.folder: the tokenizer has ids up to ", shape.vocabulary - 2,
                     ", but the network has a vocab_size of ", config.vocabulary));
  }
  if (shape.max_tokens > config.max_tokens()) {
    return absl::InvalidArgumentError(
        absl::StrCat("data.text.max_tokens: ", shape.max_tokens, " is above ", config.max_tokens(),
                     ", the network's positions for the tokens of a text"));
  }
  if (architecture == "modernbert") {
    return MakeModernBert(config, spec.text->dropout, shape, parameters);
  }
  return std::make_unique<BertEncoder>(config, BertNamesOf(architecture), spec.text->dropout, shape,
                                       parameters);
}

}  // namespace traind
