#include "worker/model/networks/convnext.h"

#include <ATen/ops/conv2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <absl/strings/str_cat.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "worker/model/networks/encoder_parameters.h"
#include "worker/model/networks/image_network.h"

namespace traind {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr double kEps = 1e-6;
constexpr int64_t kStem = 4, kDown = 2, kKernel = 7, kMlpRatio = 4;
constexpr Initial kScale{Initial::Kind::kConstant, 1e-6, -1};  // of a layer's answer

// Declared side by side in this order.
struct Block {
  size_t gamma = 0;
  LinearParameters convolution;
  NormParameters norm;
  LinearParameters fc1, fc2;
};
constexpr size_t kParametersOfBlock = 9;

// A convolution without overlap. In a stem the norm follows it, before a later stage it comes
// first.
struct Reduction {
  NormParameters norm;
  LinearParameters convolution;
};

// Tensors of pixels are [B, H, W, C], and contiguous.
at::Tensor Norm(const Tensors& weights, const NormParameters& p, const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, weights[p.weight], weights[p.bias], kEps);
}

// The convolution takes the same memory as [B, C, H, W] in channels-last order.
at::Tensor Convolved(const Tensors& weights, const LinearParameters& p, const at::Tensor& x,
                     int64_t stride, int64_t padding, int64_t groups) {
  return at::conv2d(x.permute({0, 3, 1, 2}), weights[p.weight], weights[p.bias], stride, padding,
                    /*dilation=*/1, groups)
      .contiguous(at::MemoryFormat::ChannelsLast)
      .permute({0, 2, 3, 1});
}

class Convnext final : public ImageNetwork {
 public:
  Convnext(const plain::CnnSpec& spec, const ImageArchitecture& sizes, const ModelShape& shape,
           Parameters& parameters)
      : ImageNetwork(spec, shape, parameters) {
    int64_t width = sizes.width, depth = 0;
    parameters.SetDepth(0);
    stem_.convolution = DeclareSmall("stem.0", {width, shape.image[0], kStem, kStem}, parameters);
    stem_.norm = DeclareNorm("stem.1", width, parameters);
    const auto stages = sizes.stages();
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      const std::string name = absl::StrCat("stages.", stage, ".");
      parameters.SetDepth(depth + 1);  // what leads to a stage belongs to its first block
      Reduction& down = downs_.emplace_back();
      if (stage > 0) {
        down.norm = DeclareNorm(name + "downsample.0", width, parameters);
        down.convolution =
            DeclareSmall(name + "downsample.1", {2 * width, width, kDown, kDown}, parameters);
        width *= 2;
      }
      std::vector<Block>& blocks = stages_.emplace_back();
      for (int64_t i = 0; i < stages[stage]; ++i) {
        parameters.SetDepth(++depth);
        blocks.push_back(DeclareBlock(absl::StrCat(name, "blocks.", i, "."), width,
                                      sizes.family == ImageFamily::kSmallConvnext, parameters));
      }
    }
    blocks_ = static_cast<size_t>(depth);
    norm_ = DeclareNorm("head.norm", width, parameters);
    DeclareHead("head.fc", width, shape.outputs, parameters);
  }

 private:
  // pointwise: its layers are stored as 1x1 convolutions.
  static Block DeclareBlock(const std::string& name, int64_t width, bool pointwise,
                            Parameters& parameters) {
    Block block;
    block.gamma = parameters.Declare(name + "gamma", {width}, kScale);
    block.convolution = DeclareSmall(name + "conv_dw", {width, 1, kKernel, kKernel}, parameters);
    block.norm = DeclareNorm(name + "norm", width, parameters);
    const auto linear = [&](const char* layer, int64_t in, int64_t out) {
      std::vector<int64_t> shape = {out, in};
      if (pointwise) shape.insert(shape.end(), {1, 1});
      return DeclareSmall(name + layer, std::move(shape), parameters);
    };
    block.fc1 = linear("mlp.fc1", width, kMlpRatio * width);
    block.fc2 = linear("mlp.fc2", kMlpRatio * width, width);
    return block;
  }

  at::Tensor Pooled(const Tensors& weights, const at::Tensor& image,
                    const Pass& pass) const override {
    at::Tensor x =
        Norm(weights, stem_.norm,
             Convolved(weights, stem_.convolution, image.permute({0, 2, 3, 1}), kStem, 0, 1));
    size_t number = 0;
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      if (stage > 0) {
        const Reduction& down = downs_[stage];
        x = Convolved(weights, down.convolution, Norm(weights, down.norm, x), kDown, 0, 1);
      }
      for (const Block& block : stages_[stage]) {
        std::vector<size_t> used(kParametersOfBlock);
        std::iota(used.begin(), used.end(), block.gamma);
        const Pass of_block = pass.Of(static_cast<int64_t>(number) + 1);
        x = Run(
            [this, &block, number, of_block](const Tensors& own, const Tensors& in) {
              return Through(own, block, number, in[0], of_block);
            },
            weights, used, x, of_block);
        ++number;
      }
    }
    return Norm(weights, norm_, x.mean({1, 2}));
  }

  at::Tensor Through(const Tensors& weights, const Block& block, size_t number, const at::Tensor& x,
                     const Pass& pass) const {
    const auto linear = [&](const LinearParameters& p, const at::Tensor& from) {
      return at::linear(from, weights[p.weight].flatten(1), weights[p.bias]);
    };
    const at::Tensor seen = Convolved(weights, block.convolution, x, 1, kKernel / 2, x.size(3));
    const at::Tensor hidden = at::gelu(linear(block.fc1, Norm(weights, block.norm, seen)));
    const at::Tensor branch = linear(block.fc2, hidden).mul(weights[block.gamma]);
    return x.add(DropPath(branch, number, blocks_, 0, pass));
  }

  Reduction stem_;
  std::vector<Reduction> downs_;  // before each stage; of the first one there is none
  std::vector<std::vector<Block>> stages_;
  size_t blocks_ = 0;  // of all stages
  NormParameters norm_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateConvnext(const ModelSpec& spec,
                                                      const ImageArchitecture& architecture,
                                                      const ModelShape& shape,
                                                      Parameters& parameters) {
  return std::make_unique<Convnext>(*spec.cnn, architecture, shape, parameters);
}

}  // namespace traind
