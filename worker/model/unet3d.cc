#include "worker/model/unet3d.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/max_pool3d.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <string>
#include <vector>

#include "worker/model/batch_norm.h"

namespace traind {
namespace {

struct How {
  bool training = false;
  bool loops = true;  // NormAddAct's
};

// As torch.nn's convolutions start: uniform within 1 / sqrt(values that a sum has).
Initial ConvolutionStart(int64_t fan_in) {
  return {Initial::Kind::kUniform, 1.0 / std::sqrt(static_cast<double>(fan_in)), -1};
}

// A convolution, its norm, and ReLU.
struct Unit {
  Unit(const std::string& name, int first, int64_t in, int64_t out, Parameters& parameters) {
    const auto named = [&](int offset, const char* what) {
      return absl::StrCat(name, ".", first + offset, ".", what);
    };
    weight = parameters.Declare(named(0, "weight"), {out, in, 3, 3, 3}, ConvolutionStart(27 * in));
    norm_weight = parameters.Declare(named(1, "weight"), {out}, {Initial::Kind::kConstant, 1, -1});
    norm_bias = parameters.Declare(named(1, "bias"), {out}, {Initial::Kind::kConstant, 0, -1});
    mean = parameters.DeclareBuffer(named(1, "running_mean"), {out}, 0);
    variance = parameters.DeclareBuffer(named(1, "running_var"), {out}, 1);
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                     const How& how) const {
    // Of a single channel a volume has no order of its own.
    const at::Tensor y =
        at::conv3d(x, weights[weight], {}, 1, 1).contiguous(at::MemoryFormat::ChannelsLast3d);
    const BatchNorm norm{weights[norm_weight], weights[norm_bias], weights[mean],
                         weights[variance]};
    return NormAddAct(norm, y, {}, /*relu=*/true, how.training, how.loops);
  }

  size_t weight = 0, norm_weight = 0, norm_bias = 0, mean = 0, variance = 0;
};

struct Block {
  Block(const std::string& name, int64_t in, int64_t out, Parameters& parameters)
      : first(name, 0, in, out, parameters), second(name, 3, out, out, parameters) {}

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                     const How& how) const {
    return second.Forward(weights, first.Forward(weights, x, how), how);
  }

  Unit first, second;
};

class Unet3d final : public Model {
 public:
  Unet3d(const ModelSpec& spec, const ModelShape& shape, Parameters& parameters) {
    const int64_t base = spec.unet3d.base, levels = spec.unet3d.levels;
    const auto channels = [base](int64_t level) { return base << level; };
    for (int64_t k = 0; k < levels; ++k) {
      down_.emplace_back(absl::StrCat("down.", k), k == 0 ? shape.image[0] : channels(k - 1),
                         channels(k), parameters);
    }
    for (int64_t k = 0; k + 1 < levels; ++k) {
      const Initial start = ConvolutionStart(8 * channels(k));
      up_.push_back({parameters.Declare(absl::StrCat("up.", k, ".weight"),
                                        {channels(k + 1), channels(k), 2, 2, 2}, start),
                     parameters.Declare(absl::StrCat("up.", k, ".bias"), {channels(k)}, start)});
    }
    for (int64_t k = 0; k + 1 < levels; ++k) {
      decode_.emplace_back(absl::StrCat("dec.", k), 2 * channels(k), channels(k), parameters);
    }
    const Initial start = ConvolutionStart(base);
    head_weight_ = parameters.Declare("out.weight", {shape.outputs, base, 1, 1, 1}, start);
    head_bias_ = parameters.Declare("out.bias", {shape.outputs}, start);
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                     bool training) const override {
    const How how{training, loops_};
    std::vector<at::Tensor> levels;
    at::Tensor x = inputs.image;  // [B, C, D, H, W]
    for (size_t k = 0; k < down_.size(); ++k) {
      if (k > 0) x = at::max_pool3d(x, 2);
      x = down_[k].Forward(weights, x, how);
      levels.push_back(x);
    }
    for (size_t k = up_.size(); k-- > 0;) {
      const at::Tensor from_below =
          at::conv_transpose3d(x, weights[up_[k].weight], weights[up_[k].bias], /*stride=*/2);
      x = decode_[k].Forward(weights, at::cat({from_below, levels[k]}, 1), how);
    }
    return at::conv3d(x, weights[head_weight_], weights[head_bias_]);
  }

  void UseLoops(bool on) override { loops_ = on; }

 private:
  struct Up {
    size_t weight = 0, bias = 0;
  };

  std::vector<Block> down_, decode_;  // [levels], [levels - 1]: of the extents, largest first
  std::vector<Up> up_;
  size_t head_weight_ = 0, head_bias_ = 0;
  bool loops_ = true;
};

}  // namespace

std::unique_ptr<Model> CreateUnet3d(const ModelSpec& spec, const ModelShape& shape,
                                    Parameters& parameters) {
  return std::make_unique<Unet3d>(spec, shape, parameters);
}

}  // namespace traind
