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

LossAndSlope OfHuber(float error, float delta) {
  if (std::fabs(error) < delta) return {0.5f * error * error, error};
  return {delta * (std::fabs(error) - 0.5f * delta), delta * Sign(error)};
}

LossAndSlope OfSmape(float answer, float value) {
  const float error = answer - value;
  const float size = std::fabs(answer) + std::fabs(value) + kSmapeEpsilon;
  const float loss = 2 * std::fabs(error) / size;
  return {loss, (2 * Sign(error) - loss * Sign(answer)) / size};
}

LossAndSlope OfQuantile(float error, float quantile) {
  const float tilt = 0.5f - quantile;
  return {0.5f * std::fabs(error) + tilt * error, 0.5f * Sign(error) + tilt};
}

// The exponential function, up to kMostExponent.
LossAndSlope Exponential(float exponent) {
  const float slope = std::exp(std::min(exponent, kMostExponent));
  return {slope * (1 + std::max(0.0f, exponent - kMostExponent)), slope};
}

LossAndSlope OfPoisson(float output, float wanted) {
  const LossAndSlope answer = Exponential(output);
  const float least = wanted > 0 ? wanted - wanted * std::log(wanted) : 0.0f;
  return {answer.loss - wanted * output - least, answer.slope - wanted};
}

LossAndSlope OfTweedie(float output, float wanted, float power) {
  const LossAndSlope falling = Exponential((1 - power) * output);
  const LossAndSlope rising = Exponential((2 - power) * output);
  return {rising.loss / (2 - power) - wanted * falling.loss / (1 - power),
          rising.slope - wanted * falling.slope};
}

// wanted: as ObjectiveLoss::Standardise has left it. mean, scale: the target's.
LossAndSlope OfOutput(const Objective& objective, float output, float wanted, float mean,
                      float scale) {
  const float error = output - wanted;
  switch (objective.loss) {
    case LossKind::kMse:
      return {error * error, 2 * error};
    case LossKind::kMae:
      return {std::fabs(error), Sign(error)};
    case LossKind::kSmape: {
      const LossAndSlope of = OfSmape(output * scale + mean, wanted);
      return {of.loss, of.slope * scale};
    }
    case LossKind::kQuantile:
      return OfQuantile(error, static_cast<float>(objective.quantile));
    case LossKind::kPoisson:
      return OfPoisson(output, wanted);
    case LossKind::kTweedie:
      return OfTweedie(output, wanted, static_cast<float>(objective.tweedie_power));
    default:
      return OfHuber(error, static_cast<float>(objective.huber_delta));
  }
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
  for (int64_t i = 0; i < count; ++i) {
    const float* wanted = targets_.values + rows[i] * outputs_;
    for (int64_t j = 0; j < outputs_; ++j) {
      float& cell = output[i * outputs_ + j];
      const size_t column = static_cast<size_t>(j);
      const LossAndSlope at = OfOutput(objective_, cell, wanted[j], mean_[column], scale_[column]);
      loss += at.loss;
      cell = at.slope * each;
    }
  }
  return loss / static_cast<double>(outputs_);
}

}  // namespace traind
