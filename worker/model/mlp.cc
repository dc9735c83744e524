#include "worker/model/mlp.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "worker/data/row_encoder.h"
#include "worker/model/dropout.h"

namespace traind {
namespace {

class Mlp final : public Model {
 public:
  Mlp(const ModelSpec& spec, const ModelShape& shape, Parameters& parameters)
      : parameters_(parameters), dropout_(spec.dropout), numeric_(shape.numeric) {
    int64_t width = shape.numeric;
    for (size_t i = 0; i < shape.cardinalities.size(); ++i) {
      const int64_t embedding = EmbeddingWidth(shape.cardinalities[i]);
      // What no training row has is told by nothing rather than by noise.
      const Initial initial{Initial::Kind::kNormal, 1.0, kUnseenInputCode};
      embeddings_.push_back(parameters.Declare(absl::StrCat("embeddings.", i, ".weight"),
                                               {shape.cardinalities[i], embedding}, initial));
      width += embedding;
    }
    for (const int64_t hidden : spec.hidden) {
      AddLayer(width, hidden);
      width = hidden;
    }
    AddLayer(width, shape.outputs);
  }

  at::Tensor Forward(const Inputs& inputs, bool training) const override {
    at::Tensor x = Concatenate(inputs);  // [B, width]
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      x = at::linear(x, parameters_[layers_[i].weight], parameters_[layers_[i].bias]);
      x = at::relu_(x);
      if (training && dropout_ > 0) x = Dropout(x, dropout_, inputs.dropout_seed + i);
    }
    const Layer& head = layers_.back();
    return at::linear(x, parameters_[head.weight], parameters_[head.bias]);
  }

 private:
  struct Layer {
    size_t weight = 0, bias = 0;
  };

  // As torch.nn.Linear starts: both uniform within 1 / sqrt(inputs).
  void AddLayer(int64_t in, int64_t out) {
    const Initial initial{Initial::Kind::kUniform,
                          1.0 / std::sqrt(static_cast<double>(std::max<int64_t>(1, in))), -1};
    const size_t i = layers_.size();
    Layer layer;
    layer.weight = parameters_.Declare(absl::StrCat("layers.", i, ".weight"), {out, in}, initial);
    layer.bias = parameters_.Declare(absl::StrCat("layers.", i, ".bias"), {out}, initial);
    layers_.push_back(layer);
  }

  at::Tensor Concatenate(const Inputs& inputs) const {
    if (embeddings_.empty()) return inputs.numeric;
    std::vector<at::Tensor> parts;
    parts.reserve(embeddings_.size() + 1);
    if (numeric_ > 0) parts.push_back(inputs.numeric);
    const at::Tensor columns = inputs.codes.t().contiguous();  // [columns, B]
    for (size_t i = 0; i < embeddings_.size(); ++i) {
      parts.push_back(
          at::embedding(parameters_[embeddings_[i]], columns.select(0, static_cast<int64_t>(i))));
    }
    return at::cat(parts, 1);
  }

  Parameters& parameters_;
  const double dropout_;
  const int64_t numeric_;
  std::vector<size_t> embeddings_;
  std::vector<Layer> layers_;
};

}  // namespace

int64_t EmbeddingWidth(int64_t cardinality) {
  return std::clamp<int64_t>((cardinality + 1) / 2, 1, 50);
}

std::unique_ptr<Model> CreateMlp(const ModelSpec& spec, const ModelShape& shape,
                                 Parameters& parameters) {
  return std::make_unique<Mlp>(spec, shape, parameters);
}

}  // namespace traind
