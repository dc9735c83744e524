#include "worker/model/objective/objective_loss.h"

#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/xlogy.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>

namespace traind {
namespace {

constexpr double kSmapeEpsilon = 1e-6;  // prevents 0/0

at::Tensor Reduce(const at::Tensor& losses, int64_t reduction) {
  return reduction == at::Reduction::Mean ? losses.mean() : losses.sum();
}

// The exponential function, up to kMostExponent.
at::Tensor Exponential(const at::Tensor& exponent) {
  const at::Tensor bounded = exponent.clamp_max(kMostExponent);
  return bounded.exp().mul(exponent.sub(bounded).add(1));
}

at::Tensor Poisson(const at::Tensor& output, const at::Tensor& wanted) {
  const at::Tensor least = wanted.sub(at::xlogy(wanted, wanted));
  return Exponential(output).sub(wanted.mul(output)).sub(least);
}

at::Tensor Tweedie(const at::Tensor& output, const at::Tensor& wanted, double power) {
  const at::Tensor falling = Exponential(output.mul(1 - power)).mul(wanted).div(1 - power);
  return Exponential(output.mul(2 - power)).div(2 - power).sub(falling);
}

// Returns [B], a loss per sample.
at::Tensor DiceBce(const at::Tensor& output, const at::Tensor& wanted) {
  const std::vector<int64_t> voxels{1, 2, 3, 4};
  const at::Tensor p = at::sigmoid(output);
  const at::Tensor both = p.mul(wanted).sum(voxels), all = p.sum(voxels).add(wanted.sum(voxels));
  const at::Tensor dice = both.mul(2).add(1).div(all.add(1));
  const at::Tensor entropy =
      at::binary_cross_entropy_with_logits(output, wanted, {}, {}, at::Reduction::None);
  return entropy.mean(voxels).sub(dice).add(1);
}

// Returns [B], a loss per sample.
at::Tensor DiceCe(const at::Tensor& output, const at::Tensor& wanted) {
  const int64_t classes = output.size(1) - 1;
  const at::Tensor log_p = at::log_softmax(output, 1);
  const at::Tensor label = wanted.to(at::kLong);  // [B, 1, D, H, W]
  // Without the background.
  const at::Tensor p = log_p.narrow(1, 1, classes).exp();
  const at::Tensor m = at::zeros_like(output).scatter_(1, label, 1).narrow(1, 1, classes);
  const std::vector<int64_t> voxels{2, 3, 4};
  const at::Tensor both = p.mul(m).sum(voxels), all = p.sum(voxels).add(m.sum(voxels));
  const at::Tensor dice = both.mul(2).add(1).div(all.add(1)).mean(1);
  return dice.add(log_p.gather(1, label).mean({1, 2, 3, 4})).neg().add(1);
}

}  // namespace

ObjectiveLoss::ObjectiveLoss(const Objective& objective, const std::vector<double>& target_mean,
                             const std::vector<double>& target_scale, c10::Device device)
    : objective_(objective), mean_(target_mean), scale_(target_scale) {
  // The unit of answers takes the place of both: they are exp(output) * scale + mean.
  for (size_t k = 0; IsOfLogarithm(objective_.loss) && k < mean_.size(); ++k) {
    scale_[k] = UnitOfLogarithm(mean_[k]);
    mean_[k] = 0;
  }
  const at::TensorOptions options = at::TensorOptions().dtype(at::kFloat);
  if (!objective_.class_weights.empty()) {
    class_weights_ = at::tensor(objective_.class_weights, options).to(device);
  }
  if (!mean_.empty()) mean_tensor_ = at::tensor(mean_, options).to(device);
  if (!scale_.empty()) scale_tensor_ = at::tensor(scale_, options).to(device);
}

void ObjectiveLoss::Standardise(std::vector<float>& values) const {
  if (mean_.empty() || objective_.loss == LossKind::kSmape) return;
  const size_t outputs = mean_.size();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((values[i] - mean_[i % outputs]) / scale_[i % outputs]);
  }
}

at::Tensor ObjectiveLoss::Loss(const at::Tensor& output, const at::Tensor& wanted,
                               int64_t reduction) const {
  const at::Tensor loss = MeanLoss(output, wanted, reduction);
  // A sum over rows of the means over outputs.
  if (classification() || IsOfMasks(objective_.loss) || reduction == at::Reduction::Mean ||
      output.size(1) == 1) {
    return loss;
  }
  return loss.div(output.size(1));
}

at::Tensor ObjectiveLoss::MeanLoss(const at::Tensor& output, const at::Tensor& wanted,
                                   int64_t reduction) const {
  constexpr int64_t kIgnoreNone = -100;
  switch (objective_.loss) {
    case LossKind::kCrossEntropy:
      if (!class_weights_.defined()) {
        return at::cross_entropy_loss(output, wanted, {}, reduction, kIgnoreNone,
                                      objective_.label_smoothing);
      }
      return Reduce(at::cross_entropy_loss(output, wanted, class_weights_, at::Reduction::None,
                                           kIgnoreNone, objective_.label_smoothing),
                    reduction);
    case LossKind::kMse:
      return at::mse_loss(output, wanted, reduction);
    case LossKind::kMae:
      return at::l1_loss(output, wanted, reduction);
    case LossKind::kHuber:
      return at::huber_loss(output, wanted, reduction, objective_.huber_delta);
    case LossKind::kQuantile: {
      const at::Tensor error = output.sub(wanted);
      return Reduce(error.abs().mul(0.5).add(error, 0.5 - objective_.quantile), reduction);
    }
    case LossKind::kPoisson:
      return Reduce(Poisson(output, wanted), reduction);
    case LossKind::kTweedie:
      return Reduce(Tweedie(output, wanted, objective_.tweedie_power), reduction);
    case LossKind::kDiceBce:
      return Reduce(DiceBce(output, wanted), reduction);
    case LossKind::kDiceCe:
      return Reduce(DiceCe(output, wanted), reduction);
    case LossKind::kSmape: {
      const at::Tensor answer = Answer(output);
      const at::Tensor error = answer.sub(wanted).abs().mul(2);
      return Reduce(error.div(answer.abs().add(wanted.abs()).add(kSmapeEpsilon)), reduction);
    }
  }
  return at::Tensor();
}

at::Tensor ObjectiveLoss::Answer(const at::Tensor& output) const {
  if (classification() || objective_.loss == LossKind::kDiceCe) return at::softmax(output, 1);
  if (objective_.loss == LossKind::kDiceBce) return at::sigmoid(output);
  const at::Tensor values =
      IsOfLogarithm(objective_.loss) ? output.clamp_max(kMostExponent).exp() : output;
  return mean_tensor_.defined() ? values.mul(scale_tensor_).add(mean_tensor_) : values;
}

void ObjectiveLoss::Answer(absl::Span<float> output, int64_t outputs) const {
  const size_t width = static_cast<size_t>(outputs);
  for (size_t begin = 0; begin < output.size(); begin += width) {
    const absl::Span<float> row = output.subspan(begin, width);
    if (!classification()) {
      if (IsOfLogarithm(objective_.loss)) {
        for (float& value : row) value = std::exp(std::min(value, kMostExponent));
      }
      for (size_t j = 0; j < width && !mean_.empty(); ++j) {
        row[j] = row[j] * static_cast<float>(scale_[j]) + static_cast<float>(mean_[j]);
      }
      continue;
    }
    const float most = *std::max_element(row.begin(), row.end());
    float sum = 0;
    for (float& value : row) sum += value = std::exp(value - most);
    for (float& value : row) value /= sum;
  }
}

}  // namespace traind
