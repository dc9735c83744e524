#include "worker/floor/linear_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

namespace traind {
namespace {

// Four sums at a time, because the compiler may not reorder a plain sum of floats.
using Lanes = float __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;

Lanes Load(const float* p) {
  Lanes lanes;
  std::memcpy(&lanes, p, sizeof lanes);
  return lanes;
}

float Dot(const float* a, const float* b, size_t n) {
  Lanes sum = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) sum += Load(a + i) * Load(b + i);
  float total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

void AddScaled(float scale, const float* x, float* y, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Lanes sum = Load(y + i) + scale * Load(x + i);
    std::memcpy(y + i, &sum, sizeof sum);
  }
  for (; i < n; ++i) y[i] += scale * x[i];
}

double Inner(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

struct Step {
  std::vector<float> moved;    // difference of the weights
  std::vector<float> changed;  // difference of the gradients
  double curvature = 0;        // their inner product, > 0
};

// The two-loop recursion of L-BFGS: steepest descent, corrected by the
// curvature of the last steps.
std::vector<float> Direction(const std::vector<float>& gradient, const std::deque<Step>& steps) {
  std::vector<float> direction(gradient.size());
  for (size_t i = 0; i < gradient.size(); ++i) direction[i] = -gradient[i];
  std::vector<double> shares(steps.size());
  for (size_t k = steps.size(); k-- > 0;) {
    shares[k] = Inner(steps[k].moved, direction) / steps[k].curvature;
    AddScaled(static_cast<float>(-shares[k]), steps[k].changed.data(), direction.data(),
              direction.size());
  }
  if (!steps.empty()) {
    const Step& last = steps.back();
    const auto scale = static_cast<float>(last.curvature / Inner(last.changed, last.changed));
    for (float& x : direction) x *= scale;
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    const double share = Inner(steps[k].changed, direction) / steps[k].curvature;
    AddScaled(static_cast<float>(shares[k] - share), steps[k].moved.data(), direction.data(),
              direction.size());
  }
  return direction;
}

size_t WordsEnd(const DesignRows& rows, size_t row) {
  return rows.word_ends.empty() ? 0 : rows.word_ends[row];
}
size_t WordsBegin(const DesignRows& rows, size_t row) {
  return row == 0 ? 0 : WordsEnd(rows, row - 1);
}

}  // namespace

LinearModel::LinearModel(Link link, size_t numbers, size_t switches, size_t words, size_t outputs)
    : link_(link),
      numbers_(numbers),
      words_at_(1 + numbers + switches),
      stride_(1 + numbers + switches + words),
      outputs_(outputs),
      weights_(stride_ * outputs) {}

void LinearModel::Outputs(const std::vector<float>& weights, const DesignRows& rows, size_t row,
                          float* out) const {
  const float* const x = rows.values.data() + row * numbers_;
  const int32_t* const on = rows.on.data() + row * rows.places;
  for (size_t k = 0; k < outputs_; ++k) {
    const float* const w = weights.data() + k * stride_;
    float sum = w[0] + Dot(w + 1, x, numbers_);
    const float* const switches = w + 1 + numbers_;
    for (size_t i = 0; i < rows.places; ++i) {
      if (on[i] != DesignRows::kOff) sum += switches[on[i]];
    }
    const float* const words = w + words_at_;
    for (size_t i = WordsBegin(rows, row), end = WordsEnd(rows, row); i < end; ++i) {
      sum += words[rows.words[i]] * rows.word_values[i];
    }
    out[k] = sum;
  }
}

// Replaces a row's outputs with the loss's gradient by them. Returns the loss.
double LinearModel::RowLoss(float* outputs, float target) const {
  if (link_ == Link::kIdentity) {
    outputs[0] -= target;
    return 0.5 * outputs[0] * outputs[0];
  }
  if (link_ == Link::kLogistic) {
    // log(1 + e^z) - target z, without overflow.
    const float z = outputs[0];
    const float e = std::exp(-std::abs(z));
    const float p = z >= 0 ? 1 / (1 + e) : e / (1 + e);
    outputs[0] = p - target;
    return std::max(z, 0.0f) + std::log1p(e) - target * z;
  }
  const float largest = *std::max_element(outputs, outputs + outputs_);
  const auto label = static_cast<size_t>(target);
  const float label_output = outputs[label] - largest;
  float sum = 0;
  for (size_t k = 0; k < outputs_; ++k) sum += outputs[k] = std::exp(outputs[k] - largest);
  for (size_t k = 0; k < outputs_; ++k) outputs[k] /= sum;
  outputs[label] -= 1;
  return std::log(sum) - label_output;
}

// gradient: that of one output's weights.
void LinearModel::AddGradient(const DesignRows& rows, size_t row, float slope,
                              float* gradient) const {
  gradient[0] += slope;
  AddScaled(slope, rows.values.data() + row * numbers_, gradient + 1, numbers_);
  const int32_t* const on = rows.on.data() + row * rows.places;
  float* const switches = gradient + 1 + numbers_;
  for (size_t i = 0; i < rows.places; ++i) {
    if (on[i] != DesignRows::kOff) switches[on[i]] += slope;
  }
  float* const words = gradient + words_at_;
  for (size_t i = WordsBegin(rows, row), end = WordsEnd(rows, row); i < end; ++i) {
    words[rows.words[i]] += slope * rows.word_values[i];
  }
}

double LinearModel::Loss(const std::vector<float>& weights, const DesignRows& rows,
                         absl::Span<const float> targets, double l2,
                         std::vector<float>& gradient) const {
  std::fill(gradient.begin(), gradient.end(), 0.0f);
  std::vector<float> outputs(outputs_);
  // The mean over rows, so that a first step of length one is sensible.
  const auto share = static_cast<float>(1.0 / static_cast<double>(rows.rows));
  double loss = 0;
  for (size_t row = 0; row < rows.rows; ++row) {
    Outputs(weights, rows, row, outputs.data());
    loss += RowLoss(outputs.data(), targets[row]);
    for (size_t k = 0; k < outputs_; ++k) {
      AddGradient(rows, row, outputs[k] * share, gradient.data() + k * stride_);
    }
  }
  loss *= share;
  const double penalty = l2 * share;
  for (size_t k = 0; k < outputs_; ++k) {
    const float* const w = weights.data() + k * stride_;
    float* const g = gradient.data() + k * stride_;
    for (size_t j = 1; j < stride_; ++j) {
      loss += 0.5 * penalty * w[j] * w[j];
      g[j] += static_cast<float>(penalty) * w[j];
    }
  }
  return loss;
}

void LinearModel::Fit(const DesignRows& rows, absl::Span<const float> targets,
                      const FitOptions& options) {
  constexpr size_t kRemembered = 8;
  constexpr int kHalvings = 12;
  constexpr double kEnoughDescent = 1e-4;
  std::vector<float> gradient(weights_.size()), next_gradient(weights_.size());
  std::vector<float> next(weights_.size());
  double loss = Loss(weights_, rows, targets, options.l2, gradient);
  const double first_norm = std::sqrt(Inner(gradient, gradient));
  std::deque<Step> steps;
  for (int iteration = 0; iteration < options.iterations; ++iteration) {
    if (options.stop && options.stop()) return;
    const double norm = std::sqrt(Inner(gradient, gradient));
    if (!(norm > options.flat * first_norm)) return;
    std::vector<float> direction = Direction(gradient, steps);
    double slope = Inner(gradient, direction);
    if (!(slope < 0)) {
      steps.clear();
      direction = Direction(gradient, steps);
      slope = -norm * norm;
    }
    double length = steps.empty() ? 1 / std::max(1.0, norm) : 1;
    double next_loss = 0;
    bool descended = false;
    for (int tries = 0; tries < kHalvings && !descended; ++tries, length /= 2) {
      if (options.stop && options.stop()) return;
      next = weights_;
      AddScaled(static_cast<float>(length), direction.data(), next.data(), next.size());
      next_loss = Loss(next, rows, targets, options.l2, next_gradient);
      descended = next_loss <= loss + kEnoughDescent * length * slope;
    }
    if (!descended) return;
    Step step;
    step.moved.resize(weights_.size());
    step.changed.resize(weights_.size());
    for (size_t i = 0; i < weights_.size(); ++i) {
      step.moved[i] = next[i] - weights_[i];
      step.changed[i] = next_gradient[i] - gradient[i];
    }
    step.curvature = Inner(step.moved, step.changed);
    if (step.curvature > 1e-12) steps.push_back(std::move(step));
    if (steps.size() > kRemembered) steps.pop_front();
    weights_.swap(next);
    gradient.swap(next_gradient);
    loss = next_loss;
  }
}

void LinearModel::Predict(const DesignRows& rows, absl::Span<float> out) const {
  std::vector<float> outputs(outputs_);
  float* to = out.data();
  for (size_t row = 0; row < rows.rows; ++row) {
    Outputs(weights_, rows, row, outputs.data());
    if (link_ == Link::kIdentity) {
      *to++ = outputs[0];
    } else if (link_ == Link::kLogistic) {
      const float p = 1 / (1 + std::exp(-outputs[0]));
      *to++ = 1 - p;
      *to++ = p;
    } else {
      const float largest = *std::max_element(outputs.begin(), outputs.end());
      float sum = 0;
      for (float& output : outputs) sum += output = std::exp(output - largest);
      for (const float output : outputs) *to++ = output / sum;
    }
  }
}

}  // namespace traind
