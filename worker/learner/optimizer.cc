#include "worker/learner/optimizer.h"

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "worker/model/kernels/vector_loops.h"

namespace traind {
namespace {

// Whether both are updated in one way.
bool Alike(const OptimizerPart& a, const OptimizerPart& b) {
  return a.rate == b.rate && a.decays == b.decays && a.layer == b.layer;
}

}  // namespace

Optimizer::Optimizer(const OptimizerSettings& spec, at::Tensor weights,
                     std::vector<OptimizerPart> parts, bool fused)
    : spec_(spec),
      weights_(std::move(weights)),
      parts_(std::move(parts)),
      fused_(fused && !weights_.is_cuda()) {
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
  MakeGroups();
}

void Optimizer::MakeGroups() {
  for (const OptimizerPart& part : parts_) layers_ = std::max(layers_, part.layer + 1);
  steps_ = at::zeros({layers_ + 1}, weights_.options());
  for (const OptimizerPart& part : parts_) {
    const auto same = [&part](const Group& group) { return Alike(group.like, part); };
    if (std::any_of(groups_.begin(), groups_.end(), same)) continue;
    Group& group = groups_.emplace_back();
    group.like = part;
    group.weights = ViewsOf(part, weights_);
    for (const auto& [name, slot] : slots_) group.slots[name] = ViewsOf(part, slot);
  }
}

std::vector<at::Tensor> Optimizer::ViewsOf(const OptimizerPart& like,
                                           const at::Tensor& flat) const {
  std::vector<at::Tensor> views;
  for (const OptimizerPart& part : parts_) {
    if (Alike(part, like)) views.push_back(flat.narrow(0, part.begin, part.end - part.begin));
  }
  return views;
}

at::TensorList Optimizer::SlotOf(const Group& group, const char* name) {
  const auto found = group.slots.find(name);
  return found == group.slots.end() ? at::TensorList() : at::TensorList(found->second);
}

void Optimizer::Step(const at::Tensor& gradient, double learning_rate, double clip_norm,
                     const std::optional<at::Tensor>& found_inf) {
  if (weights_.is_cuda()) {
    const at::Tensor counted = steps_.narrow(0, first_layer_, layers_ + 1 - first_layer_);
    counted.add_(1);
    std::optional<at::Tensor> scale;
    if (clip_norm > 0) {
      // Always the same tensor, because a graph may have been recorded with it.
      if (!device_norm_.defined()) device_norm_ = at::zeros({}, gradient.options());
      if (first_layer_ > 0) {
        std::vector<at::Tensor> norms;
        for (const at::Tensor& part : Moving(gradient)) {
          norms.push_back(at::linalg_vector_norm(part));
        }
        at::linalg_vector_norm_out(device_norm_, at::stack(norms));
      } else {
        at::linalg_vector_norm_out(device_norm_, gradient);
      }
      scale = device_norm_.div(clip_norm).clamp_min(1.0).reshape({1});
    }
    OperatorStep(gradient, learning_rate, scale, found_inf);
    if (found_inf.has_value()) counted.sub_(found_inf->squeeze());
    return;
  }
  if (found_inf.has_value() && found_inf->item<float>() != 0) return;
  steps_.narrow(0, first_layer_, layers_ + 1 - first_layer_).add_(1);
  norm_ = 0;
  if (clip_norm > 0) {
    double squares = 0;
    for (const at::Tensor& part : Moving(gradient)) {
      squares += SumOfSquares(part.const_data_ptr<float>(), part.numel());
    }
    norm_ = std::sqrt(squares);
  }
  const bool clip = norm_ > clip_norm;
  if (fused_) {
    for (const OptimizerPart& part : parts_) {
      if (!Moves(part)) continue;
      FusedStep(part, gradient.const_data_ptr<float>() + part.begin, learning_rate * part.rate,
                clip ? clip_norm / norm_ : 1);
    }
    return;
  }
  std::optional<at::Tensor> scale;
  if (clip) scale = at::full({1}, norm_ / clip_norm, at::TensorOptions().dtype(at::kFloat));
  OperatorStep(gradient, learning_rate, scale, std::nullopt);
}

std::vector<at::Tensor> Optimizer::Moving(const at::Tensor& gradient) const {
  if (first_layer_ == 0) return {gradient};
  std::vector<at::Tensor> moving;
  int64_t begin = -1, end = -1;  // of the neighbours so far
  const auto put = [&] {
    if (begin < end) moving.push_back(gradient.narrow(0, begin, end - begin));
  };
  for (const OptimizerPart& part : parts_) {
    if (!Moves(part)) continue;
    if (part.begin != end) {
      put();
      begin = part.begin;
    }
    end = part.end;
  }
  put();
  return moving;
}

float* Optimizer::SlotData(const char* name, int64_t begin) const {
  const auto found = slots_.find(name);
  return found == slots_.end() ? nullptr : found->second.mutable_data_ptr<float>() + begin;
}

void Optimizer::FusedStep(const OptimizerPart& part, const float* gradient, double learning_rate,
                          double gradient_scale) {
  float* weights = weights_.mutable_data_ptr<float>() + part.begin;
  const int64_t size = part.end - part.begin;
  const OptimizerSettings& o = spec_;
  const auto slot = [&](const char* name) { return SlotData(name, part.begin); };
  switch (o.kind) {
    case OptimizerKind::kAdamW:
    case OptimizerKind::kAdam: {
      AdamStep step;
      step.learning_rate = learning_rate;
      step.weight_decay = DecayOf(part);
      step.decoupled = o.kind == OptimizerKind::kAdamW;
      step.beta1 = o.beta1;
      step.beta2 = o.beta2;
      step.eps = o.eps;
      const double taken = StepsOf(part.layer).item<double>();
      step.correction1 = 1 - std::pow(o.beta1, taken);
      step.correction2 = 1 - std::pow(o.beta2, taken);
      step.gradient_scale = gradient_scale;
      AdamLoop(step, gradient, weights, slot("exp_avg"), slot("exp_avg_sq"), size);
      return;
    }
    case OptimizerKind::kSgd:
      SgdLoop({learning_rate, DecayOf(part), o.momentum, o.nesterov, gradient_scale}, gradient,
              weights, slot("momentum_buffer"), size);
      return;
    case OptimizerKind::kRmsProp:
      RmsPropLoop({learning_rate, DecayOf(part), o.alpha, o.eps, o.momentum, gradient_scale},
                  gradient, weights, slot("square_avg"), slot("momentum_buffer"), size);
      return;
  }
}

void Optimizer::OperatorStep(const at::Tensor& gradient, double learning_rate,
                             const std::optional<at::Tensor>& scale,
                             const std::optional<at::Tensor>& found_inf) {
  for (const Group& group : groups_) {
    if (Moves(group.like)) {
      GroupStep(group, gradient, learning_rate * group.like.rate, scale, found_inf);
    }
  }
}

void Optimizer::GroupStep(const Group& group, const at::Tensor& gradient, double learning_rate,
                          const std::optional<at::Tensor>& scale,
                          const std::optional<at::Tensor>& found_inf) {
  const at::TensorList weights = group.weights;
  const std::vector<at::Tensor> gradients = ViewsOf(group.like, gradient);
  const std::vector<at::Tensor> steps(weights.size(), StepsOf(group.like.layer));
  const double decay = DecayOf(group.like);
  const auto with_rate = [&](const auto& step) {
    if (!rate_.defined()) {
      step(learning_rate);
    } else {
      step(group.like.rate == 1 ? rate_ : rate_.mul(group.like.rate));
    }
  };
  switch (spec_.kind) {
    case OptimizerKind::kAdamW:
      with_rate([&](const auto& rate) {
        at::_fused_adamw_(weights, gradients, SlotOf(group, "exp_avg"), SlotOf(group, "exp_avg_sq"),
                          {}, steps, rate, spec_.beta1, spec_.beta2, decay, spec_.eps,
                          /*amsgrad=*/false, /*maximize=*/false, scale, found_inf);
      });
      return;
    case OptimizerKind::kAdam:
      with_rate([&](const auto& rate) {
        at::_fused_adam_(weights, gradients, SlotOf(group, "exp_avg"), SlotOf(group, "exp_avg_sq"),
                         {}, steps, rate, spec_.beta1, spec_.beta2, decay, spec_.eps,
                         /*amsgrad=*/false, /*maximize=*/false, scale, found_inf);
      });
      return;
    case OptimizerKind::kSgd:
      // A momentum buffer of zeros makes the first step the same as all others.
      with_rate([&](const auto& rate) {
        at::_fused_sgd_(weights, gradients, SlotOf(group, "momentum_buffer"), decay, spec_.momentum,
                        rate, /*dampening=*/0, spec_.nesterov, /*maximize=*/false,
                        /*is_first_step=*/false, scale, found_inf);
      });
      return;
    case OptimizerKind::kRmsProp:
      for (size_t part = 0; part < gradients.size(); ++part) {
        RmsPropOperators(group, part, gradients[part], learning_rate, scale, found_inf);
      }
      return;
  }
}

// torch has no fused RMSprop.
void Optimizer::RmsPropOperators(const Group& group, size_t part, at::Tensor gradient,
                                 double learning_rate, const std::optional<at::Tensor>& scale,
                                 const std::optional<at::Tensor>& found_inf) {
  const at::Tensor& weights = group.weights[part];
  const double decay = DecayOf(group.like);
  if (scale.has_value()) gradient = gradient.div(*scale);
  if (decay > 0) gradient = gradient.add(weights, decay);
  const auto assign = [&found_inf](const at::Tensor& target, const at::Tensor& value) {
    target.copy_(found_inf.has_value() ? at::where(found_inf->gt(0), target, value) : value);
  };
  const at::Tensor& average = group.slots.at("square_avg")[part];
  assign(average, average.mul(spec_.alpha).addcmul_(gradient, gradient, 1 - spec_.alpha));
  at::Tensor update = gradient.div(average.sqrt().add_(spec_.eps));
  const at::TensorList momentum = SlotOf(group, "momentum_buffer");
  if (!momentum.empty()) {
    update.add_(momentum[part], spec_.momentum);
    assign(momentum[part], update);
  }
  assign(weights, rate_.defined() ? weights.sub(update.mul(rate_).mul_(group.like.rate))
                                  : weights.sub(update, learning_rate));
}

double Optimizer::gradient_norm() const {
  return device_norm_.defined() ? device_norm_.item<double>() : norm_;
}

int64_t Optimizer::steps() const { return static_cast<int64_t>(StepsOf(-1).item<float>()); }

// A network without a body is its own.
int64_t Optimizer::body_steps() const {
  return static_cast<int64_t>(StepsOf(layers_ - 1).item<float>());
}

std::vector<int64_t> Optimizer::layer_steps() const {
  const at::Tensor host = steps_.cpu();
  const float* const values = host.const_data_ptr<float>();
  return {values, values + layers_};
}

void Optimizer::set_steps(int64_t steps, int64_t body_steps,
                          const std::vector<int64_t>& layer_steps) {
  const bool each = static_cast<int64_t>(layer_steps.size()) == layers_;
  for (int64_t layer = 0; layer < layers_; ++layer) {
    StepsOf(layer).fill_(each ? layer_steps[static_cast<size_t>(layer)] : body_steps);
  }
  StepsOf(-1).fill_(steps);
}

}  // namespace traind
