#include "worker/model/networks/mlp.h"

#include <ATen/ops/baddbmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <optional>
#include <vector>

#include "worker/model/networks/dropout.h"
#include "worker/model/networks/input_columns.h"
#include "worker/model/networks/periodic_embedding.h"

namespace traind {
namespace {

class Mlp final : public Model {
 public:
  Mlp(const plain::MlpSpec& spec, const ModelShape& shape, Parameters& parameters)
      : columns_(shape, parameters), dropout_(spec.dropout), members_(spec.ensemble_members) {
    int64_t width = columns_.width();
    if (spec.numeric_embedding.has_value() && shape.numeric > 0) {
      embedding_.emplace(*spec.numeric_embedding, shape.numeric, parameters);
      width += embedding_->width() - shape.numeric;
    }
    width *= shape.window;
    if (members_ > 1) DeclareFactors(width, parameters);
    for (const int64_t hidden : spec.hidden) {
      AddLayer(parameters, width, hidden);
      width = hidden;
    }
    if (members_ > 1) {
      DeclareHeads(width, shape.outputs, parameters);
    } else {
      AddLayer(parameters, width, shape.outputs);
    }
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                     bool training) const override {
    at::Tensor x = Columns(weights, inputs);  // [B, width]
    const int64_t rows = x.size(0);
    if (members_ > 1) x = x.unsqueeze(0).mul(weights[factors_].unsqueeze(1)).flatten(0, 1);
    const size_t hidden = layers_.size() - (members_ > 1 ? 0 : 1);
    for (size_t i = 0; i < hidden; ++i) {
      x = at::linear(x, weights[layers_[i].weight], weights[layers_[i].bias]);
      x = at::relu_(x);
      if (training && dropout_ > 0) x = Dropout(x, dropout_, inputs.dropout_seed + i);
    }
    if (members_ > 1) {
      const at::Tensor apart = x.view({members_, rows, x.size(1)});
      return at::baddbmm(weights[heads_.bias], apart, weights[heads_.weight]).flatten(0, 1);
    }
    const LinearParameters& head = layers_.back();
    return at::linear(x, weights[head.weight], weights[head.bias]);
  }

  int64_t members() const override { return members_; }

 private:
  void AddLayer(Parameters& parameters, int64_t in, int64_t out) {
    layers_.push_back(DeclareLinear(absl::StrCat("layers.", layers_.size()), in, out, parameters));
  }

  // They are what makes the members differ. As the authors of TabM found, embedded numbers need
  // more than signs.
  void DeclareFactors(int64_t width, Parameters& parameters) {
    const auto kind = embedding_.has_value() ? Initial::Kind::kNormal : Initial::Kind::kSign;
    factors_ = parameters.Declare("factors", {members_, width}, {kind, 1.0});
  }

  void DeclareHeads(int64_t width, int64_t outputs, Parameters& parameters) {
    const Initial within{Initial::Kind::kUniform, 1 / std::sqrt(static_cast<double>(width))};
    heads_.weight = parameters.Declare("heads.weight", {members_, width, outputs}, within);
    heads_.bias = parameters.Declare("heads.bias", {members_, 1, outputs}, within);
  }

  at::Tensor Columns(const std::vector<at::Tensor>& weights, const Inputs& inputs) const {
    if (!embedding_.has_value()) return columns_.Concatenate(weights, inputs).flatten(1);
    Inputs embedded = inputs;
    embedded.numeric = embedding_->Embed(weights, inputs.numeric);
    return columns_.Concatenate(weights, embedded).flatten(1);
  }

  const InputColumns columns_;
  const double dropout_;
  const int64_t members_;
  std::optional<PeriodicEmbedding> embedding_;
  size_t factors_ = 0;  // index of the parameter, if there are several members
  std::vector<LinearParameters> layers_;
  LinearParameters heads_;  // of the members
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateMlp(const ModelSpec& spec, const ModelShape& shape,
                                                 Parameters& parameters) {
  return std::make_unique<Mlp>(*spec.mlp, shape, parameters);
}

}  // namespace traind
