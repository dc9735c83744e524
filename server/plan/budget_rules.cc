#include "server/plan/budget_rules.h"

#include <algorithm>
#include <cmath>

namespace traind {
namespace {

// Less than this is not worth a start where nothing was measured.
constexpr double kShortestRun_s = 0.3;
constexpr absl::Duration kLeastFinalize = absl::Milliseconds(150);
constexpr absl::Duration kFirstRetry = absl::Milliseconds(200);
constexpr absl::Duration kLongestRetry = absl::Seconds(30);

}  // namespace

FoldCost CostOf(const Measured& m) {
  FoldCost cost;
  cost.step_s = m.step_s;
  cost.step_p90_s = m.step_p90_s;
  cost.steps_per_epoch = m.steps_per_epoch;
  cost.predict_s = m.predict_s;
  cost.evaluate_s = m.evaluate_s;
  if (m.epoch_s > 0) {
    cost.epoch_s = m.epoch_s + m.evaluate_s;
  } else if (m.step_s > 0 && m.steps_per_epoch > 0) {
    cost.epoch_s = m.step_s * static_cast<double>(m.steps_per_epoch) + m.evaluate_s;
  }
  return cost;
}

FoldCost CostOfShare(FoldCost cost, double row_share) {
  if (!cost.known() || row_share >= 1) return cost;
  if (cost.steps_per_epoch > 0) {
    const auto steps = static_cast<double>(cost.steps_per_epoch);
    row_share = std::min(1.0, std::ceil(row_share * steps - 1e-9) / steps);
  }
  const double evaluate_s = std::min(cost.evaluate_s, cost.epoch_s);
  cost.epoch_s = evaluate_s + row_share * (cost.epoch_s - evaluate_s);
  return cost;
}

double EstimateSeconds(const WorkLeft& work) {
  std::vector<double> gangs = work.running;
  gangs.resize(std::max<size_t>(gangs.size(), std::max(work.gangs, 1)), 0.0);
  const double running =
      work.running.empty() ? 0 : *std::max_element(work.running.begin(), work.running.end());
  for (double fold : work.pending) *std::min_element(gangs.begin(), gangs.end()) += fold;
  const double all = *std::max_element(gangs.begin(), gangs.end());
  // A running fold keeps its slots; taking turns delays those that wait.
  return work.pending.empty() ? running : std::max(running, all * std::max(work.sharing, 1.0));
}

double PendingSeconds(const WorkLeft& work) {
  std::vector<double> gangs = work.running;
  gangs.resize(std::max<size_t>(gangs.size(), std::max(work.gangs, 1)), 0.0);
  double last = 0;
  for (double model : work.pending) {
    double& gang = *std::min_element(gangs.begin(), gangs.end());
    gang += model;
    last = std::max(last, gang);
  }
  return last * std::max(work.sharing, 1.0);
}

bool PlanFits(const Window& window, double plan_share, absl::Time estimated_finish) {
  return !window.bounded() || estimated_finish <= window.At(plan_share);
}

int CutFolds(int folds, int started) { return std::min(folds, std::max(3, started)); }

int UsefulEpochs(int asked) { return std::clamp((asked + 3) / 4, std::min(asked, 5), 12); }

double LeastRows(int64_t steps_per_epoch) {
  const double step = steps_per_epoch > 0 ? 1 / static_cast<double>(steps_per_epoch) : 0;
  return std::max(0.05, std::floor(100 * step) / 100);
}

double EpochsLeft(double epochs, double done, double row_share_before, double row_share) {
  const double whole = std::floor(done);
  const double begun = std::min(1.0, (done - whole) * row_share_before / row_share);
  return std::max(0.0, epochs - whole - begun);
}

bool FirstFoldIsSlow(const Window& window, double first_fold_share, absl::Duration used) {
  return window.bounded() && used > first_fold_share * window.length();
}

double StopSeconds(const FoldCost& cost) {
  if (cost.predict_s <= 0) return 0;
  return cost.predict_s + std::max(cost.step_s, cost.step_p90_s);
}

absl::Duration Reserve(const Window& window, const Spec& spec, double stop_s,
                       absl::Duration finalize) {
  if (!window.bounded()) return absl::ZeroDuration();
  const absl::Duration share = spec.shares.reserve * window.length();
  if (spec.policy == Policy::kFixed) return share;
  if (stop_s <= 0) {
    return std::max(share, std::min(2 * share, finalize + spec.shares.reserve_least));
  }
  const absl::Duration measured = absl::Seconds(stop_s);
  const absl::Duration most = std::max(share, finalize + 1.1 * measured);
  const absl::Duration reserve = std::min(
      std::max(finalize + spec.shares.reserve_margin * measured, spec.shares.reserve_least), most);
  return std::min(reserve, 0.9 * window.length());
}

absl::Duration FinalizeLead(const Window& window, absl::Duration publish, absl::Duration margin) {
  const absl::Duration lead =
      publish > absl::ZeroDuration() ? std::max(3 * publish, kLeastFinalize) : margin;
  return std::min(lead, 0.25 * window.length());
}

absl::Duration SettleLead(const Window& window, absl::Duration margin) {
  return std::min(0.25 * margin, 0.02 * window.length());
}

absl::Time TrainEnd(const Window& window, const Spec& spec, absl::Duration reserve) {
  if (!window.bounded()) return absl::InfiniteFuture();
  const absl::Time end = window.deadline - reserve;
  return spec.policy == Policy::kFixed ? std::min(end, window.At(spec.shares.stop)) : end;
}

bool MustStop(const Window& window, const Spec& spec, absl::Time now, absl::Time estimated_finish,
              absl::Time train_end) {
  if (!window.bounded() || now < window.At(spec.shares.stop)) return false;
  return spec.policy == Policy::kFixed || estimated_finish > train_end;
}

TaskState SettledState(const Task& task) {
  if (task.member) return task.member->complete ? TaskState::kDone : TaskState::kPartial;
  return task.attempts > 0 ? TaskState::kFailed : TaskState::kDropped;
}

absl::Time DeadlineOf(const Spec& spec, absl::Time accepted_at) {
  absl::Time deadline = spec.deadline.value_or(absl::InfiniteFuture());
  if (spec.budget) deadline = std::min(deadline, accepted_at + *spec.budget);
  return deadline;
}

absl::Duration CheckpointEvery(std::optional<absl::Duration> asked, absl::Duration job_time) {
  return asked.value_or(std::clamp(job_time / 20, absl::Seconds(1), absl::Minutes(1)));
}

absl::Duration RetryDelay(int retries, absl::Duration left) {
  const int doublings = std::clamp(retries - 1, 0, 20);
  const absl::Duration delay =
      std::min(kFirstRetry * static_cast<int64_t>(int64_t{1} << doublings), kLongestRetry);
  return std::max(absl::ZeroDuration(), std::min(delay, left / 10));
}

absl::Time LatestUsefulStart(const FoldCost& cost, double epochs_left, absl::Time train_end) {
  if (train_end == absl::InfiniteFuture()) return train_end;
  const double least_s = cost.known()
                             ? cost.overhead_s + std::clamp(epochs_left, 0.0, 1.0) * cost.epoch_s
                             : kShortestRun_s;
  return train_end - absl::Seconds(least_s);
}

absl::Time FairStop(absl::Time start, absl::Time now, absl::Time train_end, int behind,
                    double sharing, const FoldCost& cost) {
  if (train_end == absl::InfiniteFuture()) return train_end;
  // Nobody knows yet what a share of it would buy; the first steps will tell.
  if (!cost.known()) return train_end;
  const double turns = (1 + behind) * std::max(sharing, 1.0);
  const absl::Time share = start + (train_end - start) / turns;
  // A share that buys nothing helps nobody.
  const absl::Duration least = absl::Seconds(cost.overhead_s + cost.epoch_s);
  return std::min(train_end, std::max({share, start + least, now}));
}

}  // namespace traind
