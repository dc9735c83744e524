// A norm over the batch (Ioffe, Szegedy 2015) with what follows it, under autograd.
#pragma once

#include <ATen/core/Tensor.h>

namespace traind {

// Of a norm: weight and bias [C], and its running statistics [C], all float32.
struct BatchNorm {
  at::Tensor weight, bias, running_mean, running_var;

  // As torch.nn.BatchNorm2d has them.
  static constexpr double kMomentum = 0.1, kEps = 1e-5;
};

// act(norm(x) + add), where act is a ReLU or nothing and add may be undefined; x: [B, C, ...].
// In training the norm is over this batch, and the running statistics take its mean and
// variance in; without rows, or with a single value per channel, they stay and are what is
// used. loops: on a CPU, with x in channels-last order, the passes of norm_loops.h, two
// forwards and two back, in place of an operator each; the same within rounding.
// Threads: as autograd's. Errors: torch's exceptions.
at::Tensor NormAddAct(const BatchNorm& norm, const at::Tensor& x, const at::Tensor& add, bool relu,
                      bool training, bool loops);

}  // namespace traind
