#include "worker/model/objective/objective_gradient.h"

#include <algorithm>
#include <cmath>

namespace traind {
namespace {

constexpr float kSmapeEpsilon = 1e-6f;  // the same as in ObjectiveLoss

float Sign(float value) { return static_cast<float>((value > 0) - (value < 0)); }

struct LossAndSlope {
  float loss = 0, slope = 0;
};

LossAndSlope OfError(LossKind kind, float error, float delta) {
  switch (kind) {
    case LossKind::kMse:
      return {error * error, 2 * error};
    case LossKind::kMae:
      return {std::fabs(error), Sign(error)};
    default:  // Huber
      if (std::fabs(error) < delta) return {0.5f * error * error, error};
      return {delta * (std::fabs(error) - 0.5f * delta), delta * Sign(error)};
  }
}

LossAndSlope OfSmape(float answer, float value) {
  const float error = answer - value;
  const float size = std::fabs(answer) + std::fabs(value) + kSmapeEpsilon;
  const float loss = 2 * std::fabs(error) / size;
  return {loss, (2 * Sign(error) - loss * Sign(answer)) / size};
}

}  // namespace

ObjectiveGradient::ObjectiveGradient(const Objective& objective,
                                     const std::vector<double>& target_mean,
                                     const std::vector<double>& target_scale, Targets targets,
                                     int64_t outputs)
    : objective_(objective),
      targets_(targets),
      outputs_(outputs),
      mean_(target_mean.begin(), target_mean.end()),
      scale_(target_scale.begin(), target_scale.end()),
      class_weights_(objective.class_weights) {
  const size_t size = static_cast<size_t>(outputs);
  if (mean_.empty()) mean_.assign(size, 0.0f);
  if (scale_.empty()) scale_.assign(size, 1.0f);
  if (class_weights_.empty()) class_weights_.assign(size, 1.0f);
  for (const float weight : class_weights_) class_weights_sum_ += weight;
}

// -sum over c of t[c] w[c] log p[c], where t is the smoothed target.
double ObjectiveGradient::CrossEntropyRow(int64_t target, float weight, float* output) const {
  const size_t count = static_cast<size_t>(outputs_);
  float most = output[0];
  for (size_t c = 1; c < count; ++c) most = std::max(most, output[c]);
  double sum = 0;
  for (size_t c = 0; c < count; ++c) sum += std::exp(output[c] - most);
  const float log_sum = most + static_cast<float>(std::log(sum));
  const float smooth = static_cast<float>(objective_.label_smoothing);
  const float each = smooth / static_cast<float>(outputs_);
  const float own = (1 - smooth) * class_weights_[static_cast<size_t>(target)];
  const float mass = own + each * class_weights_sum_;
  double loss = own * (log_sum - output[target]);
  for (size_t c = 0; c < count; ++c) {
    if (each > 0) loss += each * class_weights_[c] * (log_sum - output[c]);
    float slope = std::exp(output[c] - log_sum) * mass - each * class_weights_[c];
    if (static_cast<int64_t>(c) == target) slope -= own;
    output[c] = slope * weight;
  }
  return loss;
}

double ObjectiveGradient::Run(const int32_t* rows, int64_t count, double weight, float* output) {
  double loss = 0;
  if (objective_.loss == LossKind::kCrossEntropy) {
    const float each =
        static_cast<float>(weight / static_cast<double>(std::max<int64_t>(1, count)));
    for (int64_t i = 0; i < count; ++i) {
      loss += CrossEntropyRow(targets_.classes[rows[i]], each, output + i * outputs_);
    }
    return loss;
  }
  const double cells = static_cast<double>(std::max<int64_t>(1, count * outputs_));
  const float each = static_cast<float>(weight / cells);
  const float delta = static_cast<float>(objective_.huber_delta);
  const bool smape = objective_.loss == LossKind::kSmape;
  for (int64_t i = 0; i < count; ++i) {
    const float* wanted = targets_.values + rows[i] * outputs_;
    for (int64_t j = 0; j < outputs_; ++j) {
      float& cell = output[i * outputs_ + j];
      const size_t column = static_cast<size_t>(j);
      if (smape) {
        const LossAndSlope at = OfSmape(cell * scale_[column] + mean_[column], wanted[j]);
        loss += at.loss;
        cell = at.slope * scale_[column] * each;
      } else {
        const LossAndSlope at = OfError(objective_.loss, cell - wanted[j], delta);
        loss += at.loss;
        cell = at.slope * each;
      }
    }
  }
  return loss / static_cast<double>(outputs_);
}

}  // namespace traind
