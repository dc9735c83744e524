#include "worker/model/networks/efficientnet.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <absl/strings/str_cat.h>

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/model/networks/conv_norm.h"
#include "worker/model/networks/image_network.h"

namespace traind {
namespace {

using Tensors = std::vector<at::Tensor>;

struct StageSizes {
  int64_t widening, kernel, stride, out;
};
constexpr std::array<StageSizes, 7> kStages = {{{1, 3, 1, 16},
                                                {6, 3, 2, 24},
                                                {6, 5, 2, 40},
                                                {6, 3, 2, 80},
                                                {6, 5, 1, 112},
                                                {6, 5, 2, 192},
                                                {6, 3, 1, 320}}};
constexpr int64_t kLastWidth = 1280, kSqueeze = 4;

struct Block {
  std::optional<ConvNorm> widen;
  ConvNorm depthwise;
  LinearParameters reduce, expand;  // 1x1 convolutions
  ConvNorm narrow;
  bool past = false;  // the input is added to the answer

  std::vector<size_t> Places() const {
    std::vector<size_t> places = {reduce.weight, reduce.bias, expand.weight, expand.bias};
    if (widen) widen->AddPlaces(places);
    depthwise.AddPlaces(places);
    narrow.AddPlaces(places);
    return places;
  }
};

LinearParameters DeclarePointwise(const std::string& name, int64_t in, int64_t out,
                                  Parameters& parameters) {
  const double scale = std::sqrt(2.0 / static_cast<double>(out));
  return {
      parameters.Declare(name + ".weight", {out, in, 1, 1}, {Initial::Kind::kNormal, scale, -1}),
      parameters.Declare(name + ".bias", {out}, {Initial::Kind::kConstant, 0, -1})};
}

Block DeclareBlock(const std::string& name, const StageSizes& sizes, int64_t in, int64_t stride,
                   Parameters& parameters) {
  const bool widens = sizes.widening > 1;
  const int64_t inside = sizes.widening * in;
  std::optional<ConvNorm> widen;
  if (widens)
    widen.emplace(ConvNormNames{name + "conv_pw", name + "bn1"}, ConvSizes{in, inside}, parameters);
  ConvNorm depthwise({name + "conv_dw", name + (widens ? "bn2" : "bn1")},
                     {inside, inside, sizes.kernel, stride, /*depthwise=*/true}, parameters);
  const int64_t squeezed = in / kSqueeze;
  const LinearParameters reduce =
      DeclarePointwise(name + "se.conv_reduce", inside, squeezed, parameters);
  const LinearParameters expand =
      DeclarePointwise(name + "se.conv_expand", squeezed, inside, parameters);
  ConvNorm narrow({name + (widens ? "conv_pwl" : "conv_pw"), name + (widens ? "bn3" : "bn2")},
                  {inside, sizes.out}, parameters);
  return {std::move(widen), std::move(depthwise), reduce,
          expand,           std::move(narrow),    stride == 1 && in == sizes.out};
}

class Efficientnet final : public ImageNetwork {
 public:
  Efficientnet(const plain::CnnSpec& spec, const ImageArchitecture& sizes, const ModelShape& shape,
               Parameters& parameters)
      : ImageNetwork(spec, shape, parameters),
        stem_(DeclareStem(sizes.width, shape.image[0], parameters)) {
    int64_t in = sizes.width, depth = 0;
    for (size_t stage = 0; stage < kStages.size(); ++stage) {
      for (int64_t i = 0; i < sizes.blocks[stage]; ++i) {
        parameters.SetDepth(++depth);
        blocks_.push_back(DeclareBlock(absl::StrCat("blocks.", stage, ".", i, "."), kStages[stage],
                                       in, i == 0 ? kStages[stage].stride : 1, parameters));
        in = kStages[stage].out;
      }
    }
    last_.emplace(ConvNormNames{"conv_head", "bn2"}, ConvSizes{in, kLastWidth}, parameters);
    DeclareHead("classifier", kLastWidth, shape.outputs, parameters);
  }

  void UseLoops(bool on) override { loops_ = on; }

 private:
  static ConvNorm DeclareStem(int64_t width, int64_t channels, Parameters& parameters) {
    parameters.SetDepth(0);
    return ConvNorm({"conv_stem", "bn1"}, {channels, width, 3, 2}, parameters);
  }

  at::Tensor Pooled(const Tensors& weights, const at::Tensor& image,
                    const Pass& pass) const override {
    const auto with_silu = [this, &weights](const ConvNorm& unit, const at::Tensor& x,
                                            const Pass& own_pass) {
      std::vector<size_t> places;
      unit.AddPlaces(places);
      const Part part = [&unit, mode = PassMode{own_pass.training, loops_}](const Tensors& own,
                                                                            const Tensors& in) {
        return at::silu(unit.Forward(own, in[0], {}, /*relu=*/false, mode));
      };
      return Run(part, weights, places, x, own_pass);
    };
    at::Tensor x = with_silu(stem_, image, pass.Of(0));
    for (size_t k = 0; k < blocks_.size(); ++k) {
      const Pass of_block = pass.Of(static_cast<int64_t>(k) + 1);
      x = Run(
          [this, k, of_block](const Tensors& own, const Tensors& in) {
            return Through(own, k, in[0], {of_block.training, loops_}, of_block);
          },
          weights, blocks_[k].Places(), x, of_block);
    }
    // What comes behind the last block has its depth.
    return with_silu(*last_, x, pass.Of(static_cast<int64_t>(blocks_.size()))).mean({2, 3});
  }

  at::Tensor Through(const Tensors& weights, size_t k, const at::Tensor& x, const PassMode& mode,
                     const Pass& pass) const {
    const Block& block = blocks_[k];
    const auto unit = [&](const ConvNorm& own, const at::Tensor& from) {
      return own.Forward(weights, from, {}, /*relu=*/false, mode);
    };
    const auto pointwise = [&](const LinearParameters& p, const at::Tensor& from) {
      return at::conv2d(from, weights[p.weight], weights[p.bias]);
    };
    at::Tensor y = block.widen ? at::silu(unit(*block.widen, x)) : x;
    y = at::silu(unit(block.depthwise, y));
    const at::Tensor squeezed = at::silu(pointwise(block.reduce, y.mean({2, 3}, /*keepdim=*/true)));
    y = y.mul(at::sigmoid(pointwise(block.expand, squeezed)));
    y = unit(block.narrow, y);
    return block.past ? x.add(DropPath(y, k, blocks_.size(), 0, pass)) : y;
  }

  bool loops_ = true;
  const ConvNorm stem_;
  std::vector<Block> blocks_;
  std::optional<ConvNorm> last_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateEfficientnet(const ModelSpec& spec,
                                                          const ImageArchitecture& architecture,
                                                          const ModelShape& shape,
                                                          Parameters& parameters) {
  return std::make_unique<Efficientnet>(*spec.cnn, architecture, shape, parameters);
}

}  // namespace traind
