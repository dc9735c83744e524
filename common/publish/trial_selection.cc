#include "common/publish/trial_selection.h"

#include <absl/algorithm/container.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "common/metrics/row_scorer.h"

namespace traind {
namespace {

constexpr int kRounds = 30;
// Rounds in succession that may pass without a gain.
constexpr int kPatience = 6;
// Only the best trials by their own score compete.
constexpr size_t kMostTrials = 20;
// On more rows a part of them is used, and on more values (rows x columns).
constexpr size_t kMostRows = 8000;
constexpr size_t kMostValues = 160'000;
// With fewer rows, choices are made several times and compared on rows that they have not seen.
constexpr size_t kFewRows = 5000;
constexpr size_t kFewValues = 20'000;
constexpr size_t kParts = 5;
// A round counts as better from this share of the error on.
constexpr double kLeastGain = 1e-4;
// Smaller mean weights are dropped: each member costs time whenever later rows are predicted.
constexpr double kLeastWeight = 0.02;

// The rows on which trials compete, in blocks of rows of one fold each.
struct Block {
  size_t begin = 0, end = 0;  // rows of the sample
  std::vector<char> has;      // [trial]
};
struct Sample {
  size_t columns = 1;
  std::vector<Block> blocks;
  std::vector<int32_t> labels;
  std::vector<float> targets;
  std::vector<std::vector<float>> trials;  // [trial]: [rows, C]; 0 where it lacks the fold
  std::vector<float> floor;                // [rows, C]; empty: there is no floor
  std::vector<float> fallback;             // [rows, C]

  size_t rows() const { return blocks.empty() ? 0 : blocks.back().end; }
};

// Returns `count` of `rows` row numbers, ascending and spread evenly: multiples of the golden
// ratio.
std::vector<size_t> SpreadRows(size_t rows, size_t count) {
  std::vector<size_t> chosen(count);
  if (count == rows) {
    std::iota(chosen.begin(), chosen.end(), size_t{0});
    return chosen;
  }
  constexpr double kGolden = 0.6180339887498949;
  for (size_t i = 0; i < count; ++i) {
    const double at = static_cast<double>(i) * kGolden;
    chosen[i] =
        std::min(rows - 1, static_cast<size_t>((at - std::floor(at)) * static_cast<double>(rows)));
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

void AddRows(absl::Span<const float> from, absl::Span<const size_t> rows, size_t columns,
             std::vector<float>& to) {
  for (const size_t row : rows) {
    const auto values = from.subspan(row * columns, columns);
    to.insert(to.end(), values.begin(), values.end());
  }
}

void AddFold(const FoldOfTrials& fold, absl::Span<const size_t> rows, size_t parts,
             Sample& sample) {
  const size_t columns = sample.columns;
  for (size_t part = 0; part < parts; ++part) {
    Block block;
    block.begin = sample.rows();
    block.end = block.begin + rows.size() * (part + 1) / parts - rows.size() * part / parts;
    for (const auto& values : fold.trials) block.has.push_back(values.empty() ? 0 : 1);
    if (block.end > block.begin) sample.blocks.push_back(std::move(block));
  }
  for (const size_t row : rows) {
    if (!fold.labels.empty()) sample.labels.push_back(fold.labels[row]);
  }
  if (!fold.targets.empty()) AddRows(fold.targets, rows, columns, sample.targets);
  for (size_t k = 0; k < fold.trials.size(); ++k) {
    std::vector<float>& to = sample.trials[k];
    if (fold.trials[k].empty()) {
      to.resize(to.size() + rows.size() * columns);
    } else {
      AddRows(fold.trials[k], rows, columns, to);
    }
  }
  if (!fold.floor.empty()) AddRows(fold.floor, rows, columns, sample.floor);
  AddRows(fold.trials[fold.fallback], rows, columns, sample.fallback);
}

Sample SampleOf(size_t columns, absl::Span<const FoldOfTrials> folds) {
  size_t all = 0;
  for (const FoldOfTrials& fold : folds) all += fold.rows(columns);
  const size_t most = std::min(kMostRows, std::max<size_t>(kMostValues / columns, 1));
  Sample sample;
  sample.columns = columns;
  sample.trials.resize(folds[0].trials.size());
  // The rows of a single fold are parted, too.
  const size_t parts = folds.size() == 1 ? kParts : 1;
  for (const FoldOfTrials& fold : folds) {
    const size_t rows = fold.rows(columns);
    const size_t count = all <= most ? rows : std::max<size_t>(rows * most / all, 1);
    AddFold(fold, SpreadRows(rows, std::min(rows, count)), parts, sample);
  }
  return sample;
}

struct Counts {
  std::vector<int> trials;
  int floor = 0;

  int of_trials() const { return std::accumulate(trials.begin(), trials.end(), 0); }
};

TrialWeights Scaled(const Counts& counts) {
  TrialWeights weights;
  const double sum = counts.of_trials() + counts.floor;
  for (const int count : counts.trials) weights.trials.push_back(count / sum);
  weights.floor = counts.floor / sum;
  return weights;
}

// Writes the answer by the weights for the block's rows.
void Answer(const Sample& sample, const Block& block, const TrialWeights& weights,
            absl::Span<float> out) {
  const size_t begin = block.begin * sample.columns;
  std::vector<double> sums(out.size());
  double sum = 0;
  for (size_t k = 0; k < sample.trials.size(); ++k) {
    const double weight = block.has[k] != 0 ? weights.trials[k] : 0;
    if (weight == 0) continue;
    sum += weight;
    for (size_t i = 0; i < out.size(); ++i) sums[i] += weight * sample.trials[k][begin + i];
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const double of_trials = sum > 0 ? sums[i] / sum : sample.fallback[begin + i];
    const double floor = weights.floor > 0 ? weights.floor * sample.floor[begin + i] : 0;
    out[i] = static_cast<float>((1 - weights.floor) * of_trials + floor);
  }
}

// On few rows accuracy counts few rows that differ, so that luck chooses.
bool IsLottery(Metric metric) { return metric == *MetricByName("accuracy"); }

bool HasFewRows(const Sample& sample) {
  return sample.rows() < kFewRows && sample.rows() * sample.columns <= kFewValues;
}

// Scores many predictions of the same rows by the metric, or by accuracy - log loss: the right
// answers, and how sure the answers are.
class Criterion {
 public:
  template <class Truth>  // int32_t labels, or float targets
  Criterion(Metric metric, bool with_log_loss, size_t columns, absl::Span<const Truth> truth)
      : scorer_(metric, columns, truth) {
    if (with_log_loss) log_loss_.emplace(*MetricByName("logloss"), columns, truth);
  }

  absl::Span<float> values() { return scorer_.values(); }
  double Score() {
    const double score = scorer_.Score();
    if (!log_loss_) return score;
    absl::c_copy(scorer_.values(), log_loss_->values().begin());
    return score - log_loss_->Score();
  }

 private:
  RowScorer scorer_;
  std::optional<RowScorer> log_loss_;
};

// Greedy selection on some of the sample's blocks.
class Greedy {
 public:
  Greedy(Metric metric, const Sample& sample, std::vector<const Block*> blocks)
      : metric_(metric), sample_(sample), blocks_(std::move(blocks)) {
    const bool with_log_loss = IsLottery(metric) && HasFewRows(sample);
    std::vector<int32_t> labels;
    std::vector<float> targets;
    for (const Block* block : blocks_) {
      const auto begin = static_cast<ptrdiff_t>(block->begin);
      const auto end = static_cast<ptrdiff_t>(block->end);
      const auto width = static_cast<ptrdiff_t>(sample.columns);
      if (!sample.labels.empty()) {
        labels.insert(labels.end(), sample.labels.begin() + begin, sample.labels.begin() + end);
      } else {
        targets.insert(targets.end(), sample.targets.begin() + begin * width,
                       sample.targets.begin() + end * width);
      }
    }
    if (sample.labels.empty()) {
      scorer_.emplace(metric, false, sample.columns, absl::MakeConstSpan(targets));
    } else {
      scorer_.emplace(metric, with_log_loss, sample.columns, absl::MakeConstSpan(labels));
    }
    sums_.resize(scorer_->values().size());
    counts_.trials.resize(sample.trials.size());
    of_block_.resize(blocks_.size());
  }

  // Returns the best first choice: the trial that scores best alone, where it lacks a fold with the
  // fallback.
  size_t Best(absl::Span<const size_t> trials) {
    size_t best = trials[0];
    double best_score = 0;
    for (const size_t trial : trials) {
      const double score = ScoreWith(trial);
      if (trial != trials[0] && !Better(metric_, score, best_score)) continue;
      best = trial;
      best_score = score;
    }
    return best;
  }
  double ScoreAlone(size_t trial) { return ScoreWith(trial); }

  // Begins with the trial `first`, then adds trials and the floor.
  TrialWeights Run(size_t first, absl::Span<const size_t> trials) {
    double best_score = ScoreWith(first);
    Add(first);
    Counts best = counts_;
    for (int round = 1, idle = 0; round < kRounds && idle < kPatience; ++round, ++idle) {
      std::optional<size_t> chosen;  // the number of trials: the floor
      double chosen_score = 0;
      const auto consider = [&](size_t candidate) {
        const double score = ScoreWith(candidate);
        // Among equal ones the one that was chosen less often wins: two steps of it may gain.
        const bool wins = !chosen || Better(metric_, score, chosen_score) ||
                          (score == chosen_score && CountOf(candidate) < CountOf(*chosen));
        if (!wins) return;
        chosen = candidate;
        chosen_score = score;
      };
      for (const size_t trial : trials) consider(trial);
      if (!sample_.floor.empty()) consider(sample_.trials.size());
      if (!chosen) break;
      Add(*chosen);
      if (!Gains(chosen_score, best_score)) continue;
      best_score = chosen_score;
      best = counts_;
      idle = -1;
    }
    return Scaled(best);
  }

 private:
  bool Gains(double score, double before) const {
    const double error = HigherIsBetter(metric_) ? 1 - before : before;
    const double least = kLeastGain * std::abs(error);
    return Better(metric_, HigherIsBetter(metric_) ? score - least : score + least, before);
  }

  int CountOf(size_t candidate) const {
    return candidate < counts_.trials.size() ? counts_.trials[candidate] : counts_.floor;
  }

  bool Has(const Block& block, size_t candidate) const {
    return candidate < sample_.trials.size() && block.has[candidate] != 0;
  }

  // Scores the present choice with one candidate more.
  double ScoreWith(size_t candidate) {
    const bool is_floor = candidate == sample_.trials.size();
    const int of_floor = counts_.floor + (is_floor ? 1 : 0);
    const int all = counts_.of_trials() + counts_.floor + 1;
    const float floor_share = static_cast<float>(of_floor) / static_cast<float>(all);
    size_t at = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const Block& block = *blocks_[b];
      const bool has = Has(block, candidate);
      const size_t size = (block.end - block.begin) * sample_.columns;
      const size_t from = block.begin * sample_.columns;
      const int count = of_block_[b] + (has ? 1 : 0);
      float* const out = scorer_->values().data() + at;
      const float* const sums = count == 0 ? sample_.fallback.data() + from : sums_.data() + at;
      const float scale = (1 - floor_share) / static_cast<float>(std::max(count, 1));
      if (has) {
        const float* const more = sample_.trials[candidate].data() + from;
        for (size_t i = 0; i < size; ++i) out[i] = scale * (sums[i] + more[i]);
      } else {
        for (size_t i = 0; i < size; ++i) out[i] = scale * sums[i];
      }
      if (of_floor > 0) {
        const float* const floor = sample_.floor.data() + from;
        for (size_t i = 0; i < size; ++i) out[i] += floor_share * floor[i];
      }
      at += size;
    }
    return scorer_->Score();
  }

  void Add(size_t candidate) {
    if (candidate == sample_.trials.size()) {
      ++counts_.floor;
      return;
    }
    ++counts_.trials[candidate];
    size_t at = 0;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      const Block& block = *blocks_[b];
      const size_t size = (block.end - block.begin) * sample_.columns;
      if (Has(block, candidate)) {
        const float* const more = sample_.trials[candidate].data() + block.begin * sample_.columns;
        for (size_t i = 0; i < size; ++i) sums_[at + i] += more[i];
        ++of_block_[b];
      }
      at += size;
    }
  }

  const Metric metric_;
  const Sample& sample_;
  const std::vector<const Block*> blocks_;
  std::optional<Criterion> scorer_;
  std::vector<float> sums_;  // of the chosen trials
  Counts counts_;
  std::vector<int> of_block_;  // number of chosen trials that have the block
};

// The trials that may be chosen, and those that may be chosen first.
struct Candidates {
  std::vector<size_t> all, first;
};

Candidates CandidatesOf(absl::Span<const FoldOfTrials> folds) {
  std::vector<size_t> covered(folds[0].trials.size());
  for (const FoldOfTrials& fold : folds) {
    for (size_t k = 0; k < covered.size(); ++k) covered[k] += fold.trials[k].empty() ? 0 : 1;
  }
  const size_t most = *std::max_element(covered.begin(), covered.end());
  Candidates candidates;
  for (size_t k = 0; k < covered.size(); ++k) {
    if (covered[k] == most) candidates.first.push_back(k);
    if (covered[k] == most || 2 * covered[k] >= folds.size()) candidates.all.push_back(k);
  }
  return candidates;
}

std::vector<const Block*> Pointers(absl::Span<const Block> blocks) {
  std::vector<const Block*> pointers;
  for (const Block& block : blocks) pointers.push_back(&block);
  return pointers;
}

// Keeps the best trials by their own scores, in their order.
void Prune(Metric metric, const Sample& sample, Candidates& candidates) {
  if (candidates.all.size() <= kMostTrials) return;
  Greedy greedy(metric, sample, Pointers(sample.blocks));
  std::vector<std::pair<double, size_t>> scores;
  for (const size_t trial : candidates.all) scores.emplace_back(greedy.ScoreAlone(trial), trial);
  std::stable_sort(scores.begin(), scores.end(), [metric](const auto& a, const auto& b) {
    return Better(metric, a.first, b.first);
  });
  std::vector<char> kept(sample.trials.size());
  for (size_t i = 0; i < kMostTrials; ++i) kept[scores[i].second] = 1;
  const auto best = std::find_if(scores.begin(), scores.end(), [&](const auto& score) {
    return std::count(candidates.first.begin(), candidates.first.end(), score.second) > 0;
  });
  kept[best->second] = 1;
  for (std::vector<size_t>* list : {&candidates.all, &candidates.first}) {
    list->erase(std::remove_if(list->begin(), list->end(), [&](size_t k) { return kept[k] == 0; }),
                list->end());
  }
}

TrialWeights Alone(size_t trial, size_t trials) {
  TrialWeights weights;
  weights.trials.resize(trials);
  weights.trials[trial] = 1;
  return weights;
}

// The ways to answer, the simplest first: of equal ones the first is taken.
enum Way : size_t { kPlain, kSingle, kMean, kGreedy, kWays };

// Chooses on each part of the blocks without one of kParts, and compares the ways on the rows of
// that part.
class CrossFit {
 public:
  CrossFit(Metric metric, const Sample& sample, const Candidates& candidates,
           std::optional<size_t> plain)
      : metric_(metric), sample_(sample), candidates_(candidates), plain_(plain) {
    for (std::vector<float>& values : unseen_) values.resize(sample.rows() * sample.columns);
  }

  TrialWeights Choose() {
    const size_t parts = std::min(kParts, sample_.blocks.size());
    for (size_t part = 0; part < parts; ++part) ChooseWithout(part, parts);
    return WeightsOf(BestWay(), parts);
  }

 private:
  void ChooseWithout(size_t part, size_t parts) {
    std::vector<const Block*> seen, unseen;
    for (size_t b = 0; b < sample_.blocks.size(); ++b) {
      (b % parts == part ? unseen : seen).push_back(&sample_.blocks[b]);
    }
    if (seen.empty()) seen = unseen;
    const size_t trials = sample_.trials.size();
    const size_t first = Greedy(metric_, sample_, seen).Best(candidates_.first);
    std::vector<TrialWeights> ways(kWays);
    ways[kSingle] = Alone(first, trials);
    ways[kPlain] = plain_ ? Greedy(metric_, sample_, seen).Run(*plain_, {*plain_}) : ways[kSingle];
    ways[kMean] = Mean();
    ways[kGreedy] = Greedy(metric_, sample_, seen).Run(first, candidates_.all);
    for (size_t way = 0; way < kWays; ++way) {
      for (const Block* block : unseen) {
        Answer(sample_, *block, ways[way],
               absl::MakeSpan(unseen_[way])
                   .subspan(block->begin * sample_.columns,
                            (block->end - block->begin) * sample_.columns));
      }
      Add(ways[way], chosen_[way]);
    }
  }

  TrialWeights Mean() const {
    TrialWeights mean;
    mean.trials.resize(sample_.trials.size());
    for (const size_t k : candidates_.all) {
      mean.trials[k] = 1.0 / static_cast<double>(candidates_.all.size());
    }
    return mean;
  }

  static void Add(const TrialWeights& more, TrialWeights& sum) {
    sum.trials.resize(more.trials.size());
    for (size_t k = 0; k < more.trials.size(); ++k) sum.trials[k] += more.trials[k];
    sum.floor += more.floor;
  }

  Way BestWay() const {
    if (IsLottery(metric_)) return kGreedy;  // what compares the ways would be luck, too
    const absl::Span<const int32_t> labels = sample_.labels;
    Way best = kPlain;
    double best_score = 0;
    for (const Way way : {kPlain, kSingle, kMean, kGreedy}) {
      const double score =
          sample_.labels.empty()
              ? Score(metric_, unseen_[way], sample_.targets, sample_.columns)
              : Score(metric_, unseen_[way], static_cast<int>(sample_.columns), labels);
      if (way != kPlain && !Better(metric_, score, best_score)) continue;
      best = way;
      best_score = score;
    }
    return best;
  }

  // The mean of the weights that were chosen without each part; of single trials the one that the
  // most parts chose.
  TrialWeights WeightsOf(Way way, size_t parts) const {
    TrialWeights weights = chosen_[way];
    if (way == kSingle) {
      const auto most = std::max_element(weights.trials.begin(), weights.trials.end());
      return Alone(static_cast<size_t>(most - weights.trials.begin()), weights.trials.size());
    }
    double sum = 0;
    const auto keep = [&](double& weight) {
      weight /= static_cast<double>(parts);
      if (weight < kLeastWeight) weight = 0;
      sum += weight;
    };
    for (double& weight : weights.trials) keep(weight);
    keep(weights.floor);
    for (double& weight : weights.trials) weight /= sum;
    weights.floor /= sum;
    return weights;
  }

  const Metric metric_;
  const Sample& sample_;
  const Candidates& candidates_;
  const std::optional<size_t> plain_;
  std::vector<float> unseen_[kWays];  // [rows, C]: by a choice that has not seen the row
  TrialWeights chosen_[kWays];        // sums over the parts
};

}  // namespace

TrialWeights SelectTrials(Metric metric, size_t columns, absl::Span<const FoldOfTrials> folds,
                          size_t plain) {
  const Sample sample = SampleOf(columns, folds);
  Candidates candidates = CandidatesOf(folds);
  const bool plain_counts = std::count(candidates.all.begin(), candidates.all.end(), plain) > 0;
  Prune(metric, sample, candidates);
  if (HasFewRows(sample)) {
    return CrossFit(metric, sample, candidates,
                    plain_counts ? std::optional<size_t>(plain) : std::nullopt)
        .Choose();
  }
  const std::vector<const Block*> all = Pointers(sample.blocks);
  const size_t first = Greedy(metric, sample, all).Best(candidates.first);
  return Greedy(metric, sample, all).Run(first, candidates.all);
}

}  // namespace traind
