// A Learner's optimizer steps.
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/device/autocast.h"
#include "worker/learner/learner_impl.h"
#include "worker/learner/media_inputs.h"
#include "worker/learner/mixup.h"
#include "worker/model/kernels/vector_loops.h"

namespace traind {

absl::StatusOr<MediaTensors> Learner::Impl::NextMedia(const StepInput& input) {
  const auto started = std::chrono::steady_clock::now();
  ASSIGN_OR_RETURN(const MediaBatch* const loaded, media_loader->GetBatch(input.begin, input.rows));
  MediaTensors tensors = TensorsOf(*loaded, HasTexts(options.shape), options.cuda);
  gather_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return tensors;
}

ResidentRows::Batch Learner::Impl::BatchOf(const StepInput& input, const at::Tensor& index,
                                           const MediaTensors& of_rows) {
  const auto started = std::chrono::steady_clock::now();
  ResidentRows::Batch batch = rows->Gather(index);
  batch.inputs.dropout_seed = input.dropout_seed;
  batch.inputs.fixed_below = fixed_below;
  AttachMedia(of_rows, batch.inputs);
  if (of_rows.target.defined()) batch.target = of_rows.target;
  gather_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return batch;
}

namespace {

// The targets of a batch for each of the model's members.
at::Tensor ForMembers(const at::Tensor& target, int64_t members) {
  if (members == 1) return target;
  std::vector<int64_t> times(static_cast<size_t>(target.dim()), 1);
  times[0] = members;
  return target.repeat(times);
}

// The loss of a network's outputs (Model::TrainingOutputs), each against the target at its extent:
// the voxel at the beginning of each of its cells.
at::Tensor LossOfLevels(const ObjectiveLoss& objective, const std::vector<at::Tensor>& outputs,
                        at::Tensor target, int64_t reduction) {
  at::Tensor sum = objective.Loss(outputs[0].to(at::kFloat), target, reduction);
  double weight = 1, weights = 1;
  for (size_t level = 1; level < outputs.size(); ++level) {
    for (int64_t dim = 2; dim < target.dim(); ++dim) {
      target = target.slice(dim, 0, std::nullopt, 2);
    }
    weight /= 2;
    weights += weight;
    sum = sum.add(objective.Loss(outputs[level].to(at::kFloat), target, reduction), weight);
  }
  return outputs.size() == 1 ? sum : sum.div(weights);
}

}  // namespace

// body: what a fixed body made of the rows; undefined: the body is trained. Returns the mean loss
// (of no rows: the sum). The loss to differentiate is `weight` times it.
at::Tensor Learner::Impl::LossOf(const StepInput& input, const ResidentRows::Batch& batch,
                                 const at::Tensor& body, double& weight) {
  Inputs inputs = batch.inputs;
  double share = 1;  // of a row's own target
  if (input.rows > 1 && !frozen) {
    const bool cuts = inputs.image.defined() && options.cutmix > 0 &&
                      (options.mixup == 0 || TossForCut(input.dropout_seed));
    if (cuts) {
      const CutBox box =
          DrawCut(options.cutmix, input.dropout_seed, inputs.image.size(-2), inputs.image.size(-1));
      inputs.image = CutFromOthers(inputs.image, box);
      share = box.share;
    } else if (options.mixup > 0) {
      share = MixupShare(options.mixup, input.dropout_seed);
      if (inputs.image.defined()) inputs.image = Mixed(inputs.image, share);
      inputs.numeric = Mixed(inputs.numeric, share);
    }
  }
  const Autocast autocast(device.type(), options.precision);
  const std::vector<at::Tensor> outputs =
      body.defined() ? std::vector<at::Tensor>{model->body()->Head(parameters.tensors(), inputs,
                                                                   body, /*training=*/true)}
                     : model->TrainingOutputs(parameters.tensors(), inputs);
  const auto loss_of = [&](const at::Tensor& wanted, int64_t reduction) {
    return LossOfLevels(*objective, outputs, wanted, reduction);
  };
  const at::Tensor target = ForMembers(batch.target, model->members());
  // The reducer divides by the number of ranks.
  const int world_size = options.group == nullptr ? 1 : options.group->world_size();
  if (input.rows == 0) {
    weight = 1;
    return loss_of(target, at::Reduction::Sum);
  }
  weight = static_cast<double>(input.rows) * world_size / static_cast<double>(input.gang_rows);
  const at::Tensor loss = loss_of(target, at::Reduction::Mean);
  if (share == 1) return loss;
  const at::Tensor flipped = ForMembers(batch.target.flip({0}), model->members());
  const at::Tensor other = loss_of(flipped, at::Reduction::Mean);
  return loss.mul(share).add(other, 1 - share);
}

absl::Status Learner::Impl::HandwrittenStep(const StepInput& input) {
  const at::NoGradGuard no_gradients;
  if (gradient_began && !part_gradient.defined()) part_gradient = at::zeros_like(gradient);
  const at::Tensor& target = gradient_began ? part_gradient : gradient;
  if (input.rows == 0) {
    target.zero_();
  } else {
    HandwrittenInput pass;
    pass.rows = order.const_data_ptr<int32_t>() + input.begin;
    pass.count = input.rows;
    pass.weight = static_cast<double>(input.rows) / static_cast<double>(input.gang_rows);
    pass.dropout_seed = input.dropout_seed;
    if (media_loader != nullptr) {
      const auto started = std::chrono::steady_clock::now();
      ASSIGN_OR_RETURN(pass.media, media_loader->GetBatch(input.begin, input.rows));
      gather_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    }
    const HandwrittenResult result =
        handwritten_backward->Run(pass, target.mutable_data_ptr<float>());
    host_loss_sum += result.loss_sum;
    gather_s += result.gather_s;
  }
  step_weight += WeightOf(input);
  if (gradient_began) gradient.add_(part_gradient);
  gradient_began = !input.last;
  if (!input.last) return absl::OkStatus();
  if (options.group != nullptr) {
    RETURN_IF_ERROR(options.group->Sum(
        absl::MakeSpan(gradient.mutable_data_ptr<float>(), static_cast<size_t>(gradient.numel()))));
  }
  return Update(input);
}

absl::Status Learner::Impl::Step(const StepInput& input) {
  RETURN_IF_ERROR(handwritten_backward != nullptr ? HandwrittenStep(input) : OperatorStep(input));
  loss_weight += WeightOf(input);
  if (input.last && options.ema_decay > 0) ++averaged;
  return absl::OkStatus();
}

absl::Status Learner::Impl::OperatorStep(const StepInput& input) {
  if (device.is_cuda()) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed(input.dropout_seed);
  }
  // A recorded step reads it, as it differs from step to step.
  if (ema_share.defined()) ema_share.fill_(1 - EmaDecay());
  ASSIGN_OR_RETURN(const bool launched, GraphStep(input));
  if (!launched) {
    MediaTensors of_rows;
    if (media_loader != nullptr && !frozen) {
      ASSIGN_OR_RETURN(of_rows, NextMedia(input));
    }
    RETURN_IF_ERROR(AutogradStep(input, order.narrow(0, input.begin, input.rows), of_rows));
  }
  gradient_began = !input.last;
  return absl::OkStatus();
}

// index: [rows] int32, the rows of the step.
absl::Status Learner::Impl::AutogradStep(const StepInput& input, const at::Tensor& index,
                                         const MediaTensors& of_rows) {
  const ResidentRows::Batch batch = BatchOf(input, index, of_rows);
  at::Tensor body;  // of a fixed one
  if (frozen) {
    const auto part =
        absl::MakeConstSpan(order_rows)
            .subspan(static_cast<size_t>(input.begin), static_cast<size_t>(input.rows));
    ASSIGN_OR_RETURN(body, FeaturesOf(part));
  }
  // Without these calls the reducer leaves the gradients on the parameters, where autograd
  // accumulates them.
  const bool reduce = reducer != nullptr && input.last && input.overlap;
  if (reduce) reducer->BeforeForward();
  double weight = 1;
  const at::Tensor loss = LossOf(input, batch, body, weight);
  at::Tensor scaled = weight == 1 ? loss : loss.mul(weight);
  if (scaler.has_value()) scaled = scaler->Scale(scaled);
  if (reduce) reducer->BeforeBackward();
  scaled.backward();
  const at::NoGradGuard no_gradients;
  if (input.rows > 0) loss_sum.add_(loss.detach(), static_cast<double>(input.rows));
  step_weight += WeightOf(input);
  if (!input.last) return absl::OkStatus();
  parameters.MoveGradientsTo(gradient);
  if (reducer != nullptr) reducer->Average(optimizer->Moving(gradient));
  return Update(input);
}

// The weight of this rank's rows in a mean over rows.
double Learner::Impl::WeightOf(const StepInput& input) const {
  if (order_weights.empty()) return static_cast<double>(input.rows);
  const auto begin = order_weights.begin() + input.begin;
  return std::accumulate(begin, begin + input.rows, 0.0);
}

// With class weights, a gradient that is the mean over rows becomes the one of PyTorch's weighted
// mean. The sum of the weights is known once the step's last micro-batch has been seen.
absl::Status Learner::Impl::DivideByWeights(const StepInput& input) {
  auto weight = static_cast<float>(std::exchange(step_weight, 0));
  if (row_weights.empty()) return absl::OkStatus();
  if (options.group != nullptr) {
    RETURN_IF_ERROR(options.group->Sum(absl::MakeSpan(&weight, 1)));
  }
  if (weight <= 0) return absl::OkStatus();
  for (const at::Tensor& part : optimizer->Moving(gradient)) {
    part.mul_(static_cast<double>(input.gang_rows) / weight);
  }
  return absl::OkStatus();
}

absl::Status Learner::Impl::Update(const StepInput& input) {
  RETURN_IF_ERROR(DivideByWeights(input));
  std::optional<at::Tensor> found_inf;
  if (scaler.has_value()) found_inf = scaler->Unscale(optimizer->Moving(gradient));
  optimizer->Step(gradient, input.learning_rate, options.clip_norm, found_inf);
  if (scaler.has_value()) scaler->Update();
  if (options.ema_decay > 0) UpdateEma();
  return absl::OkStatus();
}

// The first weights are the average. As in TensorFlow and torch_ema, the decay may then rise.
double Learner::Impl::EmaDecay() const {
  if (averaged == 0) return 0;
  const auto taken = static_cast<double>(averaged);
  return options.ema_warmup ? std::min(options.ema_decay, (1 + taken) / (10 + taken))
                            : options.ema_decay;
}

void Learner::Impl::UpdateEma() {
  const at::Tensor& weights = parameters.flat();
  if (device.is_cuda()) {
    ema.lerp_(weights, ema_share);
  } else if (averaged == 0) {
    ema.copy_(weights);
  } else {
    EmaLoop(EmaDecay(), weights.const_data_ptr<float>(), ema.mutable_data_ptr<float>(),
            ema.numel());
  }
}

}  // namespace traind
