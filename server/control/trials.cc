// Further trials (B9): their tasks come into a Job when a gang has nothing else to do.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/job_rules/program_rules.h"
#include "common/job_rules/task_rules.h"
#include "server/control/control_core_impl.h"
#include "server/domain/names.h"
#include "server/plan/fold_costs.h"
#include "server/plan/trial_work.h"
#include "server/plan/trials.h"
#include "server/search/search.h"

namespace traind {
namespace {

TrialFold::State ProgressOf(const Task& task) {
  if (!IsTerminal(task.state)) return TrialFold::kBusy;
  if (task.member) return TrialFold::kDone;
  // One that never ran was only given back.
  return task.attempts > 0 ? TrialFold::kFailed : TrialFold::kOpen;
}

std::string NameOf(const Trial& trial) {
  if (trial.name.empty() || absl::StartsWith(trial.name, trial.kind)) {
    return trial.name.empty() ? trial.kind : trial.name;
  }
  return absl::StrCat(trial.name, " (", trial.kind, ")");
}

}  // namespace

TrialsSeen ControlCore::Impl::SeenOf(const JobEntry& entry) const {
  const Job& job = entry.view();
  TrialsSeen seen;
  int busy = 0;
  for (const Task& task : job.tasks) {
    const bool settled = IsTerminal(task.state);
    busy += task.kind == TaskKind::kTrain && !settled;
    seen.settled += settled;
  }
  seen.idle = std::max(0, ParallelFolds(entry) - busy);
  seen.plans = job.plans.size();
  seen.prediction = job.prediction ? job.prediction->number : 0;
  seen.answered = !entry.publication.wanted && !entry.publication.running;
  seen.deadline = job.deadline;
  seen.quotas = quota_changes_;
  seen.drawn = static_cast<size_t>(
      std::count_if(job.spec.trials.begin(), job.spec.trials.end(),
                    [](const Trial& trial) { return trial.settings != nullptr; }));
  return seen;
}

// Returns the scores and costs of the trials so far.
TrialsInput ControlCore::Impl::TrialsOf(const JobEntry& entry) const {
  const Job& job = entry.view();
  TrialsInput in;
  in.higher_is_better = job.spec.higher_is_better;
  in.searches = !job.spec.search.method.empty();
  in.rungs = HasRungs(job.spec.search);
  in.fold_rows = static_cast<double>(job.table.train_rows) / job.spec.folds;
  in.left_s = absl::ToDoubleSeconds(TrainEndOf(entry) - now_) - StartSeconds(entry);
  in.classes = job.table.classes;
  in.columns = job.table.features;
  in.gangs = ParallelFolds(entry);
  in.answer_known = job.prediction && !entry.publication.wanted && !entry.publication.running;
  if (!entry.trial_works) entry.trial_works = WorkOfTrials(job.spec_json);
  for (const Trial& trial : job.spec.trials) {
    TrialView& view = in.trials.emplace_back();
    view.kind = trial.kind;
    if (in.trials.size() <= entry.trial_works->size()) {
      view.work = (*entry.trial_works)[in.trials.size() - 1];
    }
    view.folds.resize(static_cast<size_t>(job.spec.folds));
  }
  std::map<int64_t, double> seconds;
  for (const Attempt& attempt : job.attempts) {
    seconds[attempt.id] =
        absl::ToDoubleSeconds(std::min(now_, attempt.ended_at) - attempt.started_at);
  }
  std::vector<int> measured(in.trials.size());
  for (const Task& task : job.tasks) {
    const auto trial = static_cast<size_t>(task.trial);
    if (task.kind != TaskKind::kTrain || trial >= in.trials.size()) continue;
    TrialView& view = in.trials[trial];
    TrialFold& fold = view.folds[static_cast<size_t>(task.fold)];
    fold.state = ProgressOf(task);
    if (task.score) fold.score = *task.score;
    const auto took = seconds.find(task.attempt);
    if (took == seconds.end()) continue;
    if (task.state == TaskState::kRunning) {
      view.running_s = std::max(view.running_s, took->second);
    } else if (task.state == TaskState::kDone) {
      view.fold_s += took->second;
      ++measured[trial];
    }
  }
  for (size_t t = 0; t < in.trials.size(); ++t) {
    if (measured[t] > 0) in.trials[t].fold_s /= measured[t];
  }
  in.idle = SeenOf(entry).idle;
  if (measured[0] == 0) {
    const FoldCost& cost = TypicalFold(entry);
    in.trials[0].fold_s =
        cost.known() ? cost.overhead_s + cost.predict_s +
                           std::min(job.plans.back().epochs, UsualEpochs(job.spec)) * cost.epoch_s
                     : 0;
  }
  if (job.prediction) {
    for (const Member& member : job.prediction->members) {
      const auto trial = static_cast<size_t>(member.trial);
      if (trial < in.trials.size()) in.trials[trial].answers = true;
    }
  }
  return in;
}

// Folds of trial 0 that wait, or may come back as long as others of them train.
bool ControlCore::Impl::FirstTrialNeedsMore(const JobEntry& entry) const {
  const Job& job = entry.view();
  if (FoldsWait(job)) return true;
  return !job.plans.empty() && job.plans.back().folds < job.spec.folds &&
         std::any_of(job.tasks.begin() + 1, job.tasks.end(),
                     [](const Task& task) {
                       return !IsExtra(task) && task.state == TaskState::kRunning;
                     }) &&
         CutFoldsHaveTime(entry);
}

// Whether B9 may still bring back a fold that was cut: with the fewest epochs that are of use, in
// the share of the rest that a Plan may fill. Otherwise a slot that is idle is for other trials.
bool ControlCore::Impl::CutFoldsHaveTime(const JobEntry& entry) const {
  const Job& job = entry.view();
  if (job.spec.trials.size() < 2) return true;
  if (entry.pace.stopping) return false;
  const FoldCost cost = CostOfShare(TypicalFold(entry), RowsOf(job));
  if (!WindowOf(entry).bounded() || !cost.known()) return true;
  const int epochs = std::min(job.plans.back().epochs, UsefulEpochs(job.spec.epochs));
  const double fold_s = cost.overhead_s + epochs * cost.epoch_s + StopSeconds(cost);
  const double left_s = absl::ToDoubleSeconds(TrainEndOf(entry) - now_) + StopSeconds(cost);
  return fold_s <= job.spec.shares.plan * left_s;
}

Task ControlCore::Impl::OneEpoch() {
  Task task;
  task.epochs_planned = task.trial = 1;
  return task;
}

void ControlCore::Impl::StartTrials(JobEntry& entry) {
  const Job& job = entry.view();
  const bool awaited = std::exchange(entry.awaits_proposal, false);
  if (job.spec.trials.size() < 2 || job.plans.empty() || StopsTraining(job) || AwaitsReuse(entry)) {
    return;
  }
  if (FirstTrialNeedsMore(entry)) return MakeRoomForFolds(entry);
  const TrialsSeen seen = SeenOf(entry);
  if (seen.idle == 0 || (entry.trials_seen == seen && !awaited)) return;
  if (now_ > StartRuleOf(entry).Latest(OneEpoch())) return;
  const TrialsInput in = TrialsOf(entry);
  // Before a fold of trial 0 was measured, nothing tells what others take.
  const std::vector<TrialFold>& first = in.trials[0].folds;
  const bool trains = std::any_of(first.begin(), first.end(), [](const TrialFold& fold) {
    return fold.state == TrialFold::kBusy;
  });
  if (trains && in.trials[0].fold_s <= 0) return;
  const int planned = in.searches ? TrialsThatFit(in) : 0;
  if (in.searches && !AsksClients(job.spec.search)) NoteFewerTrials(entry, in, planned);
  const TrialsOutput out = ChooseTrials(in);
  for (const int trial : out.worse) {
    const std::string name = NameOf(job.spec.trials[static_cast<size_t>(trial)]);
    const std::vector<TrialFold>& folds = in.trials[static_cast<size_t>(trial)].folds;
    const bool failed = std::any_of(folds.begin(), folds.end(), [](const TrialFold& fold) {
      return fold.state == TrialFold::kFailed;
    });
    DecideOnce(entry, {TrialNote::kWorse, trial},
               failed ? absl::StrCat(name, " failed on a fold")
                      : absl::StrCat(job.spec.metric, " of ", name,
                                     " is clearly worse than the best on the same folds"),
               absl::StrCat("trial ", trial, " on all folds"));
  }
  bool started = false, undrawn = false;
  for (const NextFold& next : out.start) {
    if (in.searches && !HasSettings(entry, next.trial, in, planned)) {
      undrawn = true;
      continue;
    }
    const int index = FindOrAddTask(entry, next.fold, next.trial, 0);
    Task& task = EditDurably(entry).tasks[static_cast<size_t>(index)];
    task.state = TaskState::kPending;
    task.message.clear();
    task.epochs_planned = EpochsOf(job.spec, next.trial);
    started = true;
  }
  if (!started) {
    entry.trials_seen = seen;
    entry.awaits_proposal = undrawn && !DrawsItself(entry);
    if (!entry.awaits_proposal) return NoteEndOfTrials(entry, in, out);
    return DecideOnce(entry, {TrialNote::kAwaitsProposal},
                      absl::StrCat(Text(now_ - ClockStart(job)),
                                   " used, and no trial is proposed that could begin"),
                      "more trials as long as there is time");
  }
  DecideOnce(entry, {TrialNote::kBegun},
             absl::StrCat(Text(now_ - ClockStart(job)),
                          " used, and no fold of the first trial can "
                          "use more; a fold of it took ",
                          Text(absl::Seconds(in.trials[0].fold_s))),
             absl::StrCat("models of ", NameOf(job.spec.trials[0])));
}

// A Job whose gangs have nothing to do before its time is over says why, also while others train.
void ControlCore::Impl::NoteEndOfTrials(JobEntry& entry, const TrialsInput& in,
                                        const TrialsOutput& out) {
  if (out.no_gain) {
    DecideOnce(entry, {TrialNote::kNoGain},
               absl::StrCat(kTrialsWithoutGain, " trials in a row gained no weight in the answer"),
               "more trials as long as there is time");
  }
  if (out.no_gain || !std::isfinite(in.left_s)) return;
  const bool settled = AllSettled(entry.view());
  // Where folds were chosen, but none could start, no other settings are left to draw.
  if (out.all_begun || !out.start.empty() || (settled && out.least_s == 0)) {
    DecideOnce(entry, {TrialNote::kNoGain},
               absl::StrCat("all ", in.trials.size(),
                            settled ? " trials were tried" : " trials have begun"),
               "more trials as long as there is time");
  } else if (out.least_s > 0) {
    DecideOnce(entry, {TrialNote::kNoneFits},
               absl::StrCat(Text(absl::Seconds(std::max(0.0, in.left_s))),
                            " are left to train in, and a useful part of a further model takes ",
                            Text(absl::Seconds(out.least_s))),
               "more trials as long as there is time");
  }
}

// Draws the settings of a trial that begins; false: there are no others to try.
bool ControlCore::Impl::HasSettings(JobEntry& entry, int trial, const TrialsInput& in,
                                    int planned) {
  const auto at = static_cast<size_t>(trial);
  if (entry.view().spec.trials[at].settings != nullptr) return true;
  if (!DrawsItself(entry)) return false;
  auto settings = DrawNext(entry.view().spec, trial, in, planned);
  if (settings == nullptr) return false;
  TakeSettings(std::move(settings), EditDurably(entry).spec.trials[at]);
  const Search& search = entry.view().spec.search;
  if (AsksClients(search)) {
    DecideOnce(entry, {TrialNote::kDrawsItself},
               absl::StrCat("no trial was proposed for ", Text(search.wait)),
               "trials that a client proposes");
  }
  return true;
}

// Before further trials begin, what the first one took tells how many there will be.
void ControlCore::Impl::NoteFewerTrials(JobEntry& entry, const TrialsInput& in, int planned) {
  const size_t asked = in.trials.size();
  const std::vector<Task>& tasks = entry.view().tasks;
  const bool begun =
      std::any_of(tasks.begin(), tasks.end(), [](const Task& task) { return task.trial > 0; });
  if (begun || static_cast<size_t>(planned) == asked) return;
  DecideOnce(
      entry, {TrialNote::kFewer, planned},
      absl::StrCat("a fold of the first trial takes ", Text(absl::Seconds(in.trials[0].fold_s)),
                   ", and ", Text(absl::Seconds(std::max(0.0, in.left_s))), " are left"),
      absl::StrCat(asked, " trials"));
}

// A Decision that a Job has once, also after a restart.
void ControlCore::Impl::DecideOnce(JobEntry& entry, const TrialNote& note, std::string cause,
                                   std::string from) {
  for (const Decision& decision : entry.view().decisions) {
    if (decision.trial_note == note) return;
  }
  Decision decision;
  decision.rule = DecisionRule::kB9;
  decision.cause = std::move(cause);
  decision.from = std::move(from);
  decision.to = TrialNoteText(note);
  decision.trial_note = note;
  AddDecision(entry, std::move(decision));
}

// A trial of a network or of a program stops within a fold whose metric is not among the best so
// far. Trees learn at rates of their own, so as many rounds tell little about them.
void ControlCore::Impl::StopAtRung(LiveAttempt& live, const facts::Epoch& fact) {
  JobEntry& entry = *live.job;
  const Job& job = entry.view();
  const Task& task = job.tasks[static_cast<size_t>(live.task)];
  if (job.spec.search.method.empty() || !HasRungs(job.spec.search) || task.seed > 0 ||
      IsTrees(KindOf(job.spec, task.trial)) || std::isnan(fact.best_metric)) {
    return;
  }
  const auto place = entry.rungs.Take(
      {task.trial, task.fold, fact.epoch, EpochsOf(job.spec, task.trial), fact.best_metric},
      job.spec.higher_is_better);
  if (!place.has_value() || task.trial == 0 || live.stop_sent) return;
  const std::string name = NameOf(job.spec.trials[static_cast<size_t>(task.trial)]);
  const std::string metric = KindOf(job.spec, task.trial) == kCommandKind
                                 ? absl::StrCat("the metric that ", name, " reports")
                                 : absl::StrCat(job.spec.metric, " of ", name);
  DecideOnce(entry, {TrialNote::kWorse, task.trial},
             absl::StrCat("after ", place->epochs, " epochs of ", TaskName(task), " ", metric,
                          " has place ", place->place, " of ", place->trials),
             absl::StrCat("trial ", task.trial, " to its last epoch"));
  SendStop(live, StopMode::kPredict, StopReason::kTime,
           "other trials are better after as many epochs");
}

// A fold of trial 0 that waits takes the slots of the model of another trial that began last.
void ControlCore::Impl::MakeRoomForFolds(JobEntry& entry) {
  const Job& job = entry.view();
  int running = 0, ready = 0;
  LiveAttempt* last = nullptr;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    running += task.state == TaskState::kRunning;
    ready += !IsExtra(task) && task.state == TaskState::kPending && task.not_before <= now_;
    if (task.trial == 0 || task.state != TaskState::kRunning) continue;
    LiveAttempt* const live = OpenAttempt(task);
    if (live == nullptr || !workers_[live->lead()].attached) continue;
    if (live->stop_sent) return;  // its slots will be free
    last = live;
  }
  if (ready == 0 || last == nullptr || running < Gangs(entry)) return;
  SendStop(*last, StopMode::kPredict, StopReason::kTime, "a fold of the first trial waits");
}

}  // namespace traind
