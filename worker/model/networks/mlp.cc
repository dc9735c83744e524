#include "worker/model/networks/mlp.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <absl/strings/str_cat.h>

#include <vector>

#include "worker/model/networks/dropout.h"
#include "worker/model/networks/input_columns.h"

namespace traind {
namespace {

class Mlp final : public Model {
 public:
  Mlp(const plain::MlpSpec& spec, const ModelShape& shape, Parameters& parameters)
      : columns_(shape, parameters), dropout_(spec.dropout) {
    int64_t width = columns_.width() * shape.window;
    for (const int64_t hidden : spec.hidden) {
      AddLayer(parameters, width, hidden);
      width = hidden;
    }
    AddLayer(parameters, width, shape.outputs);
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                     bool training) const override {
    at::Tensor x = columns_.Concatenate(weights, inputs).flatten(1);  // [B, width]
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      x = at::linear(x, weights[layers_[i].weight], weights[layers_[i].bias]);
      x = at::relu_(x);
      if (training && dropout_ > 0) x = Dropout(x, dropout_, inputs.dropout_seed + i);
    }
    const LinearParameters& head = layers_.back();
    return at::linear(x, weights[head.weight], weights[head.bias]);
  }

 private:
  void AddLayer(Parameters& parameters, int64_t in, int64_t out) {
    layers_.push_back(DeclareLinear(absl::StrCat("layers.", layers_.size()), in, out, parameters));
  }

  const InputColumns columns_;
  const double dropout_;
  std::vector<LinearParameters> layers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateMlp(const ModelSpec& spec, const ModelShape& shape,
                                                 Parameters& parameters) {
  return std::make_unique<Mlp>(*spec.mlp, shape, parameters);
}

}  // namespace traind
