#include "worker/model/networks/recompute.h"

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>
#include <utility>

namespace traind {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

// A block and the state it ran under.
struct SavedBlock : torch::CustomClassHolder {
  Block block;
  c10::DeviceType device = c10::kCPU;
  bool autocast = false;
  at::ScalarType autocast_dtype = at::kFloat;
  uint64_t generator_offset = 0;

  void Remember(const at::Tensor& x) {
    device = x.device().type();
    autocast = at::autocast::is_autocast_enabled(device);
    autocast_dtype = at::autocast::get_autocast_dtype(device);
    if (x.is_cuda()) generator_offset = GeneratorOffset(x.device());
  }
};

// Restores the state of the forward pass while it lives. Needed because the engine may call
// from another thread.
class RestoredState {
 public:
  RestoredState(const SavedBlock& saved_block, c10::Device device)
      : device_(device),
        autocast_(at::autocast::is_autocast_enabled(saved_block.device)),
        autocast_dtype_(at::autocast::get_autocast_dtype(saved_block.device)) {
    at::autocast::set_autocast_enabled(device_.type(), saved_block.autocast);
    at::autocast::set_autocast_dtype(device_.type(), saved_block.autocast_dtype);
    if (!device_.is_cuda()) return;
    generator_offset_ = GeneratorOffset(device_);
    SetGeneratorOffset(device_, saved_block.generator_offset);
  }
  ~RestoredState() {
    at::autocast::clear_cache();  // casts of weights that nobody else will use
    at::autocast::set_autocast_enabled(device_.type(), autocast_);
    at::autocast::set_autocast_dtype(device_.type(), autocast_dtype_);
    if (device_.is_cuda()) SetGeneratorOffset(device_, generator_offset_);
  }
  RestoredState(const RestoredState&) = delete;
  RestoredState& operator=(const RestoredState&) = delete;

 private:
  const c10::Device device_;
  const bool autocast_;
  const at::ScalarType autocast_dtype_;
  uint64_t generator_offset_ = 0;
};

struct RecomputedBlock : torch::autograd::Function<RecomputedBlock> {
  // tensors: the weights, followed by x.
  static at::Tensor forward(AutogradContext* ctx, const c10::intrusive_ptr<SavedBlock>& saved_block,
                            at::TensorList tensors) {
    saved_block->Remember(tensors.back());
    ctx->saved_data["saved_block"] = c10::IValue::make_capsule(
        c10::static_intrusive_pointer_cast<torch::CustomClassHolder>(saved_block));
    ctx->save_for_backward(tensors.vec());
    const variable_list weights(tensors.begin(), tensors.end() - 1);
    return saved_block->block(weights, tensors.back());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto capsule = ctx->saved_data["saved_block"].toCapsule();
    const SavedBlock& saved_block = static_cast<const SavedBlock&>(*capsule);
    variable_list tensors = ctx->get_saved_variables(), asked;
    std::vector<size_t> places;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const bool wanted = ctx->needs_input_grad(i), is_weight = i + 1 < tensors.size();
      tensors[i] = wanted || !is_weight ? tensors[i].detach().set_requires_grad(wanted)
                                        : tensors[i].detach().clone();
      if (wanted) asked.push_back(tensors[i]);
      if (wanted) places.push_back(i);
    }
    variable_list found;
    {
      const at::AutoGradMode with_gradients(true);
      at::Tensor y;
      {
        const RestoredState restored_state(saved_block, tensors.back().device());
        y = saved_block.block({tensors.begin(), tensors.end() - 1}, tensors.back());
      }
      found = torch::autograd::grad({y}, asked, gradients, /*retain_graph=*/false,
                                    /*create_graph=*/false, /*allow_unused=*/true);
    }
    variable_list all(1 + tensors.size());  // the block itself has no gradient
    for (size_t i = 0; i < places.size(); ++i) all[1 + places[i]] = std::move(found[i]);
    return all;
  }
};

}  // namespace

at::Tensor Recomputed(const Block& block, const std::vector<at::Tensor>& weights,
                      const at::Tensor& x) {
  auto saved_block = c10::make_intrusive<SavedBlock>();
  saved_block->block = block;
  variable_list tensors(weights.begin(), weights.end());
  tensors.push_back(x);
  return RecomputedBlock::apply(saved_block, at::TensorList(tensors));
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
