#include "worker/model/networks/unet3d.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/max_pool3d.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "worker/model/networks/batch_norm.h"
#include "worker/model/networks/recompute.h"

namespace traind {
namespace {

struct PassMode {
  bool training = false;
  bool loops = true;  // see NormAddAct
};

// Initial values are those of torch.nn's convolutions: uniform within 1 / sqrt(fan_in).
Initial ConvolutionStart(int64_t fan_in) {
  return {Initial::Kind::kUniform, 1.0 / std::sqrt(static_cast<double>(fan_in)), -1};
}

// A convolution, its batch norm and a ReLU.
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
                     const PassMode& mode) const {
    // With a single channel the memory order of the output is ambiguous, so it is set here.
    const at::Tensor y =
        at::conv3d(x, weights[weight], {}, 1, 1).contiguous(at::MemoryFormat::ChannelsLast3d);
    const BatchNorm norm{weights[norm_weight], weights[norm_bias], weights[mean],
                         weights[variance]};
    return NormAddAct(norm, y, {}, /*relu=*/true, mode.training, mode.loops);
  }

  void AddPlaces(std::vector<size_t>& places) const {
    for (const size_t at : {weight, norm_weight, norm_bias, mean, variance}) places.push_back(at);
  }

  size_t weight = 0, norm_weight = 0, norm_bias = 0, mean = 0, variance = 0;
};

struct LevelBlock {
  LevelBlock(const std::string& name, int64_t in, int64_t out, Parameters& parameters)
      : first(name, 0, in, out, parameters), second(name, 3, out, out, parameters) {}

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                     const PassMode& mode) const {
    return second.Forward(weights, first.Forward(weights, x, mode), mode);
  }
  std::vector<size_t> Places() const {
    std::vector<size_t> places;
    for (const Unit* unit : {&first, &second}) unit->AddPlaces(places);
    return places;
  }

  Unit first, second;
};

class Unet3d final : public Model {
 public:
  Unet3d(const plain::Unet3dSpec& spec, const ModelShape& shape, Parameters& parameters) {
    const int64_t base = spec.base, levels = spec.levels;
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
    const PassMode mode{training, loops_};
    std::vector<at::Tensor> levels;
    at::Tensor x = inputs.image;  // [B, C, D, H, W]
    const auto run = [&](const Part& part, const std::vector<size_t>& used,
                         std::vector<at::Tensor> inputs) {
      return training && recompute_ ? RecomputedPart(part, weights, used, std::move(inputs))
                                    : part(weights, inputs);
    };
    for (size_t k = 0; k < down_.size(); ++k) {
      x = run(
          [this, k, mode](const auto& own, const auto& in) { return Down(k, own, in[0], mode); },
          down_[k].Places(), {x});
      levels.push_back(x);
    }
    for (size_t k = up_.size(); k-- > 0;) {
      std::vector<size_t> used = decode_[k].Places();
      used.insert(used.end(), {up_[k].weight, up_[k].bias});
      x = run(
          [this, k, mode](const auto& own, const auto& in) {
            return Up(k, own, /*level=*/in[0], /*below=*/in[1], mode);
          },
          used, {levels[k], x});
    }
    return at::conv3d(x, weights[head_weight_], weights[head_bias_]);
  }

  bool SetRecompute(bool on) override {
    recompute_ = on;
    return true;
  }
  void UseLoops(bool on) override { loops_ = on; }

 private:
  struct UpWeights {
    size_t weight = 0, bias = 0;
  };

  // above: the output of the level above; for the first level the volume itself.
  at::Tensor Down(size_t k, const std::vector<at::Tensor>& weights, const at::Tensor& above,
                  const PassMode& mode) const {
    return down_[k].Forward(weights, k == 0 ? above : at::max_pool3d(above, 2), mode);
  }

  // level: the output of this level on the way down; below: the output of the
  // level below on the way up.
  at::Tensor Up(size_t k, const std::vector<at::Tensor>& weights, const at::Tensor& level,
                const at::Tensor& below, const PassMode& mode) const {
    const at::Tensor from_below =
        at::conv_transpose3d(below, weights[up_[k].weight], weights[up_[k].bias], /*stride=*/2);
    return decode_[k].Forward(weights, at::cat({from_below, level}, 1), mode);
  }

  std::vector<LevelBlock> down_, decode_;  // [levels], [levels - 1], largest extent first
  std::vector<UpWeights> up_;
  size_t head_weight_ = 0, head_bias_ = 0;
  bool loops_ = true, recompute_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateUnet3d(const ModelSpec& spec, const ModelShape& shape,
                                                    Parameters& parameters) {
  return std::make_unique<Unet3d>(*spec.unet3d, shape, parameters);
}

}  // namespace traind
