#include "worker/model/networks/lora.h"

#include <ATen/ops/matmul.h>
#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace traind {
namespace {

using Tensors = std::vector<at::Tensor>;

// The small ConvNeXts store the two linear layers of a block as 1x1 convolutions.
bool IsStoredAsConvolution(const ParameterInfo& info) {
  return info.shape.size() == 4 && info.shape[2] == 1 && info.shape[3] == 1 &&
         absl::StrContains(info.name, ".mlp.");
}

class Lora final : public BodyModel {
 public:
  Lora(std::unique_ptr<Model> network, const plain::LoraSpec& spec, Parameters& parameters)
      : network_(std::move(network)),
        factor_(spec.alpha / static_cast<double>(spec.rank)),
        own_count_(parameters.layout().size()) {
    for (size_t i = 0; i < own_count_; ++i) {
      const ParameterInfo info = parameters.layout()[i];
      if (info.depth == kHeadDepth || parameters.IsBuffer(i)) continue;
      parameters.Fix(i);
      absl::string_view name = info.name;
      // Embeddings have depth 0.
      if (info.depth == 0 || !absl::ConsumeSuffix(&name, ".weight")) continue;
      if (info.shape.size() != 2 && !IsStoredAsConvolution(info)) continue;
      const int64_t out = info.shape[0], in = info.shape[1];
      const double range = 1 / std::sqrt(static_cast<double>(in));  // as in PEFT
      parameters.SetDepth(info.depth);
      Change change;
      change.matrix = i;
      change.a = parameters.Declare(absl::StrCat(name, kLoraA), {spec.rank, in},
                                    {Initial::Kind::kUniform, range, -1});
      change.b = parameters.Declare(absl::StrCat(name, kLoraB), {out, spec.rank},
                                    {Initial::Kind::kConstant, 0, -1});
      changes_.push_back(change);
    }
    parameters.SetDepth(kHeadDepth);
  }

  bool changes() const { return !changes_.empty(); }
  bool SetRecompute(bool on) override { return network_->SetRecompute(on); }
  bool MayBeRecorded() const override { return network_->MayBeRecorded(); }
  void UseLoops(bool on) override { network_->UseLoops(on); }
  void Start(const Parameters& parameters) const override { network_->Start(parameters); }

  int64_t body_width() const override { return network_->body()->body_width(); }

  at::Tensor Body(const Tensors& weights, const Inputs& inputs, bool training) const override {
    Tensors merged(weights.begin(), weights.begin() + static_cast<int64_t>(own_count_));
    for (const Change& change : changes_) {
      const at::Tensor product = at::matmul(weights[change.b], weights[change.a]);
      const at::Tensor& matrix = weights[change.matrix];
      merged[change.matrix] = matrix.add(product.view(matrix.sizes()), factor_);
    }
    return network_->body()->Body(merged, inputs, training);
  }

  at::Tensor Head(const Tensors& weights, const Inputs& inputs, const at::Tensor& body,
                  bool training) const override {
    return network_->body()->Head(weights, inputs, body, training);
  }

 private:
  // Indices of parameters.
  struct Change {
    size_t matrix = 0, a = 0, b = 0;
  };

  const std::unique_ptr<Model> network_;
  const double factor_;
  const size_t own_count_;  // the network's own parameters come first
  std::vector<Change> changes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> WithLora(std::unique_ptr<Model> network,
                                                const plain::LoraSpec& spec,
                                                Parameters& parameters) {
  if (network->body() == nullptr) {
    return absl::InvalidArgumentError("model.lora: needs a network with an architecture");
  }
  auto lora = std::make_unique<Lora>(std::move(network), spec, parameters);
  if (!lora->changes()) {
    return absl::InvalidArgumentError("model.lora: the network's body has no linear layers");
  }
  return std::unique_ptr<Model>(std::move(lora));
}

}  // namespace traind
