#include "common/metrics/metrics.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace traind {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct NamedMetric {
  Metric metric;
  absl::string_view name;
  bool higher_is_better;
  bool classification;
};
constexpr NamedMetric kMetrics[] = {
    {Metric::kAccuracy, "accuracy", true, true},
    {Metric::kLogLoss, "logloss", false, true},
    {Metric::kAuc, "auc", true, true},
    {Metric::kF1, "f1", true, true},
    {Metric::kRmse, "rmse", false, false},
    {Metric::kMae, "mae", false, false},
    {Metric::kR2, "r2", true, false},
    {Metric::kSmape, "smape", false, false},
    {Metric::kDice, "dice", true, false},
    {Metric::kIou, "iou", true, false},
};

const NamedMetric& Info(Metric metric) {
  for (const NamedMetric& info : kMetrics) {
    if (info.metric == metric) return info;
  }
  return kMetrics[0];
}

// The rows of a classification whose label is a class.
struct Rows {
  std::vector<const float*> probabilities;  // [n] of [classes]
  std::vector<int32_t> labels;              // [n]
  int classes = 0;

  size_t size() const { return labels.size(); }
};

Rows LabelledRows(absl::Span<const float> probabilities, int classes,
                  absl::Span<const int32_t> labels) {
  Rows rows;
  rows.classes = classes;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) continue;
    rows.probabilities.push_back(probabilities.data() + i * static_cast<size_t>(classes));
    rows.labels.push_back(labels[i]);
  }
  return rows;
}

int32_t ArgMax(const float* p, int classes) {
  return static_cast<int32_t>(std::max_element(p, p + classes) - p);
}

double Accuracy(const Rows& rows) {
  if (rows.size() == 0) return kNan;
  size_t right = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    right += ArgMax(rows.probabilities[i], rows.classes) == rows.labels[i];
  }
  return static_cast<double>(right) / static_cast<double>(rows.size());
}

double LogLoss(const Rows& rows) {
  if (rows.size() == 0) return kNan;
  // Clipped as scikit-learn clips float32.
  const double epsilon = std::numeric_limits<float>::epsilon();
  double sum = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const double p = rows.probabilities[i][rows.labels[i]];
    sum -= std::log(std::min(std::max(p, epsilon), 1 - epsilon));
  }
  return sum / static_cast<double>(rows.size());
}

// Area under the curve of `of` against all other classes: the chance that a row
// of the class has the higher probability, ties counting half.
double AucOf(const Rows& rows, int32_t of) {
  std::vector<std::pair<float, bool>> order;
  order.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    order.emplace_back(rows.probabilities[i][of], rows.labels[i] == of);
  }
  std::sort(order.begin(), order.end());
  double positives_below = 0, rank_sum = 0, positives = 0;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    double tied = 0;
    for (; end < order.size() && order[end].first == order[begin].first; ++end) {
      tied += order[end].second ? 1 : 0;
    }
    rank_sum += tied * (static_cast<double>(begin + 1) + static_cast<double>(end)) / 2;
    positives += tied;
    begin = end;
  }
  positives_below = positives * (positives + 1) / 2;
  const double negatives = static_cast<double>(order.size()) - positives;
  if (positives == 0 || negatives == 0) return kNan;
  return (rank_sum - positives_below) / (positives * negatives);
}

double Auc(const Rows& rows) {
  for (const float* p : rows.probabilities) {
    if (std::any_of(p, p + rows.classes, [](float x) { return std::isnan(x); })) return kNan;
  }
  if (rows.classes == 2) return AucOf(rows, 1);
  // One class against the rest, averaged over the classes that these rows have.
  double sum = 0;
  int defined = 0;
  for (int32_t of = 0; of < rows.classes; ++of) {
    const double auc = AucOf(rows, of);
    if (std::isnan(auc)) continue;
    sum += auc;
    ++defined;
  }
  return defined == 0 ? kNan : sum / defined;
}

double F1(const Rows& rows) {
  if (rows.size() == 0) return kNan;
  const auto classes = static_cast<size_t>(rows.classes);
  std::vector<double> hits(classes), predicted(classes), actual(classes);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int32_t guess = ArgMax(rows.probabilities[i], rows.classes);
    predicted[static_cast<size_t>(guess)] += 1;
    actual[static_cast<size_t>(rows.labels[i])] += 1;
    if (guess == rows.labels[i]) hits[static_cast<size_t>(guess)] += 1;
  }
  const auto f1 = [&](size_t c) {
    const double both = predicted[c] + actual[c];
    return both == 0 ? 0 : 2 * hits[c] / both;
  };
  if (rows.classes == 2) return f1(1);
  double sum = 0;
  int seen = 0;
  for (size_t c = 0; c < classes; ++c) {
    if (predicted[c] + actual[c] == 0) continue;
    sum += f1(c);
    ++seen;
  }
  return sum / seen;
}

double R2(const std::vector<double>& predicted, const std::vector<double>& target) {
  if (target.size() < 2) return kNan;
  double mean = 0;
  for (const double t : target) mean += t;
  mean /= static_cast<double>(target.size());
  double residual = 0, total = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    residual += (target[i] - predicted[i]) * (target[i] - predicted[i]);
    total += (target[i] - mean) * (target[i] - mean);
  }
  if (total == 0) return residual == 0 ? 1 : 0;
  return 1 - residual / total;
}

}  // namespace

absl::StatusOr<Metric> MetricByName(absl::string_view name) {
  std::string known;
  for (const NamedMetric& info : kMetrics) {
    if (info.name == name) return info.metric;
    absl::StrAppend(&known, known.empty() ? "" : ", ", info.name);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown metric '", name, "'; known: ", known));
}

absl::string_view MetricName(Metric metric) { return Info(metric).name; }
bool HigherIsBetter(Metric metric) { return Info(metric).higher_is_better; }
bool IsClassification(Metric metric) { return Info(metric).classification; }
bool IsSegmentation(Metric metric) { return metric == Metric::kDice || metric == Metric::kIou; }

bool Better(Metric metric, double a, double b) {
  if (std::isnan(a)) return false;
  if (std::isnan(b)) return true;
  return HigherIsBetter(metric) ? a > b : a < b;
}

double Score(Metric metric, absl::Span<const float> probabilities, int classes,
             absl::Span<const int32_t> labels) {
  const Rows rows = LabelledRows(probabilities, classes, labels);
  switch (metric) {
    case Metric::kAccuracy:
      return Accuracy(rows);
    case Metric::kLogLoss:
      return LogLoss(rows);
    case Metric::kAuc:
      return Auc(rows);
    case Metric::kF1:
      return F1(rows);
    default:
      return kNan;
  }
}

double Score(Metric metric, absl::Span<const float> predicted, absl::Span<const float> target) {
  std::vector<double> p, t;
  for (size_t i = 0; i < target.size(); ++i) {
    if (std::isnan(target[i])) continue;
    p.push_back(predicted[i]);
    t.push_back(target[i]);
  }
  if (t.empty()) return kNan;
  const auto n = static_cast<double>(t.size());
  double sum = 0;
  switch (metric) {
    case Metric::kRmse:
      for (size_t i = 0; i < t.size(); ++i) sum += (p[i] - t[i]) * (p[i] - t[i]);
      return std::sqrt(sum / n);
    case Metric::kMae:
      for (size_t i = 0; i < t.size(); ++i) sum += std::abs(p[i] - t[i]);
      return sum / n;
    case Metric::kSmape:
      for (size_t i = 0; i < t.size(); ++i) {
        const double size = std::abs(p[i]) + std::abs(t[i]);
        // Both zero: no error.
        if (size != 0) sum += 2 * std::abs(p[i] - t[i]) / size;
      }
      return 100 * sum / n;
    case Metric::kR2:
      return R2(p, t);
    case Metric::kDice:
    case Metric::kIou:
      for (const double score : p) sum += score;
      return sum / n;
    default:
      return kNan;
  }
}

double Score(Metric metric, absl::Span<const float> predicted, absl::Span<const float> targets,
             size_t outputs) {
  if (outputs == 1) return Score(metric, predicted, targets);
  double sum = 0;
  std::vector<float> p(targets.size() / outputs), t(p.size());
  for (size_t k = 0; k < outputs; ++k) {
    for (size_t i = 0; i < t.size(); ++i) {
      p[i] = predicted[i * outputs + k];
      t[i] = targets[i * outputs + k];
    }
    sum += Score(metric, p, t);
  }
  return sum / static_cast<double>(outputs);
}

}  // namespace traind
