#include "server/plan/trials.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "common/job_rules/task_rules.h"

namespace traind {
namespace {

// A trial's error may be so many times that of the best trial on the same folds, and so many
// standard errors above that.
constexpr double kWorse = 1.2;
constexpr double kStandardErrors = 2;
// The share of a fold that has to fit: boosted trees answer at any time, and a network trains for
// epochs in which it only waits for its patience to end.
struct Share {
  double trees, others;
};
constexpr Share kGood = {0.5, 1};
constexpr Share kUseful = {0.2, 0.7};  // beside slots that would do nothing

// Seconds of a fold with usual settings beside one of LightGBM's, before one was measured
// (docs/BENCHMARKS.md). Trees are grown for each class, and look at each column; a network's steps
// and a kernel cost about the same.
constexpr double kXgboost = 1.5, kNetwork = 2, kKernel = 1, kProgram = 5;
constexpr double kFewClasses = 4, kFewColumns = 20;
double RelativeCost(const TrialsInput& in, const std::string& kind) {
  if (kind == "lightgbm") return 1;
  if (kind == "xgboost") return kXgboost;
  if (kind != "mlp" && kind != "kernel") return kProgram;
  return (kind == "mlp" ? kNetwork : kKernel) *
         std::min(1.0, kFewClasses / std::max(1, in.classes)) *
         std::min(1.0, kFewColumns / std::max(1, in.columns));
}

class Choosing {
 public:
  explicit Choosing(const TrialsInput& in) : in_(in) {}

  TrialsOutput Run() {
    for (size_t t = 1; t < in_.trials.size(); ++t) {
      if (ClearlyWorse(t)) out_.worse.push_back(static_cast<int>(t));
    }
    out_.no_gain = !in_.searches && NothingGained();
    if (out_.no_gain) return std::move(out_);
    for (const Share& least : {kGood, kUseful}) {
      for (const bool whole : {true, false}) Start(whole, least);
    }
    StartAhead();
    if (out_.start.empty()) out_.least_s = LeastSeconds();
    out_.all_begun = AllBegun();
    return std::move(out_);
  }

 private:
  const TrialView& Trial(size_t t) const { return in_.trials[t]; }

  bool Has(size_t t, TrialFold::State state) const {
    const auto& folds = Trial(t).folds;
    return std::any_of(folds.begin(), folds.end(),
                       [state](const TrialFold& fold) { return fold.state == state; });
  }
  bool Begun(size_t t) const {
    return Has(t, TrialFold::kBusy) || Has(t, TrialFold::kDone) || Has(t, TrialFold::kFailed);
  }
  bool Over(size_t t) const {
    return std::find(out_.worse.begin(), out_.worse.end(), static_cast<int>(t)) != out_.worse.end();
  }

  double ErrorOf(double score) const { return in_.higher_is_better ? 1 - score : score; }

  // The least error of a fold over all trials that have it.
  double BestOnFold(size_t fold) const {
    double best = HUGE_VAL;
    for (const TrialView& trial : in_.trials) {
      const TrialFold& of = trial.folds[fold];
      if (of.state == TrialFold::kDone) best = std::min(best, ErrorOf(of.score));
    }
    return best;
  }

  // On the folds that it has, beside the best trial of each.
  bool ClearlyWorse(size_t t) const {
    if (!Has(t, TrialFold::kOpen) || Has(t, TrialFold::kFailed)) {
      return Has(t, TrialFold::kOpen);  // what failed once is not tried on other folds
    }
    double own = 0, best = 0;
    int done = 0;
    for (size_t k = 0; k < Trial(t).folds.size(); ++k) {
      if (Trial(t).folds[k].state != TrialFold::kDone) continue;
      own += ErrorOf(Trial(t).folds[k].score);
      best += BestOnFold(k);
      ++done;
    }
    if (done == 0) return false;
    own /= done;
    best /= done;
    if (!std::isfinite(own)) return true;
    double chance = 0;  // of a share of rows
    if (in_.higher_is_better && in_.fold_rows > 0) {
      chance = std::sqrt(std::max(0.0, best * (1 - best)) / (in_.fold_rows * done));
    }
    return own > kWorse * std::max(best, 0.0) + kStandardErrors * chance;
  }

  bool NothingGained() const {
    if (!in_.answer_known) return false;
    int without = 0;
    for (size_t t = 1; t < in_.trials.size(); ++t) {
      const bool over =
          Begun(t) && !Has(t, TrialFold::kBusy) && (Over(t) || !Has(t, TrialFold::kOpen));
      if (!over) continue;
      without = Trial(t).answers ? 0 : without + 1;
    }
    return without >= kTrialsWithoutGain;
  }

  // Estimates by the trial's own folds, else by those of its kind, else by the kind's usual cost
  // beside trial 0; the latter two by the work that the settings make.
  double FoldSeconds(size_t t) const { return std::max(Expected(t), Trial(t).running_s); }
  double Expected(size_t t) const {
    if (Trial(t).fold_s > 0) return Trial(t).fold_s;
    double sum = 0;
    int count = 0;
    for (const TrialView& other : in_.trials) {
      if (other.kind != Trial(t).kind || other.fold_s <= 0) continue;
      sum += other.fold_s / other.work;
      ++count;
    }
    if (count > 0) return sum / count * Trial(t).work;
    const TrialView& first = in_.trials[0];
    return first.fold_s / first.work * Trial(t).work * RelativeCost(in_, Trial(t).kind) /
           RelativeCost(in_, first.kind);
  }

  // What the folds take that the trial lacks to count, one after the other on the gangs; of the
  // last one, the share that is of use.
  double LeastSeconds(size_t t, const Share& least) const {
    const double of_last = IsTrees(Trial(t).kind) ? least.trees : least.others;
    return (RoundsToCount(t) - 1 + of_last) * FoldSeconds(t);
  }
  int RoundsToCount(size_t t) const {
    if (in_.searches) return 1;  // every fold tells the search
    const auto& folds = Trial(t).folds;
    const auto has = std::count_if(folds.begin(), folds.end(), [](const TrialFold& fold) {
      return fold.state == TrialFold::kDone || fold.state == TrialFold::kBusy;
    });
    const int half = static_cast<int>(folds.size() + 1) / 2;
    const int lacks = std::max(1, half - static_cast<int>(has));
    const int gangs = std::max(1, in_.gangs);
    return (lacks + gangs - 1) / gangs;
  }
  bool Fits(size_t t, const Share& least) const {
    return in_.left_s > 0 && LeastSeconds(t, least) <= in_.left_s;
  }
  double LeastSeconds() const {
    double cheapest = HUGE_VAL;
    for (size_t t = 1; t < in_.trials.size(); ++t) {
      if (Over(t) || !HasOpen(t)) continue;
      cheapest = std::min(cheapest, LeastSeconds(t, kUseful));
    }
    return std::isfinite(cheapest) ? cheapest : 0;
  }
  // Trials that wait at a rung may go on later, so their folds count as open.
  bool AllBegun() const {
    for (size_t t = 1; t < in_.trials.size(); ++t) {
      if (!Over(t) && Has(t, TrialFold::kOpen)) return false;
    }
    return true;
  }
  bool WholeFits(size_t t) const {
    const int folds = FoldLimit(t);
    const int gangs = std::max(1, in_.gangs);
    return FoldSeconds(t) * ((folds + gangs - 1) / gangs) <= in_.left_s;
  }

  // ---- Rungs --------------------------------------------------------------------

  bool HasFirst(size_t t, size_t folds) const {
    const auto& all = Trial(t).folds;
    return std::all_of(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(folds),
                       [](const TrialFold& fold) { return fold.state == TrialFold::kDone; });
  }
  double ErrorOfFirst(size_t t, size_t folds) const {
    double sum = 0;
    for (size_t k = 0; k < folds; ++k) sum += ErrorOf(Trial(t).folds[k].score);
    return std::isfinite(sum) ? sum : HUGE_VAL;
  }
  // Only the best one of the first few trials is.
  bool AmongBest(size_t t, size_t rung) const {
    const double own = ErrorOfFirst(t, rung);
    size_t there = 0, better = 0;
    for (size_t other = 0; other < in_.trials.size(); ++other) {
      if (!HasFirst(other, rung)) continue;
      ++there;
      const double error = ErrorOfFirst(other, rung);
      better += error < own || (error == own && other < t);
    }
    return better < std::max<size_t>(1, there / kRungFactor);
  }
  // The folds that a trial may have by now, the first ones.
  int FoldLimit(size_t t) const {
    const size_t folds = Trial(t).folds.size();
    if (!in_.rungs) return static_cast<int>(folds);
    size_t rung = 1;
    while (rung < folds && HasFirst(t, rung) && AmongBest(t, rung)) rung *= kRungFactor;
    return static_cast<int>(std::min(rung, folds));
  }

  bool HasOpen(size_t t) const {
    const auto& folds = Trial(t).folds;
    return std::any_of(folds.begin(), folds.begin() + FoldLimit(t),
                       [](const TrialFold& fold) { return fold.state == TrialFold::kOpen; });
  }

  void Start(bool whole, const Share& least) {
    for (size_t t = 1; t < in_.trials.size(); ++t) {
      if (Begun(t)) StartOpen(t, least);
    }
    for (size_t t = 1; t < in_.trials.size(); ++t) {
      if (!Begun(t) && (!whole || WholeFits(t))) StartOpen(t, least);
    }
  }
  // Slots that would do nothing run ahead of a rung that is not decided: a fold of it still trains.
  void StartAhead() {
    for (size_t t = 1; t < in_.trials.size(); ++t) {
      const auto& folds = Trial(t).folds;
      const auto rung = folds.begin() + FoldLimit(t);
      const bool open = std::any_of(folds.begin(), rung, [](const TrialFold& fold) {
        return fold.state == TrialFold::kBusy;
      });
      if (open) StartOpen(t, kUseful, folds.size());
    }
  }
  void StartOpen(size_t t, const Share& least) {
    StartOpen(t, least, static_cast<size_t>(FoldLimit(t)));
  }
  void StartOpen(size_t t, const Share& least, size_t limit) {
    if (Over(t) || !Fits(t, least)) return;
    for (size_t k = 0; k < limit; ++k) {
      const NextFold next{static_cast<int>(t), static_cast<int>(k)};
      if (static_cast<int>(out_.start.size()) >= in_.idle) return;
      if (Trial(t).folds[k].state != TrialFold::kOpen || Starts(next)) continue;
      out_.start.push_back(next);
    }
  }
  bool Starts(const NextFold& next) const {
    return std::any_of(out_.start.begin(), out_.start.end(), [&next](const NextFold& other) {
      return other.trial == next.trial && other.fold == next.fold;
    });
  }

  const TrialsInput& in_;
  TrialsOutput out_;
};

}  // namespace

int TrialsThatFit(const TrialsInput& in) {
  const auto asked = static_cast<int>(in.trials.size());
  const auto folds = static_cast<double>(in.trials[0].folds.size());
  // Most trials of a search with rungs have one fold.
  const double folds_each = in.rungs ? 1 + (folds - 1) / kRungFactor : folds;
  const double trial_s = in.trials[0].fold_s * folds_each / std::max(1, in.gangs);
  int fits = asked;
  while (fits > 1 && (fits - 1) * trial_s > in.left_s) fits = (fits + 1) / 2;
  return fits;
}

TrialsOutput ChooseTrials(const TrialsInput& in) { return Choosing(in).Run(); }

}  // namespace traind
