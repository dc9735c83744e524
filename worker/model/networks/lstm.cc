#include "worker/model/networks/lstm.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/lstm.h>
#include <ATen/ops/zeros.h>
#include <absl/strings/str_cat.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "worker/model/networks/dropout.h"
#include "worker/model/networks/input_columns.h"

namespace traind {
namespace {

// Drops warnings.
class Silent final : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

class Lstm final : public Model {
 public:
  Lstm(const plain::LstmSpec& spec, const ModelShape& shape, Parameters& parameters)
      : columns_(shape, parameters), hidden_(spec.hidden), dropout_(spec.dropout) {
    // torch.nn.LSTM starts with the same distribution.
    const Initial initial{Initial::Kind::kUniform, 1.0 / std::sqrt(static_cast<double>(hidden_)),
                          -1};
    int64_t in = columns_.width();
    for (int64_t k = 0; k < spec.layers; ++k) {
      const auto declare = [&](const char* name, std::vector<int64_t> size) {
        return parameters.Declare(absl::StrCat("lstm.", name, "_l", k), std::move(size), initial);
      };
      layers_.push_back({declare("weight_ih", {4 * hidden_, in}),
                         declare("weight_hh", {4 * hidden_, hidden_}),
                         declare("bias_ih", {4 * hidden_}), declare("bias_hh", {4 * hidden_})});
      in = hidden_;
    }
    head_ = DeclareLinear("head", hidden_, shape.outputs, parameters);
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                     bool training) const override {
    at::Tensor x = columns_.Sequence(weights, inputs).transpose(0, 1).contiguous();
    for (size_t k = 0; k < layers_.size(); ++k) {  // x: [T, B, width]
      if (k > 0 && training && dropout_ > 0) x = Dropout(x, dropout_, inputs.dropout_seed + k);
      const Layer& layer = layers_[k];
      const at::Tensor start = at::zeros({1, x.size(1), hidden_}, x.options());
      // On a GPU torch warns at each call that it copies the weights, because they lie among the
      // network's other ones.
      static c10::WarningHandler* const silent = new Silent;
      const c10::WarningUtils::WarningHandlerGuard quiet(silent);
      // One layer per call, because the dropout between layers is our own.
      x = std::get<0>(at::lstm(x, {start, start},
                               {weights[layer.weight_ih], weights[layer.weight_hh],
                                weights[layer.bias_ih], weights[layer.bias_hh]},
                               /*has_biases=*/true, /*num_layers=*/1, /*dropout=*/0, training,
                               /*bidirectional=*/false, /*batch_first=*/false));
    }
    return at::linear(x.select(0, x.size(0) - 1), weights[head_.weight], weights[head_.bias]);
  }

 private:
  struct Layer {
    size_t weight_ih = 0, weight_hh = 0, bias_ih = 0, bias_hh = 0;
  };

  const InputColumns columns_;
  const int64_t hidden_;
  const double dropout_;
  std::vector<Layer> layers_;
  LinearParameters head_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateLstm(const ModelSpec& spec, const ModelShape& shape,
                                                  Parameters& parameters) {
  return std::make_unique<Lstm>(*spec.lstm, shape, parameters);
}

}  // namespace traind
