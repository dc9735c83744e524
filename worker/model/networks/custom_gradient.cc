#include "worker/model/networks/custom_gradient.h"

#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace traind {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Held : torch::CustomClassHolder {
  CustomGradient function;
  size_t inputs = 0;
};

struct Node : torch::autograd::Function<Node> {
  static at::Tensor forward(AutogradContext* ctx, const c10::intrusive_ptr<Held>& held,
                            at::TensorList inputs) {
    Tensors saved;
    const at::Tensor result = std::exchange(held->function.forward, nullptr)(inputs.vec(), saved);
    held->inputs = inputs.size();
    ctx->saved_data["held"] = c10::IValue::make_capsule(
        c10::static_intrusive_pointer_cast<torch::CustomClassHolder>(held));
    ctx->save_for_backward(std::move(saved));
    return result;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const auto capsule = ctx->saved_data["held"].toCapsule();
    const Held& held = static_cast<const Held&>(*capsule);
    std::vector<bool> wanted(held.inputs);
    for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = ctx->needs_input_grad(i);
    Tensors found = held.function.backward(ctx->get_saved_variables(), gradients[0], wanted);
    found.insert(found.begin(), at::Tensor());  // held itself has none
    return found;
  }
};

}  // namespace

at::Tensor Apply(CustomGradient function, const Tensors& inputs) {
  auto held = c10::make_intrusive<Held>();
  held->function = std::move(function);
  return Node::apply(held, at::TensorList(inputs));
}

}  // namespace traind
