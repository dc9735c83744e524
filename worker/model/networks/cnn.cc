#include "worker/model/networks/cnn.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "worker/model/networks/batch_norm.h"
#include "worker/model/networks/dropout.h"
#include "worker/model/networks/input_columns.h"
#include "worker/model/networks/recompute.h"

namespace traind {
namespace {

// Options of a forward pass.
struct PassMode {
  bool training = false;
  bool loops = true;  // handwritten loops where there are some
};

// A convolution and its batch norm.
struct Unit {
  Unit(const std::string& name, int64_t in, int64_t out, int64_t size, int64_t with_stride,
       Parameters& parameters)
      : stride(with_stride), padding(size / 2) {
    // He et al. 2015: outputs keep the variance of inputs that passed through a ReLU.
    const double scale = std::sqrt(2.0 / static_cast<double>(size * size * out));
    const auto constant = [](double value) { return Initial{Initial::Kind::kConstant, value, -1}; };
    weight = parameters.Declare(name + ".conv.weight", {out, in, size, size},
                                {Initial::Kind::kNormal, scale, -1});
    norm_weight = parameters.Declare(name + ".norm.weight", {out}, constant(1));
    norm_bias = parameters.Declare(name + ".norm.bias", {out}, constant(0));
    mean = parameters.DeclareBuffer(name + ".norm.running_mean", {out}, 0);
    variance = parameters.DeclareBuffer(name + ".norm.running_var", {out}, 1);
  }

  // add: added to the norm's output before the ReLU; may be undefined.
  at::Tensor Forward(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                     const at::Tensor& add, bool relu, const PassMode& mode) const {
    if (mode.loops && !mode.training) return Answer(weights, x, add, relu);
    // With a single channel the memory order of the output is ambiguous, so it is set here.
    const at::Tensor y = at::conv2d(x, weights[weight], {}, stride, padding)
                             .contiguous(at::MemoryFormat::ChannelsLast);
    const BatchNorm norm{weights[norm_weight], weights[norm_bias], weights[mean],
                         weights[variance]};
    return NormAddAct(norm, y, add, relu, mode.training, mode.loops);
  }

  // Outside of training the norm is a factor and an offset per channel, which
  // fold into the convolution.
  at::Tensor Answer(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                    const at::Tensor& add, bool relu) const {
    const at::Tensor factor =
        weights[norm_weight] * (weights[variance] + BatchNorm::kEps).rsqrt();  // [out]
    const at::Tensor bias = weights[norm_bias] - weights[mean] * factor;
    at::Tensor y =
        at::conv2d(x, weights[weight] * factor.view({-1, 1, 1, 1}), bias, stride, padding);
    if (add.defined()) y = y.add_(add);
    return relu ? y.relu_() : y;
  }

  void AddPlaces(std::vector<size_t>& places) const {
    for (const size_t at : {weight, norm_weight, norm_bias, mean, variance}) places.push_back(at);
  }

  int64_t stride = 1, padding = 0;
  size_t weight = 0, norm_weight = 0, norm_bias = 0, mean = 0, variance = 0;
};

struct CnnBlock {
  Unit first, second;
  std::optional<Unit> shortcut;

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                     const PassMode& mode) const {
    const at::Tensor past = shortcut ? shortcut->Forward(weights, x, {}, /*relu=*/false, mode) : x;
    const at::Tensor y = first.Forward(weights, x, {}, /*relu=*/true, mode);
    return second.Forward(weights, y, past, /*relu=*/true, mode);
  }

  std::vector<size_t> Places() const {
    std::vector<size_t> places;
    first.AddPlaces(places);
    second.AddPlaces(places);
    if (shortcut) shortcut->AddPlaces(places);
    return places;
  }
};

class Cnn final : public Model {
 public:
  Cnn(const plain::CnnSpec& spec, const ModelShape& shape, Parameters& parameters)
      : columns_(shape, parameters),
        dropout_(spec.dropout),
        mirror_(spec.mirror),
        stem_("stem", shape.image[0], spec.width, 3, 1, parameters) {
    int64_t in = spec.width, out = in;
    for (size_t stage = 0; stage < spec.blocks.size(); ++stage) {
      for (int64_t i = 0; i < spec.blocks[stage]; ++i) {
        const std::string name = absl::StrCat("stages.", stage, ".", i, ".");
        const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        CnnBlock block{Unit(name + "first", in, out, 3, stride, parameters),
                       Unit(name + "second", out, out, 3, 1, parameters), std::nullopt};
        if (in != out) block.shortcut.emplace(name + "shortcut", in, out, 1, stride, parameters);
        blocks_.push_back(std::move(block));
        in = out;
      }
      out *= 2;
    }
    head_ = DeclareLinear("head", in + columns_.width(), shape.outputs, parameters);
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                     bool training) const override {
    at::Tensor answer = ForwardOne(weights, inputs, training);
    if (training || !mirror_) return answer;
    Inputs mirrored = inputs;
    mirrored.image = inputs.image.flip({3});
    return answer.add_(ForwardOne(weights, mirrored, training)).mul_(0.5);
  }

  bool SetRecompute(bool on) override {
    recompute_ = on;
    return true;
  }
  void UseLoops(bool on) override { loops_ = on; }

 private:
  at::Tensor ForwardOne(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                        bool training) const {
    const PassMode mode{training, loops_};
    // With activation checkpointing only the outputs of these parts are kept.
    const auto run = [&](const Part& part, const std::vector<size_t>& used, const at::Tensor& in) {
      return training && recompute_ ? RecomputedPart(part, weights, used, {in})
                                    : part(weights, {in});
    };
    std::vector<size_t> stem_places;
    stem_.AddPlaces(stem_places);
    at::Tensor x = run(
        [this, mode](const auto& own, const auto& in) {
          return stem_.Forward(own, in[0], {}, /*relu=*/true, mode);
        },
        stem_places, inputs.image);
    for (const CnnBlock& block : blocks_) {
      x = run([&block, mode](const auto& own,
                             const auto& in) { return block.Forward(own, in[0], mode); },
              block.Places(), x);
    }
    x = x.mean({2, 3});  // [B, channels]
    if (columns_.width() > 0) x = at::cat({x, columns_.Concatenate(weights, inputs)}, 1);
    if (training && dropout_ > 0) x = Dropout(x, dropout_, inputs.dropout_seed);
    return at::linear(x, weights[head_.weight], weights[head_.bias]);
  }

  const InputColumns columns_;
  const double dropout_;
  const bool mirror_;
  bool loops_ = true, recompute_ = false;
  const Unit stem_;
  std::vector<CnnBlock> blocks_;
  LinearParameters head_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateCnn(const ModelSpec& spec, const ModelShape& shape,
                                                 Parameters& parameters) {
  return std::make_unique<Cnn>(*spec.cnn, shape, parameters);
}

}  // namespace traind
