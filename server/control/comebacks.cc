// B9: folds that were stopped, or cut from the Plan, so that other Jobs had their turn get slots
// that are free later.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/job_rules/program_rules.h"
#include "server/control/control_core_impl.h"
#include "server/domain/names.h"
#include "server/plan/budget_rules.h"
#include "server/plan/fold_costs.h"
#include "server/plan/planner.h"

namespace traind {
namespace {

// A fold goes on for so much more than it has learnt from, or to the end of the spec's epochs.
constexpr double kWorthwhile = 0.25;
constexpr char kWhenFree[] = "as soon as a slot is free that no other fold needs";

bool StoppedInTime(const Job& job, const Task& task) {
  return std::any_of(job.attempts.rbegin(), job.attempts.rend(), [&task](const Attempt& row) {
    return row.id == task.attempt && row.end_reason == AttemptEndReason::kStoppedInTime;
  });
}

}  // namespace

// Whether the fold has had its turn, or gave it to other Jobs, and waits for slots that no other
// fold needs.
bool ControlCore::Impl::ComesBack(const Job& job, const Task& task) {
  if (task.state != TaskState::kPending || IsExtra(task)) return false;
  return task.attempts == 0 ? task.message == kCutFromPlan
                            : task.member && StoppedInTime(job, task);
}

// Nothing is to be planned for such folds before they have slots.
bool ControlCore::Impl::OnlyComesBack(const Job& job) {
  bool any = false;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    const bool back = ComesBack(job, job.tasks[i]);
    if (!back && !IsTerminal(job.tasks[i].state)) return false;
    any |= back;
  }
  return any;
}

// The last moment at which it still makes sense to go on with it.
absl::Time ControlCore::Impl::LatestComeback(const JobEntry& entry, const Task& task) const {
  const Job& job = entry.view();
  const FoldCost cost = CostOfShare(TypicalFold(entry), RowsOf(job));
  if (!cost.known()) return absl::InfinitePast();
  const double left = std::max(1.0, job.spec.epochs - task.epochs_done);
  const double epochs = task.attempts == 0
                            ? std::min(job.plans.back().epochs, UsefulEpochs(job.spec.epochs))
                            : std::clamp(kWorthwhile * task.epochs_done, 1.0, left);
  return TrainEndOf(entry) - absl::Seconds(cost.overhead_s + epochs * cost.epoch_s);
}

// Further trials use time that is left by themselves, and what a program needs nobody knows.
bool ControlCore::Impl::TakesTimeLeft(const JobEntry& entry) const {
  const Job& job = entry.view();
  return !job.plans.empty() && job.spec.trials.size() < 2 && !ProgramTrains(job.spec) &&
         !StopsTraining(job) && !entry.pace.stopping && WindowOf(entry).bounded();
}

// Whether the time of that fold was over, and there is more now.
bool ControlCore::Impl::CouldGoOn(const JobEntry& entry, const Task& task) const {
  const Job& job = entry.view();
  if (!TakesTimeLeft(entry)) return false;
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
  if (folds.empty()) return BringBackCut(entry);
  Decide(entry, DecisionRule::kB9, TimeLeftText(entry, "its share of the time was over"),
         absl::StrCat(folds.size() == 1 ? "fold " : "folds ", absl::StrJoin(folds, ", ")),
         kWhenFree);
}

// Folds that would have fitted if other Jobs had not been to have their turn. Where there are none,
// the Plan has told what fits.
void ControlCore::Impl::BringBackCut(JobEntry& entry) {
  const Job& job = entry.view();
  const bool alone = training_in_time_.size() <= training_in_time_.count(entry.sequence);
  if (!TakesTimeLeft(entry) || alone || job.plans.back().folds >= job.spec.folds) return;
  const int before = job.plans.back().folds;
  int folds = before;
  const size_t tasks = job.tasks.size();
  for (size_t i = 1; i < tasks && folds < before + Gangs(entry); ++i) {
    const Task& task = entry.view().tasks[i];
    const bool cut = !IsExtra(task) && task.state == TaskState::kDropped && task.attempts == 0 &&
                     task.message == kCutFromPlan && task.fold == folds;
    if (!cut || now_ > LatestComeback(entry, task)) continue;
    EditDurably(entry).tasks[i].state = TaskState::kPending;
    ++folds;
  }
  if (folds == before) return;
  Plan plan = entry.view().plans.back();
  ++plan.revision;
  plan.folds = folds;
  plan.models += folds - before;
  plan.at = now_;
  Log(entry, "plan", absl::StrCat("revision ", plan.revision, ": ", folds, " folds"));
  EditDurably(entry).plans.push_back(std::move(plan));
  Decide(entry, DecisionRule::kB9, TimeLeftText(entry, "other Jobs have had their turn"),
         absl::StrCat(before, before == 1 ? " fold" : " folds"),
         absl::StrCat(folds, " folds: the further ones ", kWhenFree));
}

std::string ControlCore::Impl::TimeLeftText(const JobEntry& entry, absl::string_view why) const {
  return absl::StrCat(why, "; ", Text(TrainEndOf(entry) - now_), " of ",
                      Text(WindowOf(entry).length()), " are left to train in");
}

}  // namespace traind
