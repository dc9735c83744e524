#include "worker/learner/optimizer.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <utility>
#include <vector>

#include "worker/model/kernels/vector_loops.h"

namespace traind {

double NormOnHost(const at::Tensor& flat) {
  return std::sqrt(SumOfSquares(flat.const_data_ptr<float>(), flat.numel()));
}

Optimizer::Optimizer(const OptimizerSettings& spec, at::Tensor weights, bool fused)
    : spec_(spec),
      weights_(std::move(weights)),
      fused_(fused && !weights_.is_cuda()),
      steps_(at::zeros({}, weights_.options())) {
  std::vector<const char*> names;
  switch (spec_.kind) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam:
      names = {"exp_avg", "exp_avg_sq"};
      break;
    case OptimizerKind::kSgd:
      break;
    case OptimizerKind::kRmsProp:
      names = {"square_avg"};
      break;
  }
  const bool adam = spec_.kind == OptimizerKind::kAdamW || spec_.kind == OptimizerKind::kAdam;
  if (!adam && spec_.momentum > 0) names.push_back("momentum_buffer");
  for (const char* name : names) slots_[name] = at::zeros_like(weights_);
}

void Optimizer::Step(const at::Tensor& gradient, double learning_rate, double clip_norm,
                     const std::optional<at::Tensor>& found_inf) {
  steps_.add_(1);
  if (weights_.is_cuda()) {
    std::optional<at::Tensor> scale;
    if (clip_norm > 0) {
      // Always the same tensor, because a graph may have been recorded with it.
      if (!device_norm_.defined()) device_norm_ = at::zeros({}, gradient.options());
      at::linalg_vector_norm_out(device_norm_, gradient);
      scale = device_norm_.div(clip_norm).clamp_min(1.0).reshape({1});
    }
    OperatorStep(gradient, learning_rate, scale, found_inf);
    if (found_inf.has_value()) steps_.sub_(found_inf->squeeze());
    return;
  }
  if (found_inf.has_value() && found_inf->item<float>() != 0) {
    steps_.sub_(1);
    return;
  }
  norm_ = clip_norm > 0 ? NormOnHost(gradient) : 0;
  const bool clip = norm_ > clip_norm;
  if (fused_) {
    FusedStep(gradient.const_data_ptr<float>(), learning_rate, clip ? clip_norm / norm_ : 1);
    return;
  }
  std::optional<at::Tensor> scale;
  if (clip) scale = at::full({1}, norm_ / clip_norm, at::TensorOptions().dtype(at::kFloat));
  OperatorStep(gradient, learning_rate, scale, std::nullopt);
}

float* Optimizer::SlotData(const char* name) const {
  const auto found = slots_.find(name);
  return found == slots_.end() ? nullptr : found->second.mutable_data_ptr<float>();
}

void Optimizer::FusedStep(const float* gradient, double learning_rate, double gradient_scale) {
  float* weights = weights_.mutable_data_ptr<float>();
  const int64_t size = weights_.numel();
  const OptimizerSettings& o = spec_;
  switch (o.kind) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam: {
      AdamStep step;
      step.learning_rate = learning_rate;
      step.weight_decay = o.weight_decay;
      step.decoupled = o.kind == OptimizerKind::kAdamW;
      step.beta1 = o.beta1;
      step.beta2 = o.beta2;
      step.eps = o.eps;
      const double taken = static_cast<double>(steps());
      step.correction1 = 1 - std::pow(o.beta1, taken);
      step.correction2 = 1 - std::pow(o.beta2, taken);
      step.gradient_scale = gradient_scale;
      AdamLoop(step, gradient, weights, SlotData("exp_avg"), SlotData("exp_avg_sq"), size);
      return;
    }
    case OptimizerKind::kSgd:
      SgdLoop({learning_rate, o.weight_decay, o.momentum, o.nesterov, gradient_scale}, gradient,
              weights, SlotData("momentum_buffer"), size);
      return;
    case OptimizerKind::kRmsProp:
      RmsPropLoop({learning_rate, o.weight_decay, o.alpha, o.eps, o.momentum, gradient_scale},
                  gradient, weights, SlotData("square_avg"), SlotData("momentum_buffer"), size);
      return;
  }
}

void Optimizer::OperatorStep(const at::Tensor& gradient, double learning_rate,
                             const std::optional<at::Tensor>& scale,
                             const std::optional<at::Tensor>& found_inf) {
  const at::TensorList weights(weights_), gradients(gradient);
  const auto with_rate = [&](const auto& step) {
    rate_.defined() ? step(rate_) : step(learning_rate);
  };
  switch (spec_.kind) {
    case OptimizerKind::kAdamW:
      with_rate([&](const auto& rate) {
        at::_fused_adamw_(weights, gradients, slots_["exp_avg"], slots_["exp_avg_sq"], {}, steps_,
                          rate, spec_.beta1, spec_.beta2, spec_.weight_decay, spec_.eps,
                          /*amsgrad=*/false, /*maximize=*/false, scale, found_inf);
      });
      return;
    case OptimizerKind::kAdam:
      with_rate([&](const auto& rate) {
        at::_fused_adam_(weights, gradients, slots_["exp_avg"], slots_["exp_avg_sq"], {}, steps_,
                         rate, spec_.beta1, spec_.beta2, spec_.weight_decay, spec_.eps,
                         /*amsgrad=*/false, /*maximize=*/false, scale, found_inf);
      });
      return;
    case OptimizerKind::kSgd: {
      const auto buffer = slots_.find("momentum_buffer");
      const at::TensorList buffers =
          buffer == slots_.end() ? at::TensorList() : at::TensorList(buffer->second);
      // A momentum buffer of zeros makes the first step the same as all others.
      with_rate([&](const auto& rate) {
        at::_fused_sgd_(weights, gradients, buffers, spec_.weight_decay, spec_.momentum, rate,
                        /*dampening=*/0, spec_.nesterov, /*maximize=*/false,
                        /*is_first_step=*/false, scale, found_inf);
      });
      return;
    }
    case OptimizerKind::kRmsProp:
      RmsPropOperators(gradient, learning_rate, scale, found_inf);
      return;
  }
}

// torch has no fused RMSprop.
void Optimizer::RmsPropOperators(at::Tensor gradient, double learning_rate,
                                 const std::optional<at::Tensor>& scale,
                                 const std::optional<at::Tensor>& found_inf) {
  if (scale.has_value()) gradient = gradient.div(*scale);
  if (spec_.weight_decay > 0) gradient = gradient.add(weights_, spec_.weight_decay);
  const auto assign = [&found_inf](const at::Tensor& target, const at::Tensor& value) {
    target.copy_(found_inf.has_value() ? at::where(found_inf->gt(0), target, value) : value);
  };
  const at::Tensor& average = slots_["square_avg"];
  assign(average, average.mul(spec_.alpha).addcmul_(gradient, gradient, 1 - spec_.alpha));
  at::Tensor update = gradient.div(average.sqrt().add_(spec_.eps));
  const auto buffer = slots_.find("momentum_buffer");
  if (buffer != slots_.end()) {
    update.add_(buffer->second, spec_.momentum);
    assign(buffer->second, update);
  }
  assign(weights_,
         rate_.defined() ? weights_.sub(update.mul(rate_)) : weights_.sub(update, learning_rate));
}

double Optimizer::gradient_norm() const {
  return device_norm_.defined() ? device_norm_.item<double>() : norm_;
}

int64_t Optimizer::steps() const { return static_cast<int64_t>(steps_.item<float>()); }
void Optimizer::set_steps(int64_t steps) { steps_.fill_(steps); }

}  // namespace traind
