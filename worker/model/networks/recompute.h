// Activation checkpointing (Chen et al. 2016), which trades time for memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace traind {

// Computes a part of a network from x and its weights. The same arguments give the same result,
// also when the backward pass calls it again. On a GPU it draws random numbers from the
// device's generator.
using Block =
    std::function<at::Tensor(const std::vector<at::Tensor>& weights, const at::Tensor& x)>;

// Runs block(weights, x) under autograd and keeps only x. The backward pass runs the block
// again, in the same precision and with the same dropout. The block may change weights that are
// not trained, such as running statistics; on the second run it receives copies of them.
// Threads: as autograd's. Errors: torch's exceptions.
at::Tensor Recomputed(const Block& block, const std::vector<at::Tensor>& weights,
                      const at::Tensor& x);

// A part of a network that finds its weights by their indices among all weights.
using Part = std::function<at::Tensor(const std::vector<at::Tensor>& weights,
                                      const std::vector<at::Tensor>& inputs)>;

// Runs part(weights, inputs) in the same way and keeps only the inputs. used: the indices of
// the weights that the part needs. The part sees the others as undefined, so their
// gradients do not wait for it.
at::Tensor RecomputedPart(const Part& part, const std::vector<at::Tensor>& weights,
                          const std::vector<size_t>& used, std::vector<at::Tensor> inputs);

}  // namespace traind
