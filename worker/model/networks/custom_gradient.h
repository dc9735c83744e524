// A function of tensors whose backward pass is our own, under autograd. LibTorch's template for
// this is slow to compile, so only custom_gradient.cc includes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace traind {

using Tensors = std::vector<at::Tensor>;

struct CustomGradient {
  // Returns the result, and sets `saved` to the tensors that the backward pass needs: inputs,
  // the result, or others. Called once, without autograd.
  std::function<at::Tensor(const Tensors& inputs, Tensors& saved)> forward;
  // Returns a gradient for each input; an undefined one counts as zeros. gradient: the result's.
  // wanted: by input, whether anybody asks for its gradient. Called on a thread of autograd's.
  std::function<Tensors(const Tensors& saved, const at::Tensor& gradient,
                        const std::vector<bool>& wanted)>
      backward;
};

// Returns function.forward(inputs).
// REQUIRES: all inputs are defined. Errors: torch's exceptions, and those of the two functions.
at::Tensor Apply(CustomGradient function, const Tensors& inputs);

}  // namespace traind
