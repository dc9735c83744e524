#include "common/publish/tuned.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace traind {
namespace {

// AutoGluon's limits for a temperature.
constexpr size_t kLeastRows = 500;
constexpr size_t kLeastRowsOfTwo = 3000;
constexpr size_t kLeastRowsForThreshold = 200;
// At most so many rows choose a temperature.
constexpr size_t kMostRows = 10'000;
constexpr int kSteps = 12;
constexpr double kColdest = 0.2, kHottest = 5;
// The gain must be at least this share of the error.
constexpr double kLeastGain = 1e-4;
constexpr float kLeastProbability = 1e-7f;

// The logarithms of the probabilities of some rows.
struct Logs {
  std::vector<float> values;    // [rows, classes]
  std::vector<int32_t> labels;  // [rows]
};

Logs LogsOf(absl::Span<const FoldToTune> folds, size_t classes, size_t without) {
  size_t rows = 0;
  for (const FoldToTune& fold : folds) rows += fold.labels.size();
  const size_t step = rows / kMostRows + 1;
  Logs logs;
  for (size_t f = 0; f < folds.size(); ++f) {
    if (f == without) continue;
    for (size_t row = 0; row < folds[f].labels.size(); row += step) {
      if (folds[f].labels[row] < 0) continue;
      logs.labels.push_back(folds[f].labels[row]);
      for (size_t c = 0; c < classes; ++c) {
        logs.values.push_back(
            std::log(std::max(folds[f].probabilities[row * classes + c], kLeastProbability)));
      }
    }
  }
  return logs;
}

// The first and second derivative of the log loss by the inverse temperature.
std::pair<double, double> Slopes(const Logs& logs, size_t classes, double inverse) {
  double first = 0, second = 0;
  for (size_t row = 0; row < logs.labels.size(); ++row) {
    const float* const log = logs.values.data() + row * classes;
    const float top = *std::max_element(log, log + classes);
    double sum = 0, mean = 0, squares = 0;
    for (size_t c = 0; c < classes; ++c) {
      const double share = std::exp(inverse * (log[c] - top));
      sum += share;
      mean += share * log[c];
      squares += share * log[c] * log[c];
    }
    mean /= sum;
    first += mean - log[logs.labels[row]];
    second += squares / sum - mean * mean;
  }
  return {first, second};
}

// The log loss is convex in the inverse temperature, so Newton's steps find the best one.
double BestTemperature(const Logs& logs, size_t classes) {
  double inverse = 1;
  for (int step = 0; step < kSteps; ++step) {
    const auto [first, second] = Slopes(logs, classes, inverse);
    if (!(second > 0)) break;
    const double next = std::clamp(inverse - first / second, 1 / kHottest, 1 / kColdest);
    const bool settled = std::abs(next - inverse) < 1e-4;
    inverse = next;
    if (settled) break;
  }
  return 1 / inverse;
}

double SecondOf(const float* probabilities) {
  const double sum = static_cast<double>(probabilities[0]) + probabilities[1];
  return sum > 0 ? probabilities[1] / sum : 0.5;
}

// Returns the threshold of the best F1, in the middle between two rows' probabilities.
double BestThreshold(absl::Span<const FoldToTune> folds, size_t without) {
  std::vector<std::pair<double, bool>> rows;
  double positives = 0;
  for (size_t f = 0; f < folds.size(); ++f) {
    if (f == without) continue;
    for (size_t row = 0; row < folds[f].labels.size(); ++row) {
      const bool positive = folds[f].labels[row] == 1;
      rows.emplace_back(SecondOf(folds[f].probabilities.data() + 2 * row), positive);
      positives += positive ? 1 : 0;
    }
  }
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  double best = 0.5, best_score = -1, hits = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    hits += rows[i].second ? 1 : 0;
    if (i + 1 < rows.size() && rows[i + 1].first == rows[i].first) continue;
    const double score = 2 * hits / (static_cast<double>(i + 1) + positives);
    if (score <= best_score) continue;
    best_score = score;
    best = i + 1 < rows.size() ? (rows[i].first + rows[i + 1].first) / 2 : rows[i].first;
  }
  return best;
}

// Returns values whose score is that of the answer after adjusting. A threshold decides labels, and
// is only chosen for a metric of labels.
std::vector<float> Adjusted(const Tuned& tuned, size_t classes,
                            absl::Span<const float> probabilities) {
  std::vector<float> values(probabilities.begin(), probabilities.end());
  ApplyTemperature(tuned.temperature, classes, absl::MakeSpan(values));
  for (size_t at = 0; tuned.threshold && at < values.size(); at += classes) {
    const auto row = absl::MakeSpan(values).subspan(at, classes);
    const size_t label = LabelOf(row, tuned.threshold);
    for (size_t c = 0; c < classes; ++c) row[c] = c == label ? 1 : 0;
  }
  return values;
}

// Whether the answer, with each fold adjusted as the other folds chose, scores better.
bool Gains(Metric metric, size_t classes, absl::Span<const FoldToTune> folds,
           absl::Span<const Tuned> chosen) {
  std::vector<float> before, after;
  std::vector<int32_t> labels;
  for (size_t f = 0; f < folds.size(); ++f) {
    const FoldToTune& fold = folds[f];
    before.insert(before.end(), fold.probabilities.begin(), fold.probabilities.end());
    const std::vector<float> adjusted = Adjusted(chosen[f], classes, fold.probabilities);
    after.insert(after.end(), adjusted.begin(), adjusted.end());
    labels.insert(labels.end(), fold.labels.begin(), fold.labels.end());
  }
  const int count = static_cast<int>(classes);
  const double was = Score(metric, before, count, labels);
  const double is = Score(metric, after, count, labels);
  const double least = kLeastGain * std::abs(HigherIsBetter(metric) ? 1 - was : was);
  return Better(metric, HigherIsBetter(metric) ? is - least : is + least, was);
}

}  // namespace

void ApplyTemperature(double temperature, size_t classes, absl::Span<float> probabilities) {
  if (temperature == 1) return;
  std::vector<double> powers(classes);
  for (size_t at = 0; at < probabilities.size(); at += classes) {
    const auto row = probabilities.subspan(at, classes);
    const double top = *std::max_element(row.begin(), row.end());
    if (!(top > 0)) continue;
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) {
      powers[c] = std::pow(std::max<double>(row[c], 0) / top, 1 / temperature);
      sum += powers[c];
    }
    for (size_t c = 0; c < classes; ++c) row[c] = static_cast<float>(powers[c] / sum);
  }
}

size_t LabelOf(absl::Span<const float> probabilities, const std::optional<double>& threshold) {
  if (threshold && probabilities.size() == 2) {
    return SecondOf(probabilities.data()) >= *threshold ? 1 : 0;
  }
  return static_cast<size_t>(std::max_element(probabilities.begin(), probabilities.end()) -
                             probabilities.begin());
}

double TunedScore(Metric metric, size_t classes, const Tuned& tuned,
                  absl::Span<const float> probabilities, absl::Span<const int32_t> labels) {
  if (tuned == Tuned()) return Score(metric, probabilities, static_cast<int>(classes), labels);
  const std::vector<float> values = Adjusted(tuned, classes, probabilities);
  return Score(metric, values, static_cast<int>(classes), labels);
}

Tuned Tune(Metric metric, size_t classes, absl::Span<const FoldToTune> folds) {
  const Tuning tuning = metric.kind().tuning;
  size_t rows = 0;
  for (const FoldToTune& fold : folds) rows += fold.labels.size();
  const size_t least = tuning == Tuning::kThreshold ? kLeastRowsForThreshold
                       : classes == 2               ? kLeastRowsOfTwo
                                                    : kLeastRows;
  const bool suits =
      tuning == Tuning::kTemperature || (tuning == Tuning::kThreshold && classes == 2);
  if (!suits || folds.size() < 2 || rows < least) return Tuned();
  std::vector<Tuned> chosen(folds.size());
  double thresholds = 0;
  for (size_t f = 0; f < folds.size(); ++f) {
    if (tuning == Tuning::kTemperature) {
      chosen[f].temperature = BestTemperature(LogsOf(folds, classes, f), classes);
    } else {
      chosen[f].threshold = BestThreshold(folds, f);
      thresholds += *chosen[f].threshold;
    }
  }
  if (!Gains(metric, classes, folds, chosen)) return Tuned();
  Tuned tuned;
  if (tuning == Tuning::kTemperature) {
    tuned.temperature = BestTemperature(LogsOf(folds, classes, folds.size()), classes);
  } else {
    tuned.threshold = thresholds / static_cast<double>(folds.size());
  }
  return tuned;
}

double GainOf(absl::Span<const int> classes, size_t columns, absl::Span<const float> values) {
  double sum = 0;
  const size_t rows = values.size() / columns;
  for (const int index : classes) {
    const size_t at = static_cast<size_t>(index) + 1;
    for (size_t row = 0; row < rows && at < columns; ++row) sum += values[row * columns + at];
  }
  return rows == 0 ? 0 : sum / static_cast<double>(rows);
}

std::vector<int> ChooseComponents(size_t columns, absl::Span<const float> values) {
  std::vector<int> chosen;
  for (int index = 0; static_cast<size_t>(index) + 1 < columns; ++index) {
    if (GainOf({index}, columns, values) > 0) chosen.push_back(index);
  }
  return chosen;
}

}  // namespace traind
