#include "worker/model/adamw.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

namespace traind {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

// L2 norm over all gradients, on the CPU: one pass without temporaries.
double NormOnHost(const std::vector<at::Tensor>& gradients) {
  double squares = 0;
  for (const at::Tensor& gradient : gradients) {
    const float* values = gradient.const_data_ptr<float>();
    const int64_t size = gradient.numel();
    constexpr int64_t kLanes = 16;
    float lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) lanes[k] += values[i + k] * values[i + k];
    }
    for (; i < size; ++i) lanes[0] += values[i] * values[i];
    for (const float lane : lanes) squares += lane;
  }
  return std::sqrt(squares);
}

}  // namespace

AdamW::AdamW(const Parameters& parameters, double weight_decay)
    : parameters_(parameters),
      weight_decay_(weight_decay),
      exp_avg_(at::zeros_like(parameters.flat())),
      exp_avg_sq_(at::zeros_like(parameters.flat())),
      exp_avgs_(parameters.ViewsOf(exp_avg_)),
      exp_avg_sqs_(parameters.ViewsOf(exp_avg_sq_)),
      steps_(parameters.tensors().size(), at::zeros({}, parameters.flat().options())) {}

void AdamW::Step(const std::vector<at::Tensor>& gradients, double learning_rate,
                 const std::optional<at::Tensor>& found_inf) {
  steps_[0].add_(1);
  at::_fused_adamw_(parameters_.tensors(), gradients, exp_avgs_, exp_avg_sqs_, {}, steps_,
                    learning_rate, kBeta1, kBeta2, weight_decay_, kEpsilon, /*amsgrad=*/false,
                    /*maximize=*/false, ClippingFactor(gradients), found_inf);
  if (found_inf.has_value()) steps_[0].sub_(found_inf->squeeze());
}

// What gradients must be divided by, where they must.
std::optional<at::Tensor> AdamW::ClippingFactor(const std::vector<at::Tensor>& gradients) const {
  if (!parameters_.flat().is_cuda()) {
    const double norm = NormOnHost(gradients);
    if (!(norm > kMaxGradientNorm)) return std::nullopt;
    return at::full({1}, norm / kMaxGradientNorm, at::TensorOptions().dtype(at::kFloat));
  }
  const at::Tensor norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients)));
  return norm.div(kMaxGradientNorm).clamp_min(1.0).reshape({1});
}

int64_t AdamW::steps() const { return steps_[0].item<int64_t>(); }
void AdamW::set_steps(int64_t steps) { steps_[0].fill_(steps); }

}  // namespace traind
