#include "worker/model/networks/vit.h"

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "common/data/weights/image_config.h"
#include "worker/model/networks/encoder_parameters.h"
#include "worker/model/networks/image_network.h"

namespace traind {
namespace {

using Tensors = std::vector<at::Tensor>;

constexpr int64_t kPatch = 16, kHeadWidth = 64, kMlpRatio = 4;
constexpr double kEps = 1e-6;

// Declared side by side in this order.
struct Layer {
  NormParameters norm1;
  LinearParameters qkv, proj;
  NormParameters norm2;
  LinearParameters fc1, fc2;
};
constexpr size_t kParametersOfLayer = 12;

at::Tensor Linear(const Tensors& weights, const LinearParameters& p, const at::Tensor& x) {
  return at::linear(x, weights[p.weight], weights[p.bias]);
}

at::Tensor Norm(const Tensors& weights, const NormParameters& p, const at::Tensor& x) {
  return at::layer_norm(x, {x.size(-1)}, weights[p.weight], weights[p.bias], kEps);
}

class Vit final : public ImageNetwork {
 public:
  // grid: patches per side of the images that the network has learnt from.
  Vit(const plain::CnnSpec& spec, const ImageArchitecture& sizes, int64_t grid,
      const ModelShape& shape, Parameters& parameters)
      : ImageNetwork(spec, shape, parameters), grid_(grid), heads_(sizes.width / kHeadWidth) {
    const int64_t width = sizes.width;
    parameters.SetDepth(0);
    class_ = parameters.Declare("cls_token", {1, 1, width}, {Initial::Kind::kNormal, 1e-6, -1});
    positions_ = parameters.Declare("pos_embed", {1, 1 + grid * grid, width}, kSmallNormal);
    parameters.SetNoDecay(class_);
    parameters.SetNoDecay(positions_);
    const int64_t channels = shape.image[0];
    const double scale = 1 / std::sqrt(static_cast<double>(channels * kPatch * kPatch));
    const Initial uniform{Initial::Kind::kUniform, scale, -1};
    patch_.weight =
        parameters.Declare("patch_embed.proj.weight", {width, channels, kPatch, kPatch}, uniform);
    patch_.bias = parameters.Declare("patch_embed.proj.bias", {width}, uniform);
    for (int64_t i = 0; i < sizes.blocks[0]; ++i) {
      parameters.SetDepth(i + 1);
      const std::string name = absl::StrCat("blocks.", i, ".");
      Layer& layer = layers_.emplace_back();
      layer.norm1 = DeclareNorm(name + "norm1", width, parameters);
      layer.qkv = DeclareSmall(name + "attn.qkv", {3 * width, width}, parameters);
      layer.proj = DeclareSmall(name + "attn.proj", {width, width}, parameters);
      layer.norm2 = DeclareNorm(name + "norm2", width, parameters);
      layer.fc1 = DeclareSmall(name + "mlp.fc1", {kMlpRatio * width, width}, parameters);
      layer.fc2 = DeclareSmall(name + "mlp.fc2", {width, kMlpRatio * width}, parameters);
    }
    norm_ = DeclareNorm("norm", width, parameters);
    DeclareHead("head", width, shape.outputs, parameters);
  }

 private:
  at::Tensor Pooled(const Tensors& weights, const at::Tensor& image,
                    const Pass& pass) const override {
    const at::Tensor patches =
        at::conv2d(image, weights[patch_.weight], weights[patch_.bias], kPatch);  // [B, D, H, W]
    const at::Tensor positions =
        Positions(weights[positions_], patches.size(2), patches.size(3)).to(patches.scalar_type());
    const at::Tensor first = weights[class_].to(patches.scalar_type());
    at::Tensor x = at::cat({first.expand({image.size(0), 1, first.size(2)}),
                            patches.flatten(2).transpose(1, 2)},
                           1)
                       .add(positions);  // [B, T, D]
    for (size_t k = 0; k < layers_.size(); ++k) {
      const bool last = k + 1 == layers_.size();
      const Pass of_layer = pass.Of(static_cast<int64_t>(k) + 1);
      std::vector<size_t> used(kParametersOfLayer);
      std::iota(used.begin(), used.end(), layers_[k].norm1.weight);
      // Captured by value, because a backward pass may call it again.
      x = Run(
          [this, k, last, of_layer](const Tensors& own, const Tensors& in) {
            return Through(own, k, last, in[0], of_layer);
          },
          weights, used, x, of_layer);
    }
    return Norm(weights, norm_, x.select(1, 0));
  }

  // last: only the first token is wanted.
  at::Tensor Through(const Tensors& weights, size_t k, bool last, at::Tensor x,
                     const Pass& pass) const {
    const Layer& layer = layers_[k];
    const int64_t rows = x.size(0), tokens = x.size(1), width = x.size(2);
    const at::Tensor qkv = Linear(weights, layer.qkv, Norm(weights, layer.norm1, x))
                               .view({rows, tokens, 3, heads_, width / heads_})
                               .permute({2, 0, 3, 1, 4});  // [3, B, heads, T, D / heads]
    at::Tensor query = qkv.select(0, 0);
    if (last) {
      query = query.narrow(2, 0, 1);
      x = x.narrow(1, 0, 1);
    }
    const at::Tensor mixed =
        at::scaled_dot_product_attention(query, qkv.select(0, 1), qkv.select(0, 2))
            .transpose(1, 2)
            .reshape({rows, x.size(1), width});
    const auto drop = [&](const at::Tensor& branch, size_t which) {
      return DropPath(branch, k, layers_.size(), which, pass);
    };
    x = x.add(drop(Linear(weights, layer.proj, mixed), 0));
    const at::Tensor hidden = at::gelu(Linear(weights, layer.fc1, Norm(weights, layer.norm2, x)));
    return x.add(drop(Linear(weights, layer.fc2, hidden), 1));
  }

  // Those of a grid of another size are interpolated, as by timm's resample_abs_pos_embed.
  at::Tensor Positions(const at::Tensor& table, int64_t height, int64_t width) const {
    if (height == grid_ && width == grid_) return table;
    const at::Tensor places = table.narrow(1, 1, grid_ * grid_)
                                  .view({1, grid_, grid_, table.size(2)})
                                  .permute({0, 3, 1, 2});
    const at::Tensor scaled =
        at::_upsample_bicubic2d_aa(places, {height, width}, /*align_corners=*/false);
    return at::cat({table.narrow(1, 0, 1), scaled.flatten(2).transpose(1, 2)}, 1);
  }

  const int64_t grid_, heads_;
  size_t class_ = 0, positions_ = 0;
  LinearParameters patch_;
  std::vector<Layer> layers_;
  NormParameters norm_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateVit(const ModelSpec& spec,
                                                 const ImageArchitecture& architecture,
                                                 const ModelShape& shape, Parameters& parameters) {
  int64_t side = ImageConfig().size;
  if (spec.pretrained.has_value() && !spec.pretrained->config.empty()) {
    ASSIGN_OR_RETURN(const ImageConfig config,
                     ParseImageConfig(architecture.name, spec.pretrained->config));
    side = config.size;
  }
  for (const int64_t extent : {side, shape.image[1], shape.image[2]}) {
    if (extent % kPatch == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("data.image.size: ", extent,
                                                   " is no multiple of ", kPatch, ", as ",
                                                   architecture.name, " needs it"));
  }
  return std::make_unique<Vit>(*spec.cnn, architecture, side / kPatch, shape, parameters);
}

}  // namespace traind
