// The clock of a Job: its ends, its Plans, and what Ranks are told.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>

#include "server/control/control_core_impl.h"
#include "server/domain/names.h"
#include "server/plan/fold_costs.h"

namespace traind {

Window ControlCore::Impl::WindowOf(const JobEntry& entry) const {
  return {ClockStart(entry.view()), entry.view().deadline};
}

namespace {

// A further trial is held back for longer: its prediction was timed once, and nothing like it was
// seen before.
constexpr double kUnlikeTheFirst = 1.25;

}  // namespace

absl::Duration ControlCore::Impl::FinalizeLeadOf(const JobEntry& entry) const {
  return FinalizeLead(WindowOf(entry), entry.publication.cost, options_.finalize_margin);
}

absl::Time ControlCore::Impl::FinalizeAt(const JobEntry& entry) const {
  const Window window = WindowOf(entry);
  return window.bounded() ? window.deadline - FinalizeLeadOf(entry) : absl::InfiniteFuture();
}

absl::Time ControlCore::Impl::SettleAt(const JobEntry& entry) const {
  const Window window = WindowOf(entry);
  if (!window.bounded()) return absl::InfiniteFuture();
  return window.deadline - SettleLead(window, options_.finalize_margin);
}

absl::Time ControlCore::Impl::TrainEndOf(const JobEntry& entry) const {
  return TrainEndWith(entry, 0);
}

absl::Time ControlCore::Impl::TrainEndWith(const JobEntry& entry, double stop_s) const {
  const Window window = WindowOf(entry);
  const Spec& spec = entry.view().spec;
  stop_s = std::max({stop_s, StopSeconds(TypicalFold(entry)), FinishingSeconds(entry, 0)});
  const absl::Time end =
      TrainEnd(window, spec, Reserve(window, spec, stop_s, FinalizeLeadOf(entry)));
  return window.bounded() ? std::min(end, QuotaEndOf(entry)) : end;
}

// Where the Plan has begun to shorten epochs it may go on with that.
FoldCost ControlCore::Impl::ShortestEpoch(const JobEntry& entry) const {
  const FoldCost& cost = TypicalFold(entry);
  return RowsOf(entry.view()) < 1 ? CostOfShare(cost, LeastRows(cost.steps_per_epoch)) : cost;
}

ControlCore::Impl::StartRule ControlCore::Impl::StartRuleOf(const JobEntry& entry,
                                                            int ended) const {
  StartRule rule;
  rule.train_end = TrainEndOf(entry);
  rule.any_time = AnswersAtAnyTime(entry.view().spec);
  rule.program = ProgramTrains(entry.view().spec);
  // Where there is no other model, even a part of an epoch is worth a lot.
  const std::vector<Task>& tasks = entry.view().tasks;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const bool runs = tasks[i].state == TaskState::kRunning && static_cast<int>(i) != ended;
    if (tasks[i].kind == TaskKind::kTrain && (tasks[i].member || runs)) {
      rule.cost = ShortestEpoch(entry);
      break;
    }
  }
  return rule;
}

absl::Time ControlCore::Impl::StartRule::Latest(const Task& task) const {
  // The epochs of trial 0 tell nothing of other models, and trees need no whole one.
  const bool part = any_time || task.trial > 0 || (program && task.attempts > 0);
  return LatestUsefulStart(part ? FoldCost() : cost,
                           std::max(0.0, task.epochs_planned - task.epochs_done), train_end);
}

int ControlCore::Impl::ParallelFolds(const JobEntry& entry) const {
  const int jobs = std::max(1, static_cast<int>(training_.size()));
  const int own_jobs = std::max(1, limits_.Of(entry.view().owner).training);
  return std::max(1, std::min(GangsOfMachines(entry) / jobs, Gangs(entry) / own_jobs));
}

double ControlCore::Impl::Sharing(const JobEntry& entry) const {
  const double gangs = std::max(1, GangsOfMachines(entry)), own_gangs = std::max(1, Gangs(entry));
  const double own = limits_.Of(entry.view().owner).training_in_time;
  return std::max({1.0, static_cast<double>(training_in_time_.size()) / gangs, own / own_gangs});
}

// A gang of the Job and its share of the Jobs that wait for their first one: of those that could
// have its slots, of no lower priority, and with deadlines that are no later. Those of other owners
// who may have no more slots could not; those of its own share what the owner may have.
double ControlCore::Impl::Turns(const JobEntry& entry) const {
  const Job& job = entry.view();
  if (job.deadline == absl::InfiniteFuture()) return 1;
  const absl::Duration about_same = std::max(absl::Seconds(1), 0.1 * WindowOf(entry).length());
  Urgency last;
  last.latest_start = job.deadline + about_same;
  last.priority = job.spec.priority;
  double waiting = 0, own = 0;
  for (auto queue = train_queue_.lower_bound({entry.shape, false, ""}); queue != train_queue_.end();
       ++queue) {
    const QueueName& name = queue->first;
    if (entry.shape < name.shape || name.timeless) break;
    const bool is_own = name.owner.empty() || name.owner == job.owner;
    if (!is_own && WithinLimitOf(name).may_start == 0) continue;
    auto before = static_cast<double>(queue->second.order_of_key(last));
    if (is_own && entry.train_key && *entry.train_key < last) --before;
    waiting += before;
    if (is_own) own += before;
  }
  const double gangs = std::max(1, GangsOfMachines(entry));
  return 1 + std::max(waiting / gangs, own / std::max(1, Gangs(entry)));
}

absl::Time ControlCore::Impl::FirstTrainStart(const JobEntry& entry) const {
  for (const Attempt& attempt : entry.view().attempts) {
    if (attempt.kind == TaskKind::kTrain) return attempt.started_at;
  }
  return absl::InfiniteFuture();
}

absl::Duration ControlCore::Impl::ReplanInterval(const JobEntry& entry) const {
  const Window window = WindowOf(entry);
  if (!window.bounded()) return absl::Seconds(1);
  return std::clamp(0.01 * window.length(), absl::Milliseconds(100), absl::Seconds(10));
}

// B3: the first fold runs, or has run, for more than its share.
bool ControlCore::Impl::FirstFoldDue(const JobEntry& entry) const {
  const Job& job = entry.view();
  const Window window = WindowOf(entry);
  for (const Attempt& attempt : job.attempts) {
    if (attempt.kind != TaskKind::kTrain) continue;
    const absl::Duration used = std::min(now_, attempt.ended_at) - attempt.started_at;
    return FirstFoldIsSlow(window, job.spec.shares.first_fold, used);
  }
  return false;
}

absl::Duration ControlCore::Impl::NewsGrace(const JobEntry& entry) const {
  const Window window = WindowOf(entry);
  return window.bounded() ? std::min(kResendGrace, 0.05 * window.length()) : kResendGrace;
}

// Returns true where the progress of running folds is not known: a Plan from the facts that stood
// before their Worker, or traind, was away would cut epochs that they have long done.
bool ControlCore::Impl::AwaitsNews(const JobEntry& entry) const {
  bool away = false, runs = false;
  for (const Task& task : entry.view().tasks) {
    if (task.kind != TaskKind::kTrain || task.state != TaskState::kRunning) continue;
    runs = true;
    const auto live = attempts_.find(task.attempt);
    if (live == attempts_.end()) continue;
    const auto worker = workers_.find(live->second.lead());
    away |= worker != workers_.end() && !worker->second.attached;
  }
  return away || (runs && now_ < entry.pace.news_by);
}

void ControlCore::Impl::PlanWhenDue(JobEntry& entry) {
  const Job& job = entry.view();
  if (job.plans.empty() || AwaitsNews(entry) || OnlyComesBack(job)) return;
  const Window window = WindowOf(entry);
  if (!entry.pace.first_fold_checked && FirstFoldDue(entry)) {
    entry.pace.first_fold_checked = true;
    return Replan(entry, Trigger::kFirstFold);
  }
  const bool known = TypicalFold(entry).known();
  if (known && (!job.plans.back().estimate || (!entry.pace.trusted && Confident(entry)))) {
    entry.pace.trusted = Confident(entry);
    return Replan(entry, Trigger::kMeasured);
  }
  if (!entry.pace.stop_checked && window.bounded() && now_ >= window.At(job.spec.shares.stop)) {
    entry.pace.stop_checked = true;
    return Replan(entry, Trigger::kFacts);
  }
  // Once nothing is left to do, the Plan decides whether more is to be done.
  const bool due = now_ >= entry.pace.planned_at + ReplanInterval(entry) || AllSettled(job);
  if (entry.pace.replan_wanted && due) Replan(entry, Trigger::kFacts);
}

// Whole epochs were measured: two of them, or the only ones that there are.
bool ControlCore::Impl::Confident(const JobEntry& entry) const {
  const Job& job = entry.view();
  if (job.plans.empty()) return false;
  const size_t enough = job.plans.back().epochs <= 2 ? 1 : 2;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    if (entry.pace.epochs_s[i].size() >= enough) return true;
    if (PacedWithinEpoch(entry, static_cast<int>(i))) return true;
    if (job.tasks[i].member && IsTerminal(job.tasks[i].state)) return true;
  }
  return false;
}

// PREPARE still fits a better floor: the folds are judged against it, and it may be the answer.
// Folds that were taken over are there before any floor.
bool ControlCore::Impl::AwaitsFloor(const Job& job) const {
  if (job.tasks[0].state == TaskState::kRunning && !StopsTraining(job)) return true;
  return !IsTerminal(job.tasks[0].state) &&
         std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& t) { return t.reused; });
}

bool ControlCore::Impl::AllSettled(const Job& job) const {
  return std::all_of(job.tasks.begin() + 1, job.tasks.end(),
                     [](const Task& task) { return IsTerminal(task.state); });
}

void ControlCore::Impl::Replan(JobEntry& entry, Trigger trigger) {
  const Job& job = entry.view();
  PlanInput in;
  in.spec = &job.spec;
  in.window = WindowOf(entry);
  in.now = now_;
  in.trigger = trigger;
  in.last = job.plans.empty() ? nullptr : &job.plans.back();
  in.cost = TypicalFold(entry);
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (task.trial > 0) continue;  // the Plan is that of trial 0
    // What it has stands until it has a slot.
    const bool waits_back = ComesBack(job, task);
    FoldView view{task.fold,
                  waits_back ? SettledState(task) : task.state,
                  task.attempts > 0 || !task.from_job.empty(),
                  task.epochs_done,
                  CostOfFold(entry, static_cast<int>(i)),
                  absl::InfiniteFuture()};
    if (task.live) view.epochs_done = std::max(view.epochs_done, task.live->epoch);
    if (const LiveAttempt* live = OpenAttempt(task)) {
      view.started_at = live->started_at;
      view.back = live->back_after.has_value();
    }
    view.trial = task.trial;
    view.seed = task.seed;
    view.answers = task.member.has_value();
    in.folds.push_back(view);
  }
  in.gangs = ParallelFolds(entry);
  in.sharing = Sharing(entry);
  in.turn_end = TurnEnd(entry);
  in.finalize = FinalizeLeadOf(entry);
  in.finishing_s = FinishingSeconds(entry, 0);
  in.transfer_s = TransferCostOf(entry).fetch_s + TransferCostOf(entry).send_s;
  in.train_start = FirstTrainStart(entry);
  in.stopping = entry.pace.stopping;
  in.confident = entry.pace.trusted || Confident(entry);
  if (in.window.bounded()) in.train_limit = QuotaEndOf(entry);
  in.may_grow = !StopsTraining(job) && now_ < FinalizeAt(entry);
  const int folds_before = in.last ? in.last->folds : job.spec.folds;
  PlanOutput out = MakePlan(in);

  entry.pace.planned_at = now_;
  entry.pace.replan_wanted = false;
  entry.pace.stopping = out.stopping;
  entry.pace.estimated_finish = out.estimated_finish;
  for (Decision& decision : out.decisions) AddDecision(entry, std::move(decision));
  if (out.changed) {
    Log(entry, "plan",
        absl::StrCat(
            "revision ", out.plan.revision, ": ", out.plan.folds, " folds x ", out.plan.epochs,
            " epochs",
            out.plan.row_share < 1 ? absl::StrCat(" of ", out.plan.row_share, " of the rows") : "",
            ", ", out.plan.models, " models"));
    Edit(entry).plans.push_back(out.plan);
  }
  ApplyFolds(entry, out, folds_before);
  if (job.spec.trials.size() < 2) ApplyExtraSeeds(entry, out);
  SendReplans(entry);
}

void ControlCore::Impl::ApplyFolds(JobEntry& entry, const PlanOutput& out, int folds_before) {
  const size_t tasks = entry.view().tasks.size();
  for (size_t i = 1; i < tasks; ++i) {
    const Task& task = entry.view().tasks[i];
    const bool first = !IsExtra(task);  // the others come and go by ApplyExtraSeeds
    if (first && task.state == TaskState::kDropped && task.attempts == 0 &&
        task.fold >= folds_before && task.fold < out.plan.folds) {
      Task& back = EditDurably(entry).tasks[i];
      back.state = TaskState::kPending;
      back.message.clear();
      back.epochs_planned = out.plan.epochs;
      continue;
    }
    if (IsTerminal(task.state) || task.trial > 0) continue;
    const bool named =
        std::find(out.dropped.begin(), out.dropped.end(), task.fold) != out.dropped.end();
    if (first && task.state == TaskState::kPending && (task.fold >= out.plan.folds || named)) {
      SettleFold(entry, static_cast<int>(i), named ? "no time left (B5)" : kCutFromPlan);
    } else if (task.epochs_planned != out.plan.epochs) {
      Edit(entry).tasks[i].epochs_planned = out.plan.epochs;
    }
  }
}

// Pending folds for which a start would come to nothing before the reserve (B4).
void ControlCore::Impl::DropHopeless(JobEntry& entry) {
  if (!WindowOf(entry).bounded()) return;
  std::vector<std::string> dropped;
  const StartRule rule = StartRuleOf(entry);
  const size_t tasks = entry.view().tasks.size();
  for (size_t i = 1; i < tasks; ++i) {
    const Task& task = entry.view().tasks[i];
    const bool back = ComesBack(entry.view(), task);
    const absl::Time latest = back ? LatestComeback(entry, task) : rule.Latest(task);
    if (task.state != TaskState::kPending || now_ <= latest) continue;
    // Models of further trials come and go as time allows, and so do folds that have had a turn.
    if (task.trial == 0 && !(back && task.member)) dropped.push_back(ModelText(task));
    SettleFold(entry, static_cast<int>(i), task.message.empty() ? "no time left" : task.message);
  }
  if (dropped.empty()) return;
  const Window window = WindowOf(entry);
  const absl::Time train_end = TrainEndOf(entry);
  const FoldCost cost = ShortestEpoch(entry);
  std::string cause =
      absl::StrCat(Text(now_ - window.start), " of ", Text(window.length()), " used, ",
                   Text(window.deadline - train_end), " are held back for prediction");
  if (cost.known()) {
    absl::StrAppend(&cause, "; a start and one epoch take ",
                    Text(absl::Seconds(cost.overhead_s + cost.epoch_s)));
  }
  Decide(entry, DecisionRule::kB4, std::move(cause),
         absl::StrCat(dropped.size() == 1 ? "fold " : "folds ", absl::StrJoin(dropped, ", "),
                      " to be trained"),
         "not started any more");
}

absl::Time ControlCore::Impl::StopOf(const JobEntry& entry, const LiveAttempt* live,
                                     const Task* back) const {
  const absl::Time train_end = TrainEndOf(entry);
  if (train_end == absl::InfiniteFuture()) return train_end;
  const Job& job = entry.view();
  // No model waits for the slots of one of a further trial; its prediction may take longer.
  if (live && job.tasks[static_cast<size_t>(live->task)].trial > 0) {
    const double stop_s =
        std::max(kUnlikeTheFirst * StopSeconds(CostOfFold(entry, live->task)),
                 FinishingSeconds(entry, job.tasks[static_cast<size_t>(live->task)].trial));
    return TrainEndWith(entry, stop_s);
  }
  int running = 0, pending = 0, pending_back = 0, position = 0;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    // No model gets less because extra models wait.
    const bool waits = task.state == TaskState::kPending && !IsExtra(task);
    if (waits) ++(ComesBack(job, task) ? pending_back : pending);
    if (task.state != TaskState::kRunning) continue;
    if (live && static_cast<int>(i) < live->task) ++position;
    ++running;
  }
  if (!live) {  // the last of those that run, and no longer pending
    position = running++;
    int& waits = back != nullptr ? pending_back : pending;
    waits = std::max(0, waits - 1);
  }
  const double sharing = pending > 0 ? Sharing(entry) : Turns(entry);
  // Folds that come back leave time for one another alone.
  const std::optional<double> after = back != nullptr   ? back->epochs_done
                                      : live != nullptr ? live->back_after
                                                        : std::nullopt;
  if (after) pending += pending_back;
  int behind = FoldsBehind(position, running, pending, ParallelFolds(entry));
  const absl::Time start = live ? live->started_at : now_;
  FoldCost cost = live ? CostOfFold(entry, live->task) : FoldCost();
  if (!cost.known()) cost = TypicalFold(entry);
  cost = CostOfShare(cost, RowsOf(job));
  const auto stop = [&] { return FairStop(start, now_, train_end, behind, sharing, cost); };
  // One that can go on for long enough is better than several that cannot.
  while (after && behind > 0 && stop() < start + LeastRun(entry, *after)) --behind;
  return stop();
}

// Until when the folds that run may plan because other Jobs wait for their first gang, or folds of
// their own Job come back.
absl::Time ControlCore::Impl::TurnEnd(const JobEntry& entry) {
  bool others = Turns(entry) > 1;
  absl::Time end = absl::InfinitePast();
  for (const Task& task : entry.view().tasks) {
    if (task.kind != TaskKind::kTrain || IsExtra(task)) continue;
    const bool back = ComesBack(entry.view(), task);
    others |= back;
    if (task.state == TaskState::kPending && !back) return absl::InfiniteFuture();  // see Sharing
    if (const LiveAttempt* live = OpenAttempt(task)) end = std::max(end, StopOf(entry, live));
  }
  return !others || end == absl::InfinitePast() ? absl::InfiniteFuture() : end;
}

void ControlCore::Impl::SendReplans(JobEntry& entry) {
  const Job& job = entry.view();
  const Plan& plan = job.plans.back();
  const bool plan_cut = PlanCut(job);
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    if (job.tasks[i].state != TaskState::kRunning) continue;
    LiveAttempt* live = OpenAttempt(job.tasks[i]);
    if (!live || live->stop_sent || !workers_[live->lead()].attached) continue;
    const absl::Time stop_at = StopOf(entry, live);
    const bool further = job.tasks[i].trial > 0;
    const int epochs = further ? EpochsOf(job.spec, job.tasks[i].trial) : plan.epochs;
    const double row_share = further ? 1 : plan.row_share;
    bool tell =
        live->epochs != epochs || live->row_share != row_share || live->plan_cut != plan_cut;
    if (stop_at != live->stop_at) {
      const absl::Duration change =
          stop_at > live->stop_at ? stop_at - live->stop_at : live->stop_at - stop_at;
      tell |= change > 0.1 * (live->stop_at - now_) && change > absl::Milliseconds(20);
    }
    if (!tell) continue;
    live->epochs = epochs;
    live->row_share = row_share;
    live->plan_cut = plan_cut;
    live->stop_at = stop_at;
    live->replanned_at = now_;
    SendReplan(*live, {"", live->id, epochs, row_share, stop_at, job.deadline, plan_cut});
  }
}

void ControlCore::Impl::StopPaused(JobEntry& entry) {
  const Job& job = entry.view();
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    if (job.tasks[i].state != TaskState::kRunning) continue;
    LiveAttempt* live = OpenAttempt(job.tasks[i]);
    if (!live || live->stop_sent || !workers_[live->lead()].attached) continue;
    SendStop(*live, StopMode::kDrop, StopReason::kUserPaused, "the job is paused");
  }
}

// Ranks stop by their own clock; this is for one that does not, and for Finish.
void ControlCore::Impl::StopLate(JobEntry& entry) {
  const Job& job = entry.view();
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    if (job.tasks[i].state != TaskState::kRunning) continue;
    LiveAttempt* live = OpenAttempt(job.tasks[i]);
    if (!live || live->stop_sent || !workers_[live->lead()].attached) continue;
    if (StopsTraining(job)) {
      if (job.finish_requested) {
        SendStop(*live, StopMode::kPredict, StopReason::kUserFinished, "the user asked to finish");
      } else {
        SendStop(*live, StopMode::kPredict, StopReason::kQuota, "nothing is left of a quota");
      }
    } else if (now_ >= live->stop_at + kStopGrace) {
      SendStop(*live, StopMode::kPredict, StopReason::kTime, "its time is up");
    }
  }
}

double ControlCore::Impl::RowsOf(const Job& job) {
  return job.plans.empty() ? 1 : job.plans.back().row_share;
}

// FULL is out of reach: the Plan has less than the spec, and it is not so that each
// fold had all its epochs before the cut reached it, or ran out of patience.
bool ControlCore::Impl::PlanCut(const Job& job) {
  if (job.plans.empty()) return false;
  const Plan& plan = job.plans.back();
  if (plan.folds < job.spec.folds) return true;
  const bool shortened = std::any_of(job.tasks.begin() + 1, job.tasks.end(), [](const Task& task) {
    return !IsExtra(task) && task.row_share < 1;
  });
  if (shortened) return true;
  if (plan.epochs >= job.spec.epochs && plan.row_share >= 1) {
    // Epochs that came back (B9) came too late for folds that had ended by then.
    return std::any_of(job.tasks.begin() + 1, job.tasks.end(), [&job](const Task& task) {
      return !IsExtra(task) && task.member && task.member->complete && IsTerminal(task.state) &&
             task.epochs_planned < job.spec.epochs &&
             task.member->epochs_done >= task.epochs_planned;
    });
  }
  return !std::all_of(job.tasks.begin() + 1, job.tasks.end(), [&job](const Task& task) {
    if (IsExtra(task)) return true;
    if (!task.member || !task.member->complete) return false;
    // One that ran out of patience wanted no more epochs than the Plan had for it.
    return task.member->epochs_done >= job.spec.epochs || RanOutOfPatience(task);
  });
}

// The slots are shared by other Jobs than before, or there are others. Where much runs, the Plans
// are made anew together, and only when the shares have moved.
void ControlCore::Impl::ReplanTraining() {
  shares_changed_ = true;
  if (attempts_.size() <= kFewAttempts) ReplanAll();
}

bool ControlCore::Impl::SharesMoved() {
  constexpr double kLeast = 0.05;
  const ShareBasis now{training_.size(), training_in_time_.size(), board_.capacity().slots()};
  const auto moved = [](double a, double b) { return std::abs(a - b) > kLeast * std::min(a, b); };
  const ShareBasis& planned = planned_shares_;
  if (!moved(static_cast<double>(now.jobs), static_cast<double>(planned.jobs)) &&
      !moved(static_cast<double>(now.in_time), static_cast<double>(planned.in_time)) &&
      !moved(now.slots, planned.slots)) {
    return false;
  }
  planned_shares_ = now;
  return true;
}

void ControlCore::Impl::ReplanAll() {
  const bool few = attempts_.size() <= kFewAttempts;
  if (!shares_changed_ || (!few && now_ < shares_at_ + kWalkInterval)) return;
  shares_changed_ = false;
  shares_at_ = now_;
  if (!SharesMoved() && !few) return;
  for (auto& [id, live] : attempts_) {
    if (!live.open || live.kind != TaskKind::kTrain || live.job->pace.replan_wanted) continue;
    live.job->pace.replan_wanted = true;
    Touch(*live.job);
  }
}

}  // namespace traind
