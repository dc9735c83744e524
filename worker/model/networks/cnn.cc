#include "worker/model/networks/cnn.h"

#include <ATen/ops/max_pool2d.h>
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/data/weights/image_architectures.h"
#include "worker/model/networks/conv_norm.h"
#include "worker/model/networks/convnext.h"
#include "worker/model/networks/efficientnet.h"
#include "worker/model/networks/image_network.h"
#include "worker/model/networks/vit.h"

namespace traind {
namespace {

// Units one after the other; what came in is added before the last one's ReLU.
struct CnnBlock {
  std::vector<ConvNorm> units;
  std::optional<ConvNorm> shortcut;

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
    for (const ConvNorm& unit : units) unit.AddPlaces(places);
    if (shortcut) shortcut->AddPlaces(places);
    return places;
  }
};

// The sizes of a block's input and output.
struct BlockSizes {
  int64_t in = 0, width = 0, stride = 1;
  bool bottleneck = false;  // three convolutions, and four times the width goes out

  int64_t out() const { return bottleneck ? 4 * width : width; }
};

// The names of our own network, and those of torchvision and timm.
ConvNormNames OwnNames(const std::string& unit) { return {unit + ".conv", unit + ".norm"}; }

std::string NameOfBlock(bool resnet, size_t stage, int64_t i) {
  return resnet ? absl::StrCat("layer", stage + 1, ".", i, ".")
                : absl::StrCat("stages.", stage, ".", i, ".");
}

ConvNormNames NamesInBlock(bool resnet, const std::string& block, int64_t k) {
  if (resnet) return {absl::StrCat(block, "conv", k + 1), absl::StrCat(block, "bn", k + 1)};
  return OwnNames(block + (k == 0 ? "first" : "second"));
}

CnnBlock DeclareBlock(bool resnet, const std::string& name, const BlockSizes& sizes,
                      Parameters& parameters) {
  CnnBlock block;
  const int64_t width = sizes.width, out = sizes.out();
  const auto add = [&](int64_t in, int64_t to, int64_t size, int64_t stride) {
    const auto k = static_cast<int64_t>(block.units.size());
    block.units.emplace_back(NamesInBlock(resnet, name, k), ConvSizes{in, to, size, stride},
                             parameters);
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
    const ConvNormNames names = resnet ? ConvNormNames{name + "downsample.0", name + "downsample.1"}
                                       : OwnNames(name + "shortcut");
    block.shortcut.emplace(names, ConvSizes{sizes.in, out, 1, sizes.stride}, parameters);
  }
  return block;
}

ConvNorm DeclareStem(const ImageArchitecture* resnet, int64_t channels, int64_t width,
                     Parameters& parameters) {
  parameters.SetDepth(0);
  if (resnet != nullptr) {
    return ConvNorm({"conv1", "bn1"}, {channels, resnet->width, 7, 2}, parameters);
  }
  return ConvNorm(OwnNames("stem"), {channels, width, 3, 1}, parameters);
}

class Cnn final : public ImageNetwork {
 public:
  // resnet: one with a name; null: our own network.
  Cnn(const plain::CnnSpec& spec, const ImageArchitecture* resnet, const ModelShape& shape,
      Parameters& parameters)
      : ImageNetwork(spec, shape, parameters),
        resnet_(resnet != nullptr),
        stem_(DeclareStem(resnet, shape.image[0], spec.width, parameters)) {
    BlockSizes sizes;
    sizes.in = sizes.width = resnet_ ? resnet->width : spec.width;
    sizes.bottleneck = resnet_ && resnet->family == ImageFamily::kBottleneckResnet;
    std::vector<int64_t> blocks(spec.blocks.begin(), spec.blocks.end());
    if (resnet_) blocks.assign(resnet->stages().begin(), resnet->stages().end());
    int64_t depth = 0;
    for (size_t stage = 0; stage < blocks.size(); ++stage) {
      for (int64_t i = 0; i < blocks[stage]; ++i) {
        sizes.stride = stage > 0 && i == 0 ? 2 : 1;
        parameters.SetDepth(++depth);
        blocks_.push_back(DeclareBlock(resnet_, NameOfBlock(resnet_, stage, i), sizes, parameters));
        sizes.in = sizes.out();
      }
      sizes.width *= 2;
    }
    DeclareHead(resnet_ ? "fc" : "head", sizes.in, shape.outputs, parameters);
  }

  void UseLoops(bool on) override { loops_ = on; }

 private:
  at::Tensor Pooled(const std::vector<at::Tensor>& weights, const at::Tensor& image,
                    const Pass& pass) const override {
    const auto mode = [this](const Pass& of) { return PassMode{of.training, loops_}; };
    Pass own_pass = pass.Of(0);
    std::vector<size_t> stem_places;
    stem_.AddPlaces(stem_places);
    at::Tensor x = Run(
        [this, own_mode = mode(own_pass)](const auto& own, const auto& in) {
          const at::Tensor y = stem_.Forward(own, in[0], {}, /*relu=*/true, own_mode);
          return resnet_ ? at::max_pool2d(y, {3, 3}, {2, 2}, {1, 1}) : y;
        },
        weights, stem_places, image, own_pass);
    int64_t depth = 0;
    for (const CnnBlock& block : blocks_) {
      own_pass = pass.Of(++depth);
      x = Run([&block, own_mode = mode(own_pass)](
                  const auto& own, const auto& in) { return block.Forward(own, in[0], own_mode); },
              weights, block.Places(), x, own_pass);
    }
    return x.mean({2, 3});
  }

  const bool resnet_;
  bool loops_ = true;
  const ConvNorm stem_;
  std::vector<CnnBlock> blocks_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateCnn(const ModelSpec& spec, const ModelShape& shape,
                                                 Parameters& parameters) {
  const std::string& name = spec.cnn->architecture;
  const ImageArchitecture* const known = FindImageArchitecture(name);
  if (known == nullptr && !name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("model.cnn.architecture: ", name));
  }
  if (known != nullptr) {
    switch (known->family) {
      case ImageFamily::kVit:
        return CreateVit(spec, *known, shape, parameters);
      case ImageFamily::kConvnext:
      case ImageFamily::kSmallConvnext:
        return CreateConvnext(spec, *known, shape, parameters);
      case ImageFamily::kEfficientnet:
        return CreateEfficientnet(spec, *known, shape, parameters);
      case ImageFamily::kResnet:
      case ImageFamily::kBottleneckResnet:
        break;
    }
  }
  return std::make_unique<Cnn>(*spec.cnn, known, shape, parameters);
}

}  // namespace traind
