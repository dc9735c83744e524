// The rules of the budget (docs/DESIGN.md), one pure function each. What they
// share: a Window of time, the measured cost of a fold, the work that is left.
//
// B6 (early stopping) is the Rank's; B7 (floor first) is the order in which the
// control core starts tasks; B14 (remaining durations) is how the shell sends.
// Durations of work are seconds as double: they are measured figures, not times.
// Threads: safe, nothing is kept.
#pragma once

#include <absl/time/time.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "server/domain/job.h"

namespace traind {

// The time that a Job has.
struct Window {
  absl::Time start;  // acceptance
  absl::Time deadline = absl::InfiniteFuture();

  // false: no deadline, and the rules of fractions are off (B11).
  bool bounded() const { return deadline != absl::InfiniteFuture(); }
  absl::Duration length() const { return deadline - start; }
  absl::Time At(double share) const {
    return bounded() ? start + share * length() : absl::InfiniteFuture();
  }
};

// The cost of training a fold.
struct FoldCost {
  double step_s = 0;
  double step_p90_s = 0;
  int64_t steps_per_epoch = 0;
  double epoch_s = 0;     // one epoch of all rows, with its evaluation; 0: not known
  double evaluate_s = 0;  // of that the evaluation
  double overhead_s = 0;  // from the start of an Attempt to its first step
  double predict_s = 0;   // out-of-fold and test rows, until traind has them; 0: not known

  bool known() const { return epoch_s > 0; }
};
// From what was measured of a fold: its last whole epoch where there is one, else
// its timed steps. overhead_s is the caller's to fill.
FoldCost CostOf(const Measured& measured);

// The same of epochs that see a share of the rows: as many whole steps as that takes.
FoldCost CostOfShare(FoldCost cost, double row_share);

// The folds that are still to be trained, as seconds each needs.
struct WorkLeft {
  std::vector<double> running;  // each holds a gang of slots now
  std::vector<double> pending;  // in the order in which they start
  int gangs = 1;                // at once, for this Job
  double sharing = 1;           // >= 1: Jobs per gang, where Jobs have to take turns
};

// B1. Seconds from now until all is trained and predicted: folds in order, each on
// the gang that is free first.
double EstimateSeconds(const WorkLeft& work);

// B9. Seconds from now until what is pending is trained and predicted; 0: nothing is. What
// runs longer than that does not count, but for the gang that it holds.
double PendingSeconds(const WorkLeft& work);

// B2. Whether an estimate may stand: the plan's share of the window holds it.
bool PlanFits(const Window& window, double plan_share, absl::Time estimated_finish);
// B2. How many folds a plan is cut to first: 3, but never below those that have
// been started. The same number: there is nothing to cut.
int CutFolds(int folds, int started);
// B2. One step of cutting epochs, by 30 to 50 %, as gently as fits: the largest
// number in that range for which fits(epochs), or its smallest where none does. 1
// stays 1.
template <typename Fits>
int CutEpochs(int epochs, Fits fits);

// B2. Below so many epochs of those asked for, a Plan loses folds before it loses more
// epochs: a quarter of them; 5 where so many were asked for, and 12 at most, however
// many were.
int UsefulEpochs(int asked);

// B2. The least share of the rows that an epoch may be cut to: a twentieth, and a step of
// it at least. In hundredths, as all shares.
double LeastRows(int64_t steps_per_epoch);
// B2. One step of cutting them: the largest share, a tenth below `row_share` at least, for which
// fits(share); the least where none does.
template <typename Fits>
double CutRows(double row_share, double least, Fits fits);
// B9. The largest share for which fits(share), from `row_share` to 1; `row_share` where none does.
template <typename Fits>
double MostRows(double row_share, Fits fits);
// Epochs of a share of the rows that are left of `epochs`, where `done` have been counted
// while an epoch saw `row_share_before`: what the running one has seen counts as more of a
// shorter one.
double EpochsLeft(double epochs, double done, double row_share_before, double row_share);

// B3. The first fold has used more than its share of the window.
bool FirstFoldIsSlow(const Window& window, double first_fold_share, absl::Duration used);

// From the word to stop until a fold's predictions are there: the step it is at, and
// the prediction. 0: not measured.
double StopSeconds(const FoldCost& cost);
// B4. What is held back at the end of the window. `finalize` is the last part of it: joining the
// folds' predictions to the Prediction, and by its beginning Workers end their Ranks. fixed: the
// reserve's share. adaptive, with nothing measured yet: the share, in short windows finalize and
// reserve_least, up to twice the share. Then finalize and reserve_margin x the measured `stop_s`,
// at least reserve_least and at most the share, unless the measured need alone is more.
absl::Duration Reserve(const Window& window, const Spec& spec, double stop_s,
                       absl::Duration finalize);
// How long before the deadline the last Prediction is begun: `margin` while making
// one has not been measured (publish = 0), then three times the longest seen; never
// more than a quarter of the window.
absl::Duration FinalizeLead(const Window& window, absl::Duration publish, absl::Duration margin);
// The end of that: what is not answered by then stays as it is on disk.
absl::Duration SettleLead(const Window& window, absl::Duration margin);

// When training ends at the latest: before the reserve (B4), and under the fixed
// policy at the stop share (B5).
absl::Time TrainEnd(const Window& window, const Spec& spec, absl::Duration reserve);
// B5. Time to stop softly: the stop share of the window is used, and the plan
// cannot finish (adaptive), or in any case (fixed).
bool MustStop(const Window& window, const Spec& spec, absl::Time now, absl::Time estimated_finish,
              absl::Time train_end);

// B8. What becomes of a fold that will not run any more.
TaskState SettledState(const Task& task);

// B11. With both, the earlier one counts; with neither, InfiniteFuture.
absl::Time DeadlineOf(const Spec& spec, absl::Time accepted_at);

// The time between a fold's checkpoints: as the spec asks, else by the Job's whole time, so that a
// fold that is killed loses a twentieth of it at most. Between a second and a minute.
absl::Duration CheckpointEvery(std::optional<absl::Duration> asked, absl::Duration job_time);

// B13. The pause before a retry: doubled with each, and never more than a tenth of
// what is left.
absl::Duration RetryDelay(int retries, absl::Duration left);

// The last moment at which starting a fold is still of use: its start and one epoch,
// or what is left of it, fit before train_end.
absl::Time LatestUsefulStart(const FoldCost& cost, double epochs_left, absl::Time train_end);

// When a fold has to stop so that those behind it on its gang get as much: an equal
// share of what is left from `start`. `behind`: folds that wait for this gang. While
// nothing is known of the cost, the end of training: a share that ends before the first
// step buys nothing.
absl::Time FairStop(absl::Time start, absl::Time now, absl::Time train_end, int behind,
                    double sharing, const FoldCost& cost);

template <typename Fits>
int CutEpochs(int epochs, Fits fits) {
  const int least = (epochs + 1) / 2;
  int most = epochs * 7 / 10;
  if (most < least) most = least;
  if (most >= epochs) return epochs;
  for (int e = most; e > least; --e) {
    if (fits(e)) return e;
  }
  return least;
}

template <typename Fits>
double CutRows(double row_share, double least, Fits fits) {
  for (int percent = static_cast<int>(90 * row_share + 1e-9); percent > 100 * least; --percent) {
    if (fits(percent / 100.0)) return percent / 100.0;
  }
  return std::min(row_share, least);
}

template <typename Fits>
double MostRows(double row_share, Fits fits) {
  for (int percent = 100; percent > 100 * row_share; --percent) {
    if (fits(percent / 100.0)) return percent / 100.0;
  }
  return row_share;
}

}  // namespace traind
