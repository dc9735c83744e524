// B9: folds that were stopped, or cut from the Plan, so that other Jobs had their turn get slots
// that are free later.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/job_rules/program_rules.h"
#include "server/control/control_core_impl.h"
#include "server/domain/names.h"
#include "server/plan/budget_rules.h"
#include "server/plan/fold_costs.h"
#include "server/plan/plan_text.h"
#include "server/plan/planner.h"

namespace traind {
namespace {

// A fold goes on for so much more than it has learnt from, or to the end of the spec's epochs.
constexpr double kWorthwhile = 0.25;
constexpr char kWhenFree[] = "as soon as a slot is free that no other fold needs";

// Its time was over after it had begun to train.
bool WasATurn(const Attempt& row) {
  return row.kind == TaskKind::kTrain && row.end_reason == AttemptEndReason::kStoppedInTime &&
         row.first_step >= 0;
}

// The last Attempt of the task ended so.
bool StoppedInTime(const Job& job, const Task& task) {
  return std::any_of(job.attempts.rbegin(), job.attempts.rend(), [&task](const Attempt& row) {
    return row.id == task.attempt && WasATurn(row);
  });
}

// The epoch from which its next Attempt goes on.
double ResumesFrom(const Task& task) {
  return task.checkpoint ? std::min(task.checkpoint->epoch, task.epochs_done) : task.epochs_done;
}

bool FirstTrialRuns(const Job& job) {
  return std::any_of(job.tasks.begin() + 1, job.tasks.end(), [](const Task& task) {
    return task.trial == 0 && task.state == TaskState::kRunning;
  });
}

}  // namespace

// Whether an Attempt of the fold was stopped in time. Whatever ends those that go on from there, it
// has had its turn.
bool ControlCore::Impl::HadItsTurn(const Job& job, const Task& task) {
  return std::any_of(job.attempts.begin(), job.attempts.end(), [&task](const Attempt& row) {
    return WasATurn(row) && row.fold == task.fold && row.trial == task.trial &&
           row.seed == task.seed;
  });
}

// Whether the fold has had its turn, or gave it to other Jobs, and waits for slots that no other
// fold needs.
bool ControlCore::Impl::ComesBack(const Job& job, const Task& task) {
  if (task.state != TaskState::kPending || IsExtra(task)) return false;
  return task.attempts == 0 ? task.message == kCutFromPlan : task.member && HadItsTurn(job, task);
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

// The fewest epochs for which it makes sense to go on with a fold that has so many: those of a
// useful model where it has none.
double ControlCore::Impl::LeastEpochs(const Job& job, double done) {
  if (done <= 0) return std::min(job.plans.back().epochs, UsefulEpochs(job.spec.epochs));
  return std::clamp(kWorthwhile * done, 1.0, std::max(1.0, job.spec.epochs - done));
}

// An epoch of a share of the rows is the only one.
int ControlCore::Impl::MostEpochs(const Job& job) { return RowsOf(job) < 1 ? 1 : job.spec.epochs; }

// The time that they take from the start of an Attempt.
absl::Duration ControlCore::Impl::LeastRun(const JobEntry& entry, double done) const {
  const FoldCost cost = CostOfShare(TypicalFold(entry), RowsOf(entry.view()));
  if (!cost.known()) return absl::InfiniteDuration();
  return absl::Seconds(cost.overhead_s + LeastEpochs(entry.view(), done) * cost.epoch_s);
}

// The last moment at which it still makes sense to go on with it.
absl::Time ControlCore::Impl::LatestComeback(const JobEntry& entry, const Task& task) const {
  return TrainEndOf(entry) - LeastRun(entry, task.epochs_done);
}

// Whether a fold that comes back is to start now. Where others wait for their turn its own may be
// too short, and it would be stopped again and again.
bool ControlCore::Impl::PaysToStart(const JobEntry& entry, const Task& task) const {
  const Job& job = entry.view();
  const double done = task.epochs_done;
  const FoldCost cost = CostOfShare(TypicalFold(entry), RowsOf(job));
  // Epochs since its checkpoint are trained again.
  const absl::Duration again = absl::Seconds((done - ResumesFrom(task)) * cost.epoch_s);
  if (now_ + LeastRun(entry, done) + again > StopOf(entry, nullptr, &task)) return false;
  // Beside others it has the epochs that they have.
  const double wanted = std::min<double>(MostEpochs(job), done + LeastEpochs(job, done));
  return !FirstTrialRuns(job) || job.plans.back().epochs >= wanted;
}

// A fold that goes on alone gets the epochs that fit before it has to stop, within the share that a
// Plan may fill, so that its schedule ends there. Trees have none.
void ControlCore::Impl::PlanComeback(JobEntry& entry, const Task& task, absl::Time stop_at) {
  const Job& job = entry.view();
  const FoldCost cost = CostOfShare(TypicalFold(entry), RowsOf(job));
  if (!cost.known() || FirstTrialRuns(job) || AnswersAtAnyTime(job.spec)) return;
  const absl::Duration left = stop_at - now_;
  const double fits =
      ResumesFrom(task) +
      (job.spec.shares.plan * absl::ToDoubleSeconds(left) - cost.overhead_s) / cost.epoch_s;
  const double done = task.epochs_done, least = std::ceil(done + LeastEpochs(job, done));
  const auto epochs = static_cast<int>(std::min<double>(MostEpochs(job), std::max(fits, least)));
  const int before = job.plans.back().epochs;
  if (epochs == before) return;
  Plan plan = job.plans.back();
  ++plan.revision;
  plan.epochs = epochs;
  plan.at = now_;
  Log(entry, "plan", absl::StrCat("revision ", plan.revision, ": ", epochs, " epochs"));
  Decide(entry, DecisionRule::kB9,
         absl::StrCat("fold ", ModelText(task),
                      done > 0 ? absl::StrFormat(" goes on after %.3g epochs", done) : " starts",
                      "; ", Text(absl::Seconds(cost.epoch_s)), "/epoch, and ", Text(left),
                      " until it has to stop"),
         Count(before, "epoch"), Count(epochs, "epoch"));
  EditDurably(entry).plans.push_back(std::move(plan));
}

// Further trials use time that is left by themselves, and what a program needs nobody knows.
bool ControlCore::Impl::TakesTimeLeft(const JobEntry& entry) const {
  const Job& job = entry.view();
  return !job.plans.empty() && job.spec.trials.size() < 2 && !ProgramTrains(job.spec) &&
         !StopsTraining(job) && !entry.pace.stopping && WindowOf(entry).bounded();
}

// Whether the time of that fold was over, and there is more now. One that failed twice would start
// afresh.
bool ControlCore::Impl::CouldGoOn(const JobEntry& entry, const Task& task) const {
  const Job& job = entry.view();
  if (!TakesTimeLeft(entry)) return false;
  const bool stopped =
      !IsExtra(task) && task.state == TaskState::kPartial && task.member && task.failures < 2;
  const bool whole =
      task.epochs_done >= MostEpochs(job) && (RowsOf(job) < 1 || task.row_share >= 1);
  return stopped && !whole && now_ <= LatestComeback(entry, task);
}

// The Attempt of such a fold is about to end, and to tell why. Its last checkpoint may come after
// its last predictions.
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
    const bool goes_on = CouldGoOn(entry, task) && task.checkpoint;
    if (!goes_on || !StoppedInTime(entry.view(), task)) continue;
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
