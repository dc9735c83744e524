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
// the rest again, in the same precision and with the same dropout.
// Threads: as autograd's. Errors: torch's exceptions.
at::Tensor Recomputed(const Block& block, const std::vector<at::Tensor>& weights,
                      const at::Tensor& x);

}  // namespace traind
