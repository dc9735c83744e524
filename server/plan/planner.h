// Makes the Plan of a Job from what is known now: the spec, the window, what was
// measured, where each fold stands, and the slots that the Job can use. Pure: the
// control core keeps the result and acts on it.
//
// Cuts are taken back (B9), never beyond the spec, when later measurements leave time for it:
// epochs while a fold trains that can use them, folds when none waits. A fold that runs or is
// finished is never cut away.
//
// Extra seeds, models of a fold besides its first (Spec::seeds), come last: with a deadline when a
// gang has nothing else to do, every fold of the spec has run or runs, and one more fits; they are
// expected to take as many epochs as the longest fold took, where all were done early. No fold
// loses anything to them: where time gets short those that wait go first.
//
// The first timed steps are made on a machine that still starts other things, and
// mislead. Until whole epochs were measured (`confident`), only that is cut which
// would not fit at twice the speed either, and no model loses the epochs that it
// needs (UsefulEpochs); stop times keep the deadline meanwhile.
//
// Threads: safe, nothing is kept.
#pragma once

#include <absl/time/time.h>

#include <string>
#include <vector>

#include "server/domain/job.h"
#include "server/plan/budget_rules.h"

namespace traind {

// Why a Plan is made.
enum class Trigger {
  kTable,      // the data are there: a provisional one, so that folds can start
  kMeasured,   // the first timed steps, and again when they can be trusted: the real one
  kFirstFold,  // B3
  kFacts,      // anything else that was learnt
};

struct FoldView {
  int fold = 0;
  TaskState state = TaskState::kPending;
  bool started = false;  // has had an Attempt
  double epochs_done = 0;
  FoldCost cost;                                   // its own, where known
  absl::Time started_at = absl::InfiniteFuture();  // of the running Attempt
  int trial = 0, seed = 0;                         // see IsExtra
  bool answers = false;                            // has predictions
  bool back = false;                               // goes on in time that others have left
};

struct PlanInput {
  const Spec* spec = nullptr;
  Window window;
  absl::Time now;
  Trigger trigger = Trigger::kFacts;
  const Plan* last = nullptr;  // the one that counts so far
  FoldCost cost;               // of a typical fold; unknown: nothing is cut
  // All of the spec's, in order, then the extra seeds that were ever in the Plan.
  std::vector<FoldView> folds;
  int gangs = 1;       // folds that can run at once for this Job
  double sharing = 1;  // see WorkLeft
  // Other Jobs wait for their first gang, and no fold of this one does, or only such that come
  // back: when those that run are to be done with their last epoch.
  absl::Time turn_end = absl::InfiniteFuture();
  absl::Duration finalize;                          // see Reserve
  double finishing_s = 0;                           // from a fold's last epoch to its answers
  double transfer_s = 0;                            // of the cost of a fold: files that travel
  absl::Time train_start = absl::InfiniteFuture();  // first Attempt of a fold
  absl::Time train_limit = absl::InfiniteFuture();  // training ends then at the latest
  bool stopping = false;                            // B5 was decided before
  bool confident = true;                            // see above
  bool may_grow = true;                             // B9; false: the user asked to finish
};

struct PlanOutput {
  Plan plan;             // revision is last's + 1; the caller drops it unless `changed`
  bool changed = false;  // differs from last in more than small figures
  std::vector<Decision> decisions;
  absl::Time train_end = absl::InfiniteFuture();
  absl::Time estimated_finish = absl::InfiniteFuture();
  // Pending folds that get no turn any more; those beyond plan.folds are not in it.
  // Where plan.folds has grown, dropped folds below it are pending again.
  std::vector<int> dropped;
  bool stopping = false;  // B5 holds
  // How many extra seeds are to be trained, or were: so many of PlanInput::folds' that were
  // not dropped, the last that never ran given back, or new ones behind them.
  int extra_seeds = 0;
};

PlanOutput MakePlan(const PlanInput& input);

// A dry run: what a Job would do, accepted now.
struct Assumptions {
  Measured measured;        // of a fold
  double overhead_s = 0.5;  // start of an Attempt
  double prepare_s = 0.5;   // reading the data
  double publish_s = 0.05;
  int gangs = 1;
  double sharing = 1;
};
struct Preview {
  Plan plan;
  std::vector<Decision> cuts;
  absl::Duration estimate_p50, estimate_p90;  // of the whole Job
  double device_s_p50 = 0, device_s_p90 = 0;  // slots x seconds of all folds
  // The shortest budget in which nothing of the spec is cut, at the slower estimate.
  absl::Duration full_budget;
  absl::Time estimated_finish;
};
Preview PreviewPlan(const Spec& spec, const Assumptions& assumptions, absl::Time now);

// "1.25 s", "96 ms", "3 min 5 s": for causes that people read.
std::string Text(absl::Duration duration);

}  // namespace traind
