#include "worker/model/networks/unet3d.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv3d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/conv_transpose3d.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/max_pool3d.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "worker/model/networks/batch_norm.h"
#include "worker/model/networks/convolution.h"
#include "worker/model/networks/recompute.h"

namespace traind {
namespace {

struct PassMode {
  bool training = false;
  bool loops = true;  // see NormAddAct
};

// What all blocks of a network share.
struct BlockForm {
  int64_t axes = 3;  // 2: of a volume that is one slice deep
  bool instance = false;

  // The shape of a kernel that is `extent` long along each axis.
  std::vector<int64_t> Kernel(int64_t first, int64_t second, int64_t extent) const {
    std::vector<int64_t> shape = {first, second};
    shape.resize(static_cast<size_t>(2 + axes), extent);
    return shape;
  }
  int64_t KernelSize(int64_t extent) const { return extent * extent * (axes == 3 ? extent : 1); }
};

// Initial values are those of torch.nn's convolutions: uniform within 1 / sqrt(fan_in).
Initial ConvolutionStart(int64_t fan_in) {
  return {Initial::Kind::kUniform, 1.0 / std::sqrt(static_cast<double>(fan_in)), -1};
}

// A convolution, its norm and a ReLU.
struct Unit {
  Unit(const std::string& name, int first, int64_t in, int64_t out, const BlockForm& form,
       Parameters& parameters)
      : instance(form.instance) {
    const auto named = [&](int offset, const char* what) {
      return absl::StrCat(name, ".", first + offset, ".", what);
    };
    weight = parameters.Declare(named(0, "weight"), form.Kernel(out, in, 3),
                                ConvolutionStart(form.KernelSize(3) * in));
    norm_weight = parameters.Declare(named(1, "weight"), {out}, {Initial::Kind::kConstant, 1, -1});
    norm_bias = parameters.Declare(named(1, "bias"), {out}, {Initial::Kind::kConstant, 0, -1});
    if (instance) return;
    mean = parameters.DeclareBuffer(named(1, "running_mean"), {out}, 0);
    variance = parameters.DeclareBuffer(named(1, "running_var"), {out}, 1);
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const at::Tensor& x,
                     const PassMode& mode) const {
    // With a single channel the memory order of the output is ambiguous, so it is set here.
    const at::Tensor y = Convolve(x, weights[weight], {}, {/*stride=*/1, /*padding=*/1})
                             .contiguous(x.dim() == 5 ? at::MemoryFormat::ChannelsLast3d
                                                      : at::MemoryFormat::ChannelsLast);
    if (instance) {
      return InstanceNormAct(weights[norm_weight], weights[norm_bias], y, /*relu=*/true,
                             mode.loops);
    }
    const BatchNorm norm{weights[norm_weight], weights[norm_bias], weights[mean],
                         weights[variance]};
    return NormAddAct(norm, y, {}, /*relu=*/true, mode.training, mode.loops);
  }

  void AddPlaces(std::vector<size_t>& places) const {
    places.insert(places.end(), {weight, norm_weight, norm_bias});
    if (!instance) places.insert(places.end(), {mean, variance});
  }

  bool instance;
  size_t weight = 0, norm_weight = 0, norm_bias = 0;
  size_t mean = 0, variance = 0;  // of a batch norm
};

struct LevelBlock {
  LevelBlock(const std::string& name, int64_t in, int64_t out, const BlockForm& form,
             Parameters& parameters)
      : first(name, 0, in, out, form, parameters), second(name, 3, out, out, form, parameters) {}

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

struct Affine {
  size_t weight = 0, bias = 0;
};

class Unet3d final : public Model {
 public:
  Unet3d(const plain::Unet3dSpec& spec, const ModelShape& shape, Parameters& parameters)
      : form_{shape.image[1] == 1 ? 2 : 3, spec.norm == "instance"},
        mirrored_(MirroredDims(spec.mirror)) {
    const int64_t base = spec.base, levels = spec.levels;
    const auto channels = [base](int64_t level) { return base << level; };
    for (int64_t k = 0; k < levels; ++k) {
      down_.emplace_back(absl::StrCat("down.", k), k == 0 ? shape.image[0] : channels(k - 1),
                         channels(k), form_, parameters);
    }
    const auto affine = [&](const std::string& name, std::vector<int64_t> weight, int64_t bias,
                            const Initial& start) -> Affine {
      return {parameters.Declare(absl::StrCat(name, ".weight"), std::move(weight), start),
              parameters.Declare(absl::StrCat(name, ".bias"), {bias}, start)};
    };
    for (int64_t k = 0; k + 1 < levels; ++k) {
      up_.push_back(affine(absl::StrCat("up.", k), form_.Kernel(channels(k + 1), channels(k), 2),
                           channels(k), ConvolutionStart(form_.KernelSize(2) * channels(k))));
    }
    for (int64_t k = 0; k + 1 < levels; ++k) {
      decode_.emplace_back(absl::StrCat("dec.", k), 2 * channels(k), channels(k), form_,
                           parameters);
    }
    const int64_t heads = spec.deep_supervision ? std::max<int64_t>(1, levels - 1) : 1;
    for (int64_t k = 0; k < heads; ++k) {
      heads_.push_back(affine(k == 0 ? "out" : absl::StrCat("deep.", k),
                              form_.Kernel(shape.outputs, channels(k), 1), shape.outputs,
                              ConvolutionStart(channels(k))));
    }
  }

  at::Tensor Forward(const std::vector<at::Tensor>& weights, const Inputs& inputs,
                     bool training) const override {
    if (training) return Head(0, weights, Levels(weights, inputs.image, training)[0]);
    at::Tensor sum;
    // A bit of `view` for each axis along which it is mirrored.
    for (size_t view = 0; view < size_t{1} << mirrored_.size(); ++view) {
      std::vector<int64_t> dims;
      for (size_t i = 0; i < mirrored_.size(); ++i) {
        if ((view >> i & 1) != 0) dims.push_back(mirrored_[i]);
      }
      const auto flip = [&dims](const at::Tensor& x) { return dims.empty() ? x : x.flip(dims); };
      const at::Tensor seen = dims.empty()
                                  ? inputs.image
                                  : flip(inputs.image).contiguous(at::MemoryFormat::ChannelsLast3d);
      const at::Tensor answer = flip(Head(0, weights, Levels(weights, seen, training)[0]));
      sum = sum.defined() ? sum.add(answer) : answer;
    }
    return mirrored_.empty() ? sum : sum.div(static_cast<double>(size_t{1} << mirrored_.size()));
  }

  std::vector<at::Tensor> TrainingOutputs(const std::vector<at::Tensor>& weights,
                                          const Inputs& inputs) const override {
    const std::vector<at::Tensor> levels = Levels(weights, inputs.image, /*training=*/true);
    std::vector<at::Tensor> outputs;
    for (size_t k = 0; k < heads_.size(); ++k) outputs.push_back(Head(k, weights, levels[k]));
    return outputs;
  }

  bool SetRecompute(bool on) override {
    recompute_ = on;
    return true;
  }
  void UseLoops(bool on) override { loops_ = on; }

 private:
  // The dimensions of [B, C, D, H, W] that the axes name.
  static std::vector<int64_t> MirroredDims(const std::vector<std::string>& axes) {
    std::vector<int64_t> dims;
    for (const std::string& axis : axes) {
      dims.push_back(axis == "depth" ? 2 : axis == "height" ? 3 : 4);
    }
    return dims;
  }

  at::Tensor Head(size_t k, const std::vector<at::Tensor>& weights, const at::Tensor& level) const {
    const at::Tensor &weight = weights[heads_[k].weight], &bias = weights[heads_[k].bias];
    return form_.axes == 3 ? at::conv3d(level, weight, bias)
                           : at::conv2d(level, weight, bias).unsqueeze(2);
  }

  // Returns the features of each level on the way up, largest extent first, the lowest one being
  // the end of the way down. image: [B, C, D, H, W]; with two axes D is 1, and no level has it.
  std::vector<at::Tensor> Levels(const std::vector<at::Tensor>& weights, const at::Tensor& image,
                                 bool training) const {
    const PassMode mode{training, loops_};
    const at::Tensor seen = form_.axes == 3 ? image : image.squeeze(2);
    std::vector<at::Tensor> levels;
    const auto run = [&](const Part& part, const std::vector<size_t>& used,
                         std::vector<at::Tensor> inputs) {
      return training && recompute_ ? RecomputedPart(part, weights, used, std::move(inputs))
                                    : part(weights, inputs);
    };
    for (size_t k = 0; k < down_.size(); ++k) {
      levels.push_back(run(
          [this, k, mode](const auto& own, const auto& in) { return Down(k, own, in[0], mode); },
          down_[k].Places(), {k == 0 ? seen : levels.back()}));
    }
    for (size_t k = up_.size(); k-- > 0;) {
      std::vector<size_t> used = decode_[k].Places();
      used.insert(used.end(), {up_[k].weight, up_[k].bias});
      levels[k] = run(
          [this, k, mode](const auto& own, const auto& in) {
            return Up(k, own, /*level=*/in[0], /*below=*/in[1], mode);
          },
          used, {levels[k], levels[k + 1]});
    }
    return levels;
  }

  // above: the output of the level above; for the first level the volume itself.
  at::Tensor Down(size_t k, const std::vector<at::Tensor>& weights, const at::Tensor& above,
                  const PassMode& mode) const {
    const at::Tensor pooled = k == 0            ? above
                              : form_.axes == 3 ? at::max_pool3d(above, 2)
                                                : at::max_pool2d(above, 2);
    return down_[k].Forward(weights, pooled, mode);
  }

  // level: the output of this level on the way down; below: the output of the
  // level below on the way up.
  at::Tensor Up(size_t k, const std::vector<at::Tensor>& weights, const at::Tensor& level,
                const at::Tensor& below, const PassMode& mode) const {
    const at::Tensor &weight = weights[up_[k].weight], &bias = weights[up_[k].bias];
    const at::Tensor from_below = form_.axes == 3
                                      ? at::conv_transpose3d(below, weight, bias, /*stride=*/2)
                                      : at::conv_transpose2d(below, weight, bias, /*stride=*/2);
    return decode_[k].Forward(weights, at::cat({from_below, level}, 1), mode);
  }

  const BlockForm form_;
  std::vector<LevelBlock> down_, decode_;  // [levels], [levels - 1], largest extent first
  std::vector<Affine> up_;
  std::vector<Affine> heads_;  // [1]; with deep supervision one for each level on the way up
  const std::vector<int64_t> mirrored_;  // dimensions, in predictions
  bool loops_ = true, recompute_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> CreateUnet3d(const ModelSpec& spec, const ModelShape& shape,
                                                    Parameters& parameters) {
  return std::make_unique<Unet3d>(*spec.unet3d, shape, parameters);
}

}  // namespace traind
