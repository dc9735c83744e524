// Activation checkpointing (Chen et al. 2016): memory for time.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace traind {

// A part of a network: what it makes of x with these weights. The same for the same
// arguments, also when called again in a backward pass; what it draws on a GPU it draws
// from the device's generator.
using Block =
    std::function<at::Tensor(const std::vector<at::Tensor>& weights, const at::Tensor& x)>;

// block(weights, x) under autograd, of which only x is kept: the backward pass computes
// the rest again, in the same precision and with the same dropout. Weights that are not trained,
// such as running statistics, the block may change: the second time it is given copies of them.
// Threads: as autograd's. Errors: torch's exceptions.
at::Tensor Recomputed(const Block& block, const std::vector<at::Tensor>& weights,
                      const at::Tensor& x);

// A part of a network that finds its weights by their places among all of them.
using Part = std::function<at::Tensor(const std::vector<at::Tensor>& weights,
                                      const std::vector<at::Tensor>& inputs)>;

// part(weights, inputs) likewise, of which the inputs are kept. used: the places of the weights
// that it needs; the others are undefined to it, so that their gradients do not wait for it.
at::Tensor RecomputedPart(const Part& part, const std::vector<at::Tensor>& weights,
                          const std::vector<size_t>& used, std::vector<at::Tensor> inputs);

}  // namespace traind
