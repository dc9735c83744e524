#include "common/metrics/metrics.h"

#include <absl/base/thread_annotations.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <absl/synchronization/mutex.h>

#include <cmath>
#include <map>
#include <string>

#include "common/metrics/registry.h"

namespace traind {
namespace {

constexpr char kLevel[] = "_q";
constexpr double kLeastLevel = 0.001;  // as in proto/job.proto

constexpr const MetricKind* kKinds[] = {
#define METRIC(Name) &k##Name##Metric,
#include "common/metrics/registry.inc"
#undef METRIC
};

bool Suits(const MetricKind& kind, absl::string_view task_type) {
  if (task_type == "classification") return kind.of_classes != nullptr;
  if (task_type == "segmentation") return kind.of_masks != nullptr;
  return kind.scores_values();
}

// The kinds that AtLevel has made, by their names. They stay, as copies of a Metric refer to them.
struct LevelKinds {
  absl::Mutex mutex;
  std::map<std::string, MetricKind> kinds ABSL_GUARDED_BY(mutex);
};

LevelKinds& MadeAtLevels() {
  static LevelKinds& made = *new LevelKinds();
  return made;
}

// The rows whose label is a class.
ClassRows LabelledRows(absl::Span<const float> probabilities, int classes,
                       absl::Span<const int32_t> labels) {
  ClassRows rows;
  rows.classes = classes;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes) continue;
    rows.probabilities.push_back(probabilities.data() + i * static_cast<size_t>(classes));
    rows.labels.push_back(labels[i]);
  }
  return rows;
}

double Mean(absl::Span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

Metric::Metric() : kind_(kKinds[0]) {}

std::vector<Metric> AllMetrics() {
  std::vector<Metric> all;
  for (const MetricKind* kind : kKinds) all.emplace_back(*kind);
  return all;
}

absl::StatusOr<Metric> MetricByName(absl::string_view name) {
  std::string known;
  for (const MetricKind* kind : kKinds) {
    if (kind->name == name) return Metric(*kind);
    absl::StrAppend(&known, known.empty() ? "" : ", ", kind->name);
    absl::string_view rest = name;
    double level = 0;
    if (kind->of_level != nullptr && absl::ConsumePrefix(&rest, kind->name) &&
        absl::ConsumePrefix(&rest, kLevel) && absl::SimpleAtod(rest, &level) &&
        level >= kLeastLevel && level <= 1 - kLeastLevel) {
      return AtLevel(Metric(*kind), level);
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown metric '", name, "'; known: ", known));
}

bool HasLevel(Metric metric) { return metric.kind().of_level != nullptr; }

Metric AtLevel(Metric metric, double level) {
  const absl::string_view plain = metric.kind().name;
  const std::string text = absl::StrCat(level);
  LevelKinds& made = MadeAtLevels();
  const absl::MutexLock lock(&made.mutex);
  const auto [at, is_new] = made.kinds.try_emplace(
      absl::StrCat(plain.substr(0, plain.find(kLevel)), kLevel, text), metric.kind());
  if (is_new) {
    at->second.name = at->first;
    // As the name says it, so that the same name is the same level in every process.
    if (!absl::SimpleAtod(text, &at->second.level)) at->second.level = level;
  }
  return Metric(at->second);
}

std::vector<Metric> MetricsFor(absl::string_view task_type) {
  std::vector<Metric> fitting;
  for (const MetricKind* kind : kKinds) {
    if (Suits(*kind, task_type)) fitting.emplace_back(*kind);
  }
  return fitting;
}

Metric DefaultMetricFor(absl::string_view task_type) {
  for (const Metric metric : MetricsFor(task_type)) {
    if (metric.kind().is_default) return metric;
  }
  return Metric();
}

absl::string_view MetricName(Metric metric) { return metric.kind().name; }
bool HigherIsBetter(Metric metric) { return metric.kind().higher_is_better; }
bool IsClassification(Metric metric) { return metric.kind().of_classes != nullptr; }
bool IsSegmentation(Metric metric) { return metric.kind().of_masks != nullptr; }

bool Better(Metric metric, double a, double b) {
  if (std::isnan(a)) return false;
  if (std::isnan(b)) return true;
  return HigherIsBetter(metric) ? a > b : a < b;
}

double Score(Metric metric, absl::Span<const float> probabilities, int classes,
             absl::Span<const int32_t> labels) {
  if (!IsClassification(metric)) return kNoScore;
  return metric.kind().of_classes(LabelledRows(probabilities, classes, labels));
}

double Score(Metric metric, absl::Span<const float> predicted, absl::Span<const float> target) {
  std::vector<double> p, t;
  for (size_t i = 0; i < target.size(); ++i) {
    if (std::isnan(target[i])) continue;
    p.push_back(predicted[i]);
    t.push_back(target[i]);
  }
  if (t.empty() || IsClassification(metric)) return kNoScore;
  return IsSegmentation(metric) ? Mean(p) : metric.kind().OfValues(p, t);
}

double Score(Metric metric, absl::Span<const float> predicted, absl::Span<const float> targets,
             size_t outputs) {
  if (outputs == 1) return Score(metric, predicted, targets);
  // Of a volume only the first value is a score.
  const size_t scored = IsSegmentation(metric) ? 1 : outputs;
  double sum = 0;
  std::vector<float> p(targets.size() / outputs), t(p.size());
  for (size_t k = 0; k < scored; ++k) {
    for (size_t i = 0; i < t.size(); ++i) {
      p[i] = predicted[i * outputs + k];
      t[i] = targets[i * outputs + k];
    }
    sum += Score(metric, p, t);
  }
  return sum / static_cast<double>(scored);
}

}  // namespace traind
