#include "worker/model/networks/recompute.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>
#include <mutex>
#include <utility>

#include "worker/device/autocast.h"
#include "worker/model/networks/custom_gradient.h"

namespace traind {
namespace {

// The position of a GPU's random generator. Its seed does not change within a step.
uint64_t GeneratorOffset(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_offset();
}

void SetGeneratorOffset(c10::Device device, uint64_t offset) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_offset(offset);
}

// The state of the thread in which a block's forward pass ran.
struct ForwardState {
  AutocastState autocast;
  uint64_t generator_offset = 0;

  void Remember(const at::Tensor& x) {
    autocast = CurrentAutocast(x.device().type());
    if (x.is_cuda()) generator_offset = GeneratorOffset(x.device());
  }
};

// Restores the state of the forward pass while it lives. Needed because the engine may call
// from another thread.
class RestoredState {
 public:
  RestoredState(const ForwardState& state, c10::Device device)
      : device_(device), autocast_(CurrentAutocast(device.type())) {
    SetAutocast(device_.type(), state.autocast);
    if (!device_.is_cuda()) return;
    generator_offset_ = GeneratorOffset(device_);
    SetGeneratorOffset(device_, state.generator_offset);
  }
  ~RestoredState() {
    ForgetCasts();  // of weights that nobody else will use
    SetAutocast(device_.type(), autocast_);
    if (device_.is_cuda()) SetGeneratorOffset(device_, generator_offset_);
  }
  RestoredState(const RestoredState&) = delete;
  RestoredState& operator=(const RestoredState&) = delete;

 private:
  const c10::Device device_;
  const AutocastState autocast_;
  uint64_t generator_offset_ = 0;
};

// tensors: the weights, followed by x.
at::Tensor RunBlock(const Block& block, const Tensors& tensors) {
  return block({tensors.begin(), tensors.end() - 1}, tensors.back());
}

// Runs the block again, on copies of what is not trained, and returns the gradients of `tensors`.
Tensors GradientsOfBlock(const Block& block, const ForwardState& state, Tensors tensors,
                         const at::Tensor& gradient, const std::vector<bool>& wanted) {
  Tensors asked;
  std::vector<size_t> places;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const bool is_weight = i + 1 < tensors.size();
    tensors[i] = wanted[i] || !is_weight ? tensors[i].detach().set_requires_grad(wanted[i])
                                         : tensors[i].detach().clone();
    if (wanted[i]) asked.push_back(tensors[i]);
    if (wanted[i]) places.push_back(i);
  }
  const at::AutoGradMode with_gradients(true);
  at::Tensor y;
  {
    const RestoredState restored_state(state, tensors.back().device());
    y = RunBlock(block, tensors);
  }
  Tensors found = torch::autograd::grad({y}, asked, {gradient}, /*retain_graph=*/false,
                                        /*create_graph=*/false, /*allow_unused=*/true);
  Tensors all(tensors.size());
  for (size_t i = 0; i < places.size(); ++i) all[places[i]] = std::move(found[i]);
  return all;
}

}  // namespace

at::Tensor Recomputed(const Block& block, const std::vector<at::Tensor>& weights,
                      const at::Tensor& x) {
  const auto state = std::make_shared<ForwardState>();
  CustomGradient function;
  function.forward = [block, state](const Tensors& inputs, Tensors& saved) {
    state->Remember(inputs.back());
    saved = inputs;
    return RunBlock(block, inputs);
  };
  function.backward = [block, state](const Tensors& saved, const at::Tensor& gradient,
                                     const std::vector<bool>& wanted) {
    return GradientsOfBlock(block, *state, saved, gradient, wanted);
  };
  Tensors tensors(weights.begin(), weights.end());
  tensors.push_back(x);
  return Apply(std::move(function), tensors);
}

at::Tensor RecomputedPart(const Part& part, const std::vector<at::Tensor>& weights,
                          const std::vector<size_t>& used, std::vector<at::Tensor> inputs) {
  std::vector<at::Tensor> own;
  for (const size_t place : used) own.push_back(weights[place]);
  own.insert(own.end(), inputs.begin(), inputs.end() - 1);
  const Block block = [part, used, size = weights.size()](const std::vector<at::Tensor>& given,
                                                          const at::Tensor& x) {
    std::vector<at::Tensor> all(size);
    for (size_t i = 0; i < used.size(); ++i) all[used[i]] = given[i];
    std::vector<at::Tensor> taken(given.begin() + static_cast<ptrdiff_t>(used.size()), given.end());
    taken.push_back(x);
    return part(all, taken);
  };
  return Recomputed(block, own, inputs.back());
}

}  // namespace traind
