#include "worker/data/target_transform.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace traind {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
// Between these both branches go on without end. Outside, one of them comes to a halt: a small
// error of a transformed value there would be an error without bound of the value.
constexpr double kLeastLambda = 0, kMostLambda = 2;
constexpr double kNearlyZero = 1e-9;
// So many values at most choose lambda, and so many rows the smearing.
constexpr size_t kMostValues = 10'000, kMostRows = 8192;
constexpr size_t kLeastRows = 10;  // of fewer no mean can be told
constexpr size_t kGroups = 8;      // of residuals

constexpr std::pair<TransformKind, absl::string_view> kNames[] = {
    {TransformKind::kNone, "none"},
    {TransformKind::kLog, "log"},
    {TransformKind::kYeoJohnson, "yeo_johnson"},
};

// (e^(power * logarithm) - 1) / power
double Raised(double logarithm, double power) {
  return std::fabs(power) < kNearlyZero ? logarithm : std::expm1(power * logarithm) / power;
}

// The logarithm whose Raised() is `raised`.
double Lowered(double raised, double power) {
  return std::fabs(power) < kNearlyZero ? raised : std::log1p(power * raised) / power;
}

double YeoJohnson(double x, double lambda) {
  return x >= 0 ? Raised(std::log1p(x), lambda) : -Raised(std::log1p(-x), 2 - lambda);
}

double InverseYeoJohnson(double z, double lambda) {
  return z >= 0 ? std::expm1(Lowered(z, lambda)) : -std::expm1(Lowered(-z, 2 - lambda));
}

// The logarithm of the likelihood of values that are normal once transformed, but for a constant.
double Likelihood(const std::vector<double>& x, double lambda) {
  const auto count = static_cast<double>(x.size());
  double mean = 0, squares = 0, jacobian = 0, n = 0;
  for (const double value : x) {
    const double logarithm = std::log1p(std::fabs(value));
    const double z = value >= 0 ? Raised(logarithm, lambda) : -Raised(logarithm, 2 - lambda);
    const double distance = z - mean;  // Welford 1962
    mean += distance / ++n;
    squares += distance * (z - mean);
    jacobian += value >= 0 ? logarithm : -logarithm;
  }
  return -count / 2 * std::log(squares / count) + (lambda - 1) * jacobian;
}

// By golden section.
std::pair<double, double> BestLambda(const std::vector<double>& x) {
  const double ratio = (std::sqrt(5.0) - 1) / 2;
  double begin = kLeastLambda, end = kMostLambda;
  double low = end - ratio * (end - begin), high = begin + ratio * (end - begin);
  double at_low = Likelihood(x, low), at_high = Likelihood(x, high);
  while (end - begin > 1e-7) {
    if (at_low >= at_high) {
      end = std::exchange(high, low);
      at_high = at_low;
      low = end - ratio * (end - begin);
      at_low = Likelihood(x, low);
    } else {
      begin = std::exchange(low, high);
      at_low = at_high;
      high = begin + ratio * (end - begin);
      at_high = Likelihood(x, high);
    }
  }
  return {(begin + end) / 2, Likelihood(x, (begin + end) / 2)};
}

// Finite ones alone, ascending.
std::vector<double> Sorted(absl::Span<const float> values) {
  std::vector<double> sorted;
  for (const float value : values) {
    if (std::isfinite(value)) sorted.push_back(value);
  }
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

double QuantileOf(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

double DeviationOf(const std::vector<double>& values) {
  double mean = 0, squares = 0, n = 0;
  for (const double value : values) {
    const double distance = value - mean;
    mean += distance / ++n;
    squares += distance * (value - mean);
  }
  return std::sqrt(squares / n);
}

// The quartiles do not see the tails that lambda is to shorten. Center and unit: those of them with
// the greatest likelihood.
void FitYeoJohnson(const std::vector<double>& sorted, TargetTransform& transform) {
  constexpr double kOfNormal = 1.349;  // the quartiles' distance in standard deviations
  constexpr double kLeastUnit = 1e-3;  // of the standard deviation, where most values are alike
  transform.center = QuantileOf(sorted, 0.5);
  const double deviation = DeviationOf(sorted);
  if (!(deviation > kNearlyZero * std::fabs(transform.center)) || sorted.size() < kLeastRows) {
    return;
  }
  const double apart = (QuantileOf(sorted, 0.75) - QuantileOf(sorted, 0.25)) / kOfNormal;
  transform.unit = apart > 0 ? std::max(apart, kLeastUnit * deviation) : deviation;
  const size_t step = (sorted.size() + kMostValues - 1) / kMostValues;
  double greatest = -std::numeric_limits<double>::infinity();
  for (const double share : {0.5, 0.25, 0.75}) {
    const double center = QuantileOf(sorted, share);
    std::vector<double> x;
    for (size_t i = step / 2; i < sorted.size(); i += step) {
      x.push_back((sorted[i] - center) / transform.unit);
    }
    const auto [lambda, likelihood] = BestLambda(x);
    if (!(likelihood > greatest)) continue;
    greatest = likelihood;
    transform.lambda = lambda;
    transform.center = center;
  }
}

// The residuals of one target, ascending, and its median answer.
struct Residuals {
  std::vector<double> sorted;
  double answer = 0;
};

Residuals ResidualsOf(const TargetTransform& transform, absl::Span<const float> answers,
                      absl::Span<const float> targets, size_t first, size_t width) {
  Residuals residuals;
  std::vector<double> of_rows;
  const size_t rows = answers.size() / width, step = std::max<size_t>(1, rows / kMostRows);
  for (size_t row = 0; row < rows; row += step) {
    const double target = Transformed(transform, targets[row * width + first]);
    const float answer = answers[row * width + first];
    if (!std::isfinite(target) || !std::isfinite(answer)) continue;
    of_rows.push_back(std::clamp<double>(answer, transform.least, transform.most));
    residuals.sorted.push_back(target - of_rows.back());
  }
  if (of_rows.empty()) return residuals;
  std::sort(residuals.sorted.begin(), residuals.sorted.end());
  const auto middle = of_rows.begin() + static_cast<std::ptrdiff_t>(of_rows.size() / 2);
  std::nth_element(of_rows.begin(), middle, of_rows.end());
  residuals.answer = *middle;
  return residuals;
}

// Of the logarithm one group is exact: the mean of e^residual is a factor of every answer.
std::vector<double> Grouped(const TargetTransform& transform, const Residuals& residuals) {
  const size_t rows = residuals.sorted.size();
  if (rows < kLeastRows) return {};
  const size_t groups = transform.kind == TransformKind::kLog ? 1 : kGroups;
  std::vector<double> grouped;
  for (size_t group = 0; group < groups; ++group) {
    const size_t begin = rows * group / groups, end = rows * (group + 1) / groups;
    double sum = 0;
    for (size_t i = begin; i < end; ++i) {
      sum += transform.kind == TransformKind::kLog
                 ? std::exp(residuals.sorted[i])
                 : Inverted(transform, residuals.answer + residuals.sorted[i]);
    }
    const double mean = sum / static_cast<double>(end - begin);
    const double residual = transform.kind == TransformKind::kLog
                                ? std::log(mean)
                                : Transformed(transform, mean) - residuals.answer;
    if (!std::isfinite(residual)) return {};
    grouped.push_back(residual);
  }
  return grouped;
}

}  // namespace

absl::string_view TransformName(TransformKind kind) {
  for (const auto& [named, name] : kNames) {
    if (named == kind) return name;
  }
  return "";
}

std::optional<TransformKind> ParseTransform(absl::string_view name) {
  for (const auto& [kind, named] : kNames) {
    if (named == name) return kind;
  }
  return std::nullopt;
}

TargetTransform FitTransform(TransformKind kind, absl::Span<const float> values) {
  TargetTransform transform;
  transform.kind = kind;
  const std::vector<double> sorted = Sorted(values);
  if (sorted.empty() || kind == TransformKind::kNone) return transform;
  if (kind == TransformKind::kYeoJohnson) FitYeoJohnson(sorted, transform);
  const double least = sorted.front(), most = sorted.back();
  transform.most = Transformed(transform, most + (most - least));
  transform.least = kind == TransformKind::kLog ? 2 * std::log(least) - std::log(most)
                                                : Transformed(transform, least - (most - least));
  return transform;
}

double Transformed(const TargetTransform& transform, double value) {
  switch (transform.kind) {
    case TransformKind::kNone:
      return value;
    case TransformKind::kLog:
      return value > 0 ? std::log(value) : kNan;
    case TransformKind::kYeoJohnson:
      return YeoJohnson((value - transform.center) / transform.unit, transform.lambda);
  }
  return kNan;
}

double Inverted(const TargetTransform& transform, double transformed) {
  if (transform.kind == TransformKind::kNone) return transformed;
  if (!std::isfinite(transformed)) return kNan;
  const double z = std::clamp(transformed, transform.least, transform.most);
  if (transform.kind == TransformKind::kLog) return std::exp(z);
  return transform.center + transform.unit * InverseYeoJohnson(z, transform.lambda);
}

bool IsSound(const TargetTransform& transform) {
  return std::isfinite(transform.center) && std::isfinite(transform.unit) && transform.unit > 0 &&
         transform.lambda >= kLeastLambda && transform.lambda <= kMostLambda &&
         std::isfinite(transform.least) && std::isfinite(transform.most) &&
         transform.least <= transform.most;
}

bool WantsMeans(const Metric& metric) {
  const absl::string_view name = MetricName(metric);
  return name == "rmse" || name == "r2";
}

Smearing FitSmearing(absl::Span<const TargetTransform> transforms, absl::Span<const float> answers,
                     absl::Span<const float> targets) {
  Smearing smearing;
  for (size_t k = 0; k < transforms.size(); ++k) {
    const Residuals residuals = ResidualsOf(transforms[k], answers, targets, k, transforms.size());
    smearing.push_back(Grouped(transforms[k], residuals));
  }
  return smearing;
}

void ToOwnUnit(absl::Span<const TargetTransform> transforms, const Smearing& smearing,
               absl::Span<float> answers) {
  constexpr double kMost = std::numeric_limits<float>::max();
  const size_t width = transforms.size();
  for (size_t i = 0; width > 0 && i < answers.size(); ++i) {
    const TargetTransform& transform = transforms[i % width];
    const double answer = answers[i];
    double value = 0;
    if (smearing.size() == width && !smearing[i % width].empty()) {
      const std::vector<double>& residuals = smearing[i % width];
      const double within =
          std::isfinite(answer) ? std::clamp(answer, transform.least, transform.most) : answer;
      for (const double residual : residuals) value += Inverted(transform, within + residual);
      value /= static_cast<double>(residuals.size());
    } else {
      value = Inverted(transform, answer);
    }
    answers[i] = static_cast<float>(std::clamp(value, -kMost, kMost));
  }
}

}  // namespace traind
