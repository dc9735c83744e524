// B9: folds that were stopped so that others had their turn go on when slots are free.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/job_rules/program_rules.h"
#include "server/control/control_core_impl.h"
#include "server/domain/names.h"
#include "server/plan/fold_costs.h"
#include "server/plan/planner.h"

namespace traind {
namespace {

// A fold goes on for so much more than it has learnt from, or to the end of the spec's epochs.
constexpr double kWorthwhile = 0.25;

bool StoppedInTime(const Job& job, const Task& task) {
  return std::any_of(job.attempts.rbegin(), job.attempts.rend(), [&task](const Attempt& row) {
    return row.id == task.attempt && row.end_reason == AttemptEndReason::kStoppedInTime;
  });
}

}  // namespace

// Whether the fold has had its turn, and waits for slots that no other fold needs.
bool ControlCore::Impl::ComesBack(const Job& job, const Task& task) {
  return task.state == TaskState::kPending && !IsExtra(task) && task.member &&
         StoppedInTime(job, task);
}

// The last moment at which it still makes sense to go on with it.
absl::Time ControlCore::Impl::LatestComeback(const JobEntry& entry, const Task& task) const {
  const Job& job = entry.view();
  const FoldCost cost = CostOfShare(TypicalFold(entry), RowsOf(job));
  if (!cost.known()) return absl::InfinitePast();
  const double left = std::max(1.0, job.spec.epochs - task.epochs_done);
  const double epochs = std::clamp(kWorthwhile * task.epochs_done, 1.0, left);
  return TrainEndOf(entry) - absl::Seconds(cost.overhead_s + epochs * cost.epoch_s);
}

// Whether the time of that fold was over, and there is more now. Further trials use time that is
// left by themselves, and what is left of a program's time nobody knows.
bool ControlCore::Impl::CouldGoOn(const JobEntry& entry, const Task& task) const {
  const Job& job = entry.view();
  if (job.plans.empty() || job.spec.trials.size() > 1 || ProgramTrains(job.spec) ||
      StopsTraining(job) || entry.pace.stopping || !WindowOf(entry).bounded()) {
    return false;
  }
  const bool stopped = !IsExtra(task) && task.state == TaskState::kPartial && task.member &&
                       task.checkpoint && task.failures == 0;
  const bool whole = task.epochs_done >= job.spec.epochs && task.row_share >= 1;
  return stopped && !whole && now_ <= LatestComeback(entry, task);
}

// The Attempt of such a fold is about to end, and to tell why.
bool ControlCore::Impl::AwaitsEndOfStopped(const JobEntry& entry) const {
  const std::vector<Task>& tasks = entry.view().tasks;
  return std::any_of(tasks.begin() + 1, tasks.end(), [&](const Task& task) {
    const auto live = attempts_.find(task.attempt);
    return live != attempts_.end() && live->second.open && CouldGoOn(entry, task);
  });
}

// Once nothing else is left to do they wait for slots, behind all other folds.
void ControlCore::Impl::BringBackStopped(JobEntry& entry) {
  if (!AllSettled(entry.view()) || AwaitsEndOfStopped(entry)) return;
  std::vector<std::string> folds;
  const size_t tasks = entry.view().tasks.size();
  for (size_t i = 1; i < tasks; ++i) {
    const Task& task = entry.view().tasks[i];
    if (!CouldGoOn(entry, task) || !StoppedInTime(entry.view(), task)) continue;
    folds.push_back(absl::StrFormat("%s after %.3g epochs", ModelText(task), task.epochs_done));
    EditDurably(entry).tasks[i].state = TaskState::kPending;
  }
  if (folds.empty()) return;
  Decide(entry, DecisionRule::kB9,
         absl::StrCat("its share of the time was over; ", Text(TrainEndOf(entry) - now_), " of ",
                      Text(WindowOf(entry).length()), " are left to train in"),
         absl::StrCat(folds.size() == 1 ? "fold " : "folds ", absl::StrJoin(folds, ", ")),
         "goes on as soon as a slot is free that no other fold needs");
}

}  // namespace traind
