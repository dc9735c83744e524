#include "common/publish/second_layer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "common/publish/ensemble.h"

namespace traind {
namespace {

constexpr int kFloor = -1;
// As for a temperature (tuned.cc).
constexpr size_t kLeastRows = 500, kLeastRowsOfTwo = 3000;
constexpr size_t kMostParts = 12;
// At most so many values of each part choose the powers.
constexpr size_t kMostValues = 60'000;
// The prior counts as so many rows.
constexpr double kPrior = 20;
constexpr double kStandardErrors = 1.5, kLeastGain = 1e-4;
constexpr int kSteps = 25;
constexpr float kLeastProbability = 1e-7f;

double LogOf(double probability) {
  return std::log(std::max<double>(probability, kLeastProbability));
}

// Scales exp(logs) to sum to 1, in place.
void Softmax(absl::Span<double> logs) {
  const double top = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (double& log : logs) sum += log = std::exp(log - top);
  for (double& share : logs) share /= sum;
}

// The parts of one fold, with the floor.
struct FoldParts {
  double weight = 0;                          // of its models in the whole answer
  std::map<int, std::vector<size_t>> models;  // by trial: places of its parts
};

// The parts of an answer by their folds.
struct Sorted {
  std::map<int, FoldParts> folds;
  std::vector<size_t> floor;  // at most one
  double floor_weight = 0;
};

Sorted SortedParts(absl::Span<const AnswerPart> parts) {
  Sorted sorted;
  for (size_t k = 0; k < parts.size(); ++k) {
    if (parts[k].fold < 0) {
      sorted.floor = {k};
      sorted.floor_weight = parts[k].weight;
      continue;
    }
    FoldParts& fold = sorted.folds[parts[k].fold];
    fold.weight += parts[k].weight;
    fold.models[parts[k].trial].push_back(k);
  }
  return sorted;
}

// What a row has of one fold.
class RowOfFold {
 public:
  RowOfFold(absl::Span<const AnswerPart> parts, const Sorted& sorted, const FoldParts& fold)
      : parts_(parts), sorted_(sorted), fold_(fold) {}

  // The mean of the fold's models and the floor, by their weights.
  void Mean(absl::Span<const absl::Span<const float>> values, size_t at,
            absl::Span<double> mean) const {
    std::fill(mean.begin(), mean.end(), 0);
    for (const auto& [trial, places] : fold_.models) {
      for (const size_t place : places) {
        const double share = (1 - sorted_.floor_weight) * parts_[place].weight / fold_.weight;
        for (size_t c = 0; c < mean.size(); ++c) mean[c] += share * values[place][at + c];
      }
    }
    for (const size_t place : sorted_.floor) {
      for (size_t c = 0; c < mean.size(); ++c) {
        mean[c] += sorted_.floor_weight * values[place][at + c];
      }
    }
  }
  // The logarithms of a trial's probabilities, or of `mean` where the fold lacks it.
  void Logs(int trial, absl::Span<const absl::Span<const float>> values, size_t at,
            absl::Span<const double> mean, absl::Span<double> logs) const {
    const auto found = fold_.models.find(trial);
    const std::vector<size_t>* places = found == fold_.models.end() ? nullptr : &found->second;
    if (trial == kFloor && !sorted_.floor.empty()) places = &sorted_.floor;
    for (size_t c = 0; c < logs.size(); ++c) {
      if (places == nullptr) {
        logs[c] = LogOf(mean[c]);
        continue;
      }
      double sum = 0;
      for (const size_t place : *places) sum += values[place][at + c];
      logs[c] = LogOf(sum / static_cast<double>(places->size()));
    }
  }

 private:
  const absl::Span<const AnswerPart> parts_;
  const Sorted& sorted_;
  const FoldParts& fold_;
};

// ---- Choosing ------------------------------------------------------------------

// The rows that choose.
struct Rows {
  size_t classes = 0, trials = 0;
  std::vector<double> logs;     // [rows, trials, classes]
  std::vector<int32_t> labels;  // [rows]
  std::vector<double> losses;   // [rows]: of the weights
  std::vector<size_t> folds;    // [rows]

  absl::Span<const double> LogsOf(size_t row) const {
    return absl::MakeConstSpan(logs).subspan(row * trials * classes, trials * classes);
  }
};

Rows RowsOf(size_t classes, absl::Span<const FoldToJoin> folds, const std::vector<int>& trials,
            const Tuned& tuned) {
  Rows rows;
  rows.classes = classes;
  rows.trials = trials.size();
  size_t all = 0;
  for (const FoldToJoin& fold : folds) all += fold.labels.size();
  const size_t step = all * classes / kMostValues + 1;
  std::vector<double> mean(classes), logs(classes);
  for (size_t f = 0; f < folds.size(); ++f) {
    const FoldToJoin& fold = folds[f];
    const Sorted sorted = SortedParts(fold.parts);
    const RowOfFold of(fold.parts, sorted, sorted.folds.begin()->second);
    for (size_t row = 0; row < fold.labels.size(); row += step) {
      if (fold.labels[row] < 0) continue;
      of.Mean(fold.values, row * classes, absl::MakeSpan(mean));
      for (const int trial : trials) {
        of.Logs(trial, fold.values, row * classes, mean, absl::MakeSpan(logs));
        rows.logs.insert(rows.logs.end(), logs.begin(), logs.end());
      }
      for (double& share : mean) share = LogOf(share) / tuned.temperature;
      Softmax(absl::MakeSpan(mean));
      rows.labels.push_back(fold.labels[row]);
      rows.losses.push_back(-LogOf(mean[static_cast<size_t>(fold.labels[row])]));
      rows.folds.push_back(f);
    }
  }
  return rows;
}

// The probabilities of a row by these powers.
void Pool(const Rows& rows, size_t row, absl::Span<const double> powers,
          absl::Span<double> shares) {
  const absl::Span<const double> logs = rows.LogsOf(row);
  std::fill(shares.begin(), shares.end(), 0);
  for (size_t t = 0; t < powers.size(); ++t) {
    for (size_t c = 0; c < shares.size(); ++c) shares[c] += powers[t] * logs[t * shares.size() + c];
  }
  Softmax(shares);
}

// Solves a symmetric positive definite system of a few equations by elimination.
std::vector<double> Solve(std::vector<std::vector<double>> matrix, std::vector<double> right) {
  const size_t size = right.size();
  for (size_t i = 0; i < size; ++i) {
    for (size_t k = i + 1; k < size; ++k) {
      const double factor = matrix[k][i] / matrix[i][i];
      for (size_t j = i; j < size; ++j) matrix[k][j] -= factor * matrix[i][j];
      right[k] -= factor * right[i];
    }
  }
  for (size_t i = size; i-- > 0;) {
    for (size_t j = i + 1; j < size; ++j) right[i] -= matrix[i][j] * right[j];
    right[i] /= matrix[i][i];
  }
  return right;
}

// Newton's method on the rows of all folds but `without`, with steps that end at 0.
class Newton {
 public:
  Newton(const Rows& rows, const std::vector<double>& prior, size_t without)
      : rows_(rows), prior_(prior), without_(without), powers_(prior) {}

  std::vector<double> Run() {
    double loss = Loss(powers_);
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<double> direction = Direction();
      std::vector<double> next;
      double next_loss = HUGE_VAL;
      for (double length = 1; length > 1e-3 && !(next_loss < loss); length /= 2) {
        next = powers_;
        for (size_t t = 0; t < next.size(); ++t) {
          next[t] = std::max(0.0, next[t] + length * direction[t]);
        }
        next_loss = Loss(next);
      }
      if (!(next_loss < loss)) break;
      const bool settled = loss - next_loss < 1e-7 * std::abs(loss);
      powers_ = std::move(next);
      loss = next_loss;
      if (settled) break;
    }
    return powers_;
  }

 private:
  double Loss(const std::vector<double>& powers) const {
    double loss = 0;
    std::vector<double> shares(rows_.classes);
    for (size_t row = 0; row < rows_.labels.size(); ++row) {
      if (rows_.folds[row] == without_) continue;
      Pool(rows_, row, powers, absl::MakeSpan(shares));
      loss -= std::log(std::max(shares[static_cast<size_t>(rows_.labels[row])], 1e-300));
    }
    for (size_t t = 0; t < powers.size(); ++t) {
      loss += kPrior / 2 * (powers[t] - prior_[t]) * (powers[t] - prior_[t]);
    }
    return loss;
  }

  std::vector<double> Direction() const {
    const size_t trials = powers_.size(), classes = rows_.classes;
    std::vector<double> slope(trials);
    std::vector<std::vector<double>> curve(trials, std::vector<double>(trials));
    std::vector<double> shares(classes), means(trials);
    for (size_t row = 0; row < rows_.labels.size(); ++row) {
      if (rows_.folds[row] == without_) continue;
      Pool(rows_, row, powers_, absl::MakeSpan(shares));
      const absl::Span<const double> logs = rows_.LogsOf(row);
      for (size_t t = 0; t < trials; ++t) {
        means[t] = 0;
        for (size_t c = 0; c < classes; ++c) means[t] += shares[c] * logs[t * classes + c];
        slope[t] += means[t] - logs[t * classes + static_cast<size_t>(rows_.labels[row])];
      }
      for (size_t t = 0; t < trials; ++t) {
        for (size_t u = 0; u <= t; ++u) {
          double sum = 0;
          for (size_t c = 0; c < classes; ++c) {
            sum += shares[c] * logs[t * classes + c] * logs[u * classes + c];
          }
          curve[t][u] += sum - means[t] * means[u];
        }
      }
    }
    // A power of 0 that would fall stays.
    std::vector<size_t> moving;
    for (size_t t = 0; t < trials; ++t) {
      slope[t] += kPrior * (powers_[t] - prior_[t]);
      if (powers_[t] > 0 || slope[t] < 0) moving.push_back(t);
    }
    std::vector<std::vector<double>> matrix;
    std::vector<double> right;
    for (const size_t t : moving) {
      std::vector<double>& line = matrix.emplace_back();
      for (const size_t u : moving) {
        line.push_back(curve[std::max(t, u)][std::min(t, u)] + (t == u ? kPrior : 0));
      }
      right.push_back(-slope[t]);
    }
    const std::vector<double> solved = Solve(std::move(matrix), std::move(right));
    std::vector<double> direction(trials);
    for (size_t i = 0; i < moving.size(); ++i) direction[moving[i]] = solved[i];
    return direction;
  }

  const Rows& rows_;
  const std::vector<double>& prior_;
  const size_t without_;
  std::vector<double> powers_;
};

// The least weight that each trial has in a fold: where a fold lacks a trial, the others have more.
std::map<int, double> WeightsOf(absl::Span<const FoldToJoin> folds) {
  std::map<int, double> weights;
  for (const FoldToJoin& fold : folds) {
    std::map<int, double> of_fold;
    for (const AnswerPart& part : fold.parts) {
      of_fold[part.fold < 0 ? kFloor : part.trial] += part.weight;
    }
    for (const auto& [trial, weight] : of_fold) {
      const auto [known, is_new] = weights.emplace(trial, weight);
      if (!is_new) known->second = std::min(known->second, weight);
    }
  }
  double sum = 0;
  for (const auto& [trial, weight] : weights) sum += weight;
  for (auto& [trial, weight] : weights) weight /= sum;
  return weights;
}

// Whether each fold, answered by powers that the others choose, has less loss.
bool Gains(const Rows& rows, const std::vector<double>& prior, size_t folds) {
  std::vector<std::vector<double>> chosen;
  for (size_t f = 0; f < folds; ++f) chosen.push_back(Newton(rows, prior, f).Run());
  double sum = 0, squares = 0, before = 0;
  std::vector<double> shares(rows.classes);
  const auto count = static_cast<double>(rows.labels.size());
  for (size_t row = 0; row < rows.labels.size(); ++row) {
    Pool(rows, row, chosen[rows.folds[row]], absl::MakeSpan(shares));
    const double gain = rows.losses[row] + LogOf(shares[static_cast<size_t>(rows.labels[row])]);
    sum += gain;
    squares += gain * gain;
    before += rows.losses[row];
  }
  const double mean = sum / count;
  const double error = std::sqrt(std::max(0.0, squares / count - mean * mean) / count);
  return mean > kStandardErrors * error && mean > kLeastGain * before / count;
}

}  // namespace

AnswerJoin::AnswerJoin(std::vector<AnswerPart> parts, std::vector<TrialPower> powers)
    : parts_(std::move(parts)), powers_(std::move(powers)) {
  for (const AnswerPart& part : parts_) weights_.push_back(part.weight);
}

void AnswerJoin::Join(absl::Span<const absl::Span<const float>> values, size_t outputs,
                      absl::Span<float> out) const {
  const Sorted sorted = SortedParts(parts_);
  double of_folds = 0;
  for (const auto& [number, fold] : sorted.folds) of_folds += fold.weight;
  if (powers_.empty() || !(of_folds > 0)) return Blend(values, weights_, out);
  std::vector<double> sums(outputs), mean(outputs), logs(outputs), pooled(outputs);
  for (size_t at = 0; at < out.size(); at += outputs) {
    std::fill(sums.begin(), sums.end(), 0);
    for (const auto& [number, fold] : sorted.folds) {
      const RowOfFold of(parts_, sorted, fold);
      of.Mean(values, at, absl::MakeSpan(mean));
      std::fill(pooled.begin(), pooled.end(), 0);
      for (const TrialPower& power : powers_) {
        of.Logs(power.trial, values, at, mean, absl::MakeSpan(logs));
        for (size_t c = 0; c < outputs; ++c) pooled[c] += power.exponent * logs[c];
      }
      Softmax(absl::MakeSpan(pooled));
      for (size_t c = 0; c < outputs; ++c) sums[c] += fold.weight / of_folds * pooled[c];
    }
    for (size_t c = 0; c < outputs; ++c) out[at + c] = static_cast<float>(sums[c]);
  }
}

std::vector<TrialPower> ChoosePowers(Metric metric, size_t classes,
                                     absl::Span<const FoldToJoin> folds, const Tuned& tuned) {
  if (metric.kind().tuning != Tuning::kTemperature || folds.size() < 2) return {};
  size_t count = 0;
  for (const FoldToJoin& fold : folds) count += fold.labels.size();
  if (count < (classes == 2 ? kLeastRowsOfTwo : kLeastRows)) return {};
  const std::map<int, double> weights = WeightsOf(folds);
  std::vector<int> trials;
  std::vector<double> prior;
  for (const auto& [trial, weight] : weights) {
    trials.push_back(trial);
    prior.push_back(weight);
  }
  if (trials.size() < 2 || trials.size() > kMostParts) return {};
  const Rows rows = RowsOf(classes, folds, trials, tuned);
  if (rows.labels.empty() || !Gains(rows, prior, folds.size())) return {};
  const std::vector<double> chosen = Newton(rows, prior, folds.size()).Run();
  std::vector<TrialPower> powers;
  for (size_t t = 0; t < trials.size(); ++t) {
    if (chosen[t] > 0) powers.push_back({trials[t], chosen[t]});
  }
  return powers;
}

}  // namespace traind
