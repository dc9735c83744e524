// Batch normalisation (Ioffe, Szegedy 2015), instance normalisation (Ulyanov et al. 2016) and the
// operations that follow them, under autograd.
#pragma once

#include <ATen/core/Tensor.h>

namespace traind {

// The parameters of a batch norm, weight and bias [C], and its running
// statistics [C], all float32.
struct BatchNorm {
  at::Tensor weight, bias, running_mean, running_var;

  // The defaults of torch.nn.BatchNorm2d.
  static constexpr double kMomentum = 0.1, kEps = 1e-5;
};

// Returns act(norm(x) + add). x: [B, C, ...]; act is a ReLU or the identity; add may be
// undefined.
// In training the norm is computed over this batch, whose mean and variance also update the
// running statistics. A batch without rows, or with a single value per channel, uses the
// running statistics and leaves them unchanged.
// loops: if x is on a CPU in channels-last order, the loops of norm_loops.h run (two passes
// forward and two backward) instead of one operator each. The result is the same within
// rounding.
// Threads: as autograd's. Errors: torch's exceptions.
at::Tensor NormAddAct(const BatchNorm& norm, const at::Tensor& x, const at::Tensor& add, bool relu,
                      bool training, bool loops);

// Returns act(norm(x)), where each channel of each sample is normalised by its own mean and
// variance, in training and in predictions. x: [B, C, ...]; weight and bias: [C] float32. A channel
// of a single value becomes its bias. relu, loops: as above.
// Threads: as autograd's. Errors: torch's exceptions.
at::Tensor InstanceNormAct(const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& x,
                           bool relu, bool loops);

}  // namespace traind
