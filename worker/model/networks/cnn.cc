#include "worker/model/networks/cnn.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/data/weights/resnet_sizes.h"
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

// The names of a convolution and of its batch norm.
struct UnitNames {
  std::string conv, norm;
};

// A convolution and its batch norm.
struct Unit {
  Unit(const UnitNames& names, int64_t in, int64_t out, int64_t size, int64_t with_stride,
       Parameters& parameters)
      : stride(with_stride), padding(size / 2) {
    // He et al. 2015: outputs keep the variance of inputs that passed through a ReLU.
    const double scale = std::sqrt(2.0 / static_cast<double>(size * size * out));
    const auto constant = [](double value) { return Initial{Initial::Kind::kConstant, value, -1}; };
    weight = parameters.Declare(names.conv + ".weight", {out, in, size, size},
                                {Initial::Kind::kNormal, scale, -1});
    norm_weight = parameters.Declare(names.norm + ".weight", {out}, constant(1));
    norm_bias = parameters.Declare(names.norm + ".bias", {out}, constant(0));
    mean = parameters.DeclareBuffer(names.norm + ".running_mean", {out}, 0);
    variance = parameters.DeclareBuffer(names.norm + ".running_var", {out}, 1);
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

// Units one after the other; what came in is added before the last one's ReLU.
struct CnnBlock {
  std::vector<Unit> units;
  std::optional<Unit> shortcut;

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                     const PassMode& mode) const {
    const at::Tensor past = shortcut ? shortcut->Forward(weights, x, {}, /*relu=*/false, mode) : x;
    at::Tensor y = x;
    for (size_t i = 0; i < units.size(); ++i) {
      const bool last = i + 1 == units.size();
      y = units[i].Forward(weights, y, last ? past : at::Tensor(), /*relu=*/true, mode);
    }
    return y;
  }

  std::vector<size_t> Places() const {
    std::vector<size_t> places;
    for (const Unit& unit : units) unit.AddPlaces(places);
    if (shortcut) shortcut->AddPlaces(places);
    return places;
  }
};

// What a block makes of its input.
struct BlockSizes {
  int64_t in = 0, width = 0, stride = 1;
  bool bottleneck = false;  // three convolutions, and four times the width goes out

  int64_t out() const { return bottleneck ? 4 * width : width; }
};

// The names of our own network, and those of torchvision and timm.
UnitNames OwnNames(const std::string& unit) { return {unit + ".conv", unit + ".norm"}; }

std::string NameOfBlock(bool resnet, size_t stage, int64_t i) {
  return resnet ? absl::StrCat("layer", stage + 1, ".", i, ".")
                : absl::StrCat("stages.", stage, ".", i, ".");
}

UnitNames NamesInBlock(bool resnet, const std::string& block, int64_t k) {
  if (resnet) return {absl::StrCat(block, "conv", k + 1), absl::StrCat(block, "bn", k + 1)};
  return OwnNames(block + (k == 0 ? "first" : "second"));
}

CnnBlock DeclareBlock(bool resnet, const std::string& name, const BlockSizes& sizes,
                      Parameters& parameters) {
  CnnBlock block;
  const int64_t width = sizes.width, out = sizes.out();
  const auto add = [&](int64_t in, int64_t to, int64_t size, int64_t stride) {
    const auto k = static_cast<int64_t>(block.units.size());
    block.units.emplace_back(NamesInBlock(resnet, name, k), in, to, size, stride, parameters);
  };
  if (sizes.bottleneck) {
    add(sizes.in, width, 1, 1);
    add(width, width, 3, sizes.stride);
    add(width, out, 1, 1);
  } else {
    add(sizes.in, width, 3, sizes.stride);
    add(width, out, 3, 1);
  }
  if (sizes.in != out || sizes.stride > 1) {
    const UnitNames names = resnet ? UnitNames{name + "downsample.0", name + "downsample.1"}
                                   : OwnNames(name + "shortcut");
    block.shortcut.emplace(names, sizes.in, out, 1, sizes.stride, parameters);
  }
  return block;
}

class Cnn final : public Model {
 public:
  // resnet: one with a name; null: our own network.
  Cnn(const plain::CnnSpec& spec, const ResnetSizes* resnet, const ModelShape& shape,
      Parameters& parameters)
      : columns_(shape, parameters),
        dropout_(spec.dropout),
        mirror_(spec.mirror),
        resnet_(resnet != nullptr),
        stem_(resnet_ ? Unit({"conv1", "bn1"}, shape.image[0], kResnetWidth, 7, 2, parameters)
                      : Unit(OwnNames("stem"), shape.image[0], spec.width, 3, 1, parameters)) {
    BlockSizes sizes;
    sizes.in = sizes.width = resnet_ ? kResnetWidth : spec.width;
    sizes.bottleneck = resnet_ && resnet->bottleneck;
    std::vector<int64_t> blocks(spec.blocks.begin(), spec.blocks.end());
    if (resnet_) blocks.assign(resnet->blocks.begin(), resnet->blocks.end());
    for (size_t stage = 0; stage < blocks.size(); ++stage) {
      for (int64_t i = 0; i < blocks[stage]; ++i) {
        sizes.stride = stage > 0 && i == 0 ? 2 : 1;
        blocks_.push_back(DeclareBlock(resnet_, NameOfBlock(resnet_, stage, i), sizes, parameters));
        sizes.in = sizes.out();
      }
      sizes.width *= 2;
    }
    head_ = DeclareLinear(resnet_ ? "fc" : "head", sizes.in + columns_.width(), shape.outputs,
                          parameters);
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
          const at::Tensor y = stem_.Forward(own, in[0], {}, /*relu=*/true, mode);
          return resnet_ ? at::max_pool2d(y, {3, 3}, {2, 2}, {1, 1}) : y;
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
  const bool mirror_, resnet_;
  bool loops_ = true, recompute_ = false;
  const Unit stem_;
  std::vector<CnnBlock> blocks_;
  LinearParameters head_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateCnn(const ModelSpec& spec, const ModelShape& shape,
                                                 Parameters& parameters) {
  const std::string& architecture = spec.cnn->architecture;
  const ResnetSizes* const resnet = FindResnet(architecture);
  if (resnet == nullptr && !architecture.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("model.cnn.architecture: ", architecture));
  }
  return std::make_unique<Cnn>(*spec.cnn, resnet, shape, parameters);
}

}  // namespace traind
