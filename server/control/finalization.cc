// From the folds' predictions to the Job's: refreshed as folds are committed, final
// when training is over or the time is, and never later than the deadline.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <set>
#include <utility>

#include "server/control/control_core_impl.h"
#include "server/control/end_reason.h"
#include "server/domain/names.h"

namespace traind {
namespace {

// At most so many models are named in a message.
constexpr size_t kNamed = 5;
// Reading the Prediction that stands takes less.
constexpr absl::Duration kDiskWait = absl::Seconds(2);

bool Same(const PublishedPrediction& a, const PublishedPrediction& b) {
  return a.number == b.number && a.sha256 == b.sha256 && a.quality == b.quality &&
         a.oof_score == b.oof_score && a.test_score == b.test_score &&
         a.floor_score == b.floor_score && a.comparable == b.comparable &&
         a.members.size() == b.members.size() && a.left_out == b.left_out && a.worse == b.worse;
}

std::string CountText(size_t count, const char* noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

std::string AnswerText(size_t count, const char* noun) {
  return absl::StrCat(CountText(count, noun), count == 1 ? " answers" : " answer");
}

std::string NumberText(const std::optional<double>& number) {
  return number ? absl::StrCat(*number) : "no score";
}

}  // namespace

void ControlCore::Impl::MaybePublish(JobEntry& entry, bool final) {
  const Job& job = entry.view();
  if (entry.publication.running || now_ < entry.publication.not_before) return;
  if (!final && !entry.publication.wanted) return;
  if (job.table.table.empty() || RunsProgram(job.spec)) return;
  PublishCommand command;
  command.job = job.id;
  command.final = final;
  PublishRequest& request = command.request;
  request.job = job.id;
  request.table = job.table.table;
  request.metric = job.spec.metric;
  request.spec_folds = job.spec.folds;
  request.plan_cut = PlanCut(job);
  for (const Task& task : job.tasks) {
    if (task.member) request.members.push_back(*task.member);
  }
  if (request.members.empty() && job.floor_model.empty()) return;
  turn_.publishes.push_back(std::move(command));
  entry.publication.running = true;
  entry.publication.wanted = false;
  entry.publication.final_running = final;
  entry.publication.sent_at = now_;
}

void ControlCore::Impl::Handle(Published& event) {
  JobEntry* found = Find(event.job);
  if (!found || IsTerminal(found->view().state)) {
    // A Worker that was cut off has published for a Job that is over, and what it wrote stands.
    turn_.ended.push_back(event.job);
    return;
  }
  JobEntry& entry = *found;
  Touch(entry);
  const bool answer = entry.publication.running && !event.unasked;
  if (!answer && !event.unasked) entry.publication.disk_told = true;
  if (answer) {
    entry.publication.running = false;
    entry.publication.cost = std::max(entry.publication.cost, now_ - entry.publication.sent_at);
    EditLive(entry).publish_s += absl::ToDoubleSeconds(now_ - entry.publication.sent_at);
  }
  if (event.result.ok()) {
    Adopt(entry, *std::move(event.result));
    if (!answer) return;
    entry.publication.failures = 0;
    entry.publication.error = absl::OkStatus();
    entry.publication.final_done = entry.publication.final_running && !entry.publication.wanted;
    return;
  }
  if (!answer) return;
  entry.publication.error = event.result.status();
  entry.publication.wanted = true;
  const int doublings = std::min(entry.publication.failures++, 5);
  entry.publication.not_before = now_ + absl::Milliseconds(int64_t{50} << doublings);
  Log(entry, "publish_failed", std::string(entry.publication.error.message()));
}

void ControlCore::Impl::Adopt(JobEntry& entry, PublishedPrediction prediction) {
  const Job& job = entry.view();
  if (job.prediction &&
      (prediction.number < job.prediction->number || Same(prediction, *job.prediction))) {
    return;
  }
  Log(entry, "prediction",
      absl::StrCat(prediction.number, " ", QualityName(prediction.quality), ", ",
                   prediction.members.size(), " models"));
  EditDurably(entry).prediction = std::move(prediction);
  for (size_t i = 1; i < entry.view().tasks.size(); ++i) {
    const int index = static_cast<int>(i);
    const TaskState state = entry.view().tasks[i].state;
    if (state == TaskState::kRunning) continue;  // its Worker will tell
    TakePublishedMember(entry, index);
    const Task& task = entry.view().tasks[i];
    const bool complete = task.member && task.member->complete;
    if (state == TaskState::kPending ? complete : task.member && SettledState(task) != state) {
      SettleFold(entry, index, "");
    }
  }
}

// Whether the Prediction that is known was made from all that there is.
bool ControlCore::Impl::PredictionIsCurrent(const Job& job) {
  if (RunsProgram(job.spec)) return true;
  if (!job.prediction) {
    return job.floor_model.empty() &&
           std::none_of(job.tasks.begin(), job.tasks.end(), [](const Task& t) { return t.member; });
  }
  const PublishedPrediction& known = *job.prediction;
  return std::all_of(job.tasks.begin(), job.tasks.end(), [&known](const Task& task) {
    if (!task.member) return true;
    if (std::count(known.left_out.begin(), known.left_out.end(), task.fold) > 0) return true;
    return std::any_of(known.members.begin(), known.members.end(), [&task](const Member& m) {
      return m.attempt == task.member->attempt && m.oof_sha256 == task.member->oof_sha256;
    });
  });
}

// A Worker out of reach may have made a Prediction by itself.
void ControlCore::Impl::AskDisk(JobEntry& entry) {
  if (entry.publication.asked_disk) return;
  entry.publication.asked_disk = true;
  entry.publication.disk_by = now_ + kDiskWait;
  PublishCommand command;
  command.job = entry.view().id;
  command.request.job = command.job;
  turn_.publishes.push_back(std::move(command));
}

// The floor may still come, and nothing else can answer.
bool ControlCore::Impl::FloorPending(const JobEntry& entry) const {
  const Job& job = entry.view();
  if (!job.floor_model.empty() || IsTerminal(job.tasks[0].state)) return false;
  if (HasAnswer(job)) return false;
  for (const Task& task : job.tasks) {
    if (task.member) return false;
  }
  return job.spec.has_test;
}

// A fold that has been stopped, and is about to answer.
bool ControlCore::Impl::AwaitsAnswers(const JobEntry& entry) const {
  for (const Task& task : entry.view().tasks) {
    if (task.kind != TaskKind::kTrain || task.state != TaskState::kRunning) continue;
    const auto live = attempts_.find(task.attempt);
    if (live == attempts_.end() || !live->second.open) continue;
    const bool stopped = live->second.stop_sent || now_ >= live->second.stop_at;
    const auto worker = workers_.find(live->second.lead());
    if (stopped && worker != workers_.end() && worker->second.attached) return true;
  }
  return false;
}

// Until then the last Prediction waits for such folds. What stands is not in danger, because the
// Job ends in time with that.
absl::Time ControlCore::Impl::LastCallOf(const JobEntry& entry) const {
  constexpr double kLongest = 1.5;  // times the longest publication seen
  const absl::Time due = FinalizeAt(entry);
  if (entry.publication.cost == absl::ZeroDuration()) return due;
  return std::max(due, SettleAt(entry) - kLongest * entry.publication.cost);
}

bool ControlCore::Impl::FinalizingDue(const JobEntry& entry) const {
  const Job& job = entry.view();
  if (now_ >= FinalizeAt(entry)) return !AwaitsAnswers(entry) || now_ >= LastCallOf(entry);
  if (StopsTraining(job) && job.deadline == absl::InfiniteFuture() &&
      now_ >= entry.finish_at + kFinishWait) {
    return true;
  }
  return AllSettled(job) && !AwaitsFloor(job) && !entry.awaits_proposal &&
         !AwaitsEndOfStopped(entry);
}

// B8: folds that nobody has stopped or dropped before, as traind was away or no Worker there.
void ControlCore::Impl::NoteCutOff(JobEntry& entry, const std::vector<int>& folds) {
  if (folds.empty() || StopsTraining(entry.view())) return;
  const Window window = WindowOf(entry);
  Decide(
      entry, DecisionRule::kB8,
      absl::StrCat(Text(std::min(now_, window.deadline) - window.start), " of ",
                   Text(window.length()), " used: the prediction is due"),
      absl::StrCat(folds.size() == 1 ? "fold " : "folds ", absl::StrJoin(folds, ", "), " not done"),
      "what there is answers");
}

// B8: folds that ended before they had all epochs, for a cause that no Decision has told: they had
// their share of the time, or their Worker stopped them while traind was away.
void ControlCore::Impl::NoteEndedEarly(JobEntry& entry) {
  const Job& job = entry.view();
  if (StopsTraining(job) || job.plans.empty()) return;
  std::set<int64_t> told;  // Attempts
  for (const Decision& decision : job.decisions) {
    if (decision.rule == DecisionRule::kB5 || decision.rule == DecisionRule::kB8) return;
    told.insert(decision.attempts.begin(), decision.attempts.end());
  }
  std::vector<std::string> folds, epochs;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    const bool early = task.state == TaskState::kPartial || task.state == TaskState::kFailed;
    // That a program has failed by itself is the Job's end reason.
    if (ProgramTrains(job.spec) && (!task.member || FailedWithAnAnswer(job, task))) {
      continue;
    }
    if (IsExtra(task) || !early || told.count(task.attempt) > 0) continue;
    folds.push_back(ModelText(task));
    epochs.push_back(absl::StrFormat("%.3g", task.epochs_done));
  }
  if (folds.empty()) return;
  const Window window = WindowOf(entry);
  const std::string named =
      absl::StrCat(folds.size() == 1 ? "fold " : "folds ", absl::StrJoin(folds, ", "));
  Decide(entry, DecisionRule::kB8,
         absl::StrCat("the time of ", named, " was over; ",
                      Text(std::min(now_, window.deadline) - window.start), " used"),
         RunsProgram(job.spec)
             ? absl::StrCat(named, " to the program's own end")
             : absl::StrCat(named, " with ", CountText(job.plans.back().epochs, "epoch")),
         RunsProgram(job.spec) ? "the files that were there are the answer"
                               : absl::StrCat("what there is after ", absl::StrJoin(epochs, ", "),
                                              " epochs answers"));
}

// B8: folds that were done before the deadline but not published by then, as traind was away.
void ControlCore::Impl::NoteUnpublished(JobEntry& entry) {
  const Job& job = entry.view();
  if (!job.prediction || now_ < job.deadline) return;
  std::vector<int> folds;
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (IsExtra(task) || task.state != TaskState::kDone) continue;
    const PublishedPrediction& answer = *job.prediction;
    const auto found = std::find_if(
        answer.members.begin(), answer.members.end(),
        [&task](const Member& member) { return !IsExtra(member) && member.fold == task.fold; });
    const bool left_out = std::count(answer.left_out.begin(), answer.left_out.end(), task.fold) > 0;
    const bool stale = found == answer.members.end() ? !left_out : !found->complete;
    if (task.member && stale) folds.push_back(task.fold);
  }
  if (folds.empty()) return;
  const std::string named =
      absl::StrCat(folds.size() == 1 ? "fold " : "folds ", absl::StrJoin(folds, ", "));
  Decide(entry, DecisionRule::kB8,
         absl::StrCat("the deadline came before the last answers of ", named, " were published"),
         absl::StrCat(named, " with all epochs"), "earlier answers stand");
}

// B9: a Job that was cut ends before its time, and what was cut cannot come back. One with further
// trials tells of them (NoteEndOfTrials).
void ControlCore::Impl::NoteUnusedTime(JobEntry& entry) {
  constexpr double kNotable = 0.1;  // of the window
  const Job& job = entry.view();
  const Window window = WindowOf(entry);
  if (StopsTraining(job) || job.plans.empty() || !window.bounded() || job.spec.trials.size() > 1) {
    return;
  }
  const absl::Duration left = TrainEndOf(entry) - now_;
  if (left < kNotable * window.length()) return;
  const Plan& plan = job.plans.back();
  const std::string time =
      absl::StrCat(Text(left), " of ", Text(window.length()), " are left to train in, ");
  if (plan.folds < job.spec.folds) {
    const FoldCost cost = CostOfShare(TypicalFold(entry), plan.row_share);
    const int epochs = std::min(plan.epochs, UsefulEpochs(job.spec.epochs));
    const absl::Duration fold =
        absl::Seconds(cost.overhead_s + cost.predict_s + epochs * cost.epoch_s);
    if (!cost.known() || fold <= job.spec.shares.plan * left) return;
    Decide(entry, DecisionRule::kB9,
           absl::StrCat(time,
                        absl::StrFormat("of which a plan may take %g %%, and a fold of ",
                                        100 * job.spec.shares.plan),
                        CountText(epochs, "epoch"), " takes ", Text(fold)),
           absl::StrCat(plan.folds, " of ", CountText(job.spec.folds, "fold")),
           "no further fold fits");
  } else if (plan.epochs < job.spec.epochs) {
    const bool all = std::all_of(job.tasks.begin() + 1, job.tasks.end(),
                                 [](const Task& task) { return RanOutOfPatience(task); });
    if (all) return;
    Decide(entry, DecisionRule::kB9,
           absl::StrCat(time, "and no fold trains that could use more epochs"),
           absl::StrCat(plan.epochs, " of ", CountText(job.spec.epochs, "epoch")),
           "no epochs come back");
  }
}

void ControlCore::Impl::EnterFinalizing(JobEntry& entry) {
  const size_t tasks = entry.view().tasks.size();
  std::vector<int> not_done;
  for (size_t i = 1; i < tasks; ++i) {
    const Task& task = entry.view().tasks[i];
    if (IsTerminal(task.state)) continue;
    if (LiveAttempt* live = OpenAttempt(task)) {
      SendStop(*live, StopMode::kAbort, StopReason::kTime, "the prediction is due");
      CloseAttempt(*live, AttemptEndReason::kDeadline, "the prediction was due");
    }
    SettleFold(entry, static_cast<int>(i), task.message.empty() ? "no time left" : task.message);
    const Task& settled = entry.view().tasks[i];
    // Past the deadline its Worker has long stopped it by itself.
    const bool cut_off = !settled.member || now_ < entry.view().deadline;
    if (!IsExtra(settled) && settled.state != TaskState::kDone && cut_off) {
      not_done.push_back(settled.fold);
    }
  }
  NoteCutOff(entry, not_done);
  if (not_done.empty()) NoteUnusedTime(entry);
  SetState(entry, JobState::kFinalizing);
}

// A Prediction that is being written is waited for as long as it counts: it may stand on disk by
// then, and be the Job's first.
absl::Time ControlCore::Impl::ConcludeAt(const JobEntry& entry) const {
  return entry.publication.running ? entry.view().deadline : SettleAt(entry);
}

void ControlCore::Impl::AdvanceFinalizing(JobEntry& entry) {
  const Job& job = entry.view();
  const bool time_is_up = now_ >= ConcludeAt(entry);
  if (time_is_up || entry.publication.final_done) return Conclude(entry);
  if (FloorPending(entry)) {
    const bool waits = job.tasks[0].state == TaskState::kRunning ||
                       job.deadline != absl::InfiniteFuture() || !StopsTraining(job) ||
                       now_ < entry.finish_at + kFinishWait;
    if (!waits || now_ >= FinalizeAt(entry)) AskDisk(entry);
    const bool told = entry.publication.disk_told || now_ >= entry.publication.disk_by;
    if (!waits && told) Conclude(entry);
    return;
  }
  if (entry.publication.failures >= 10 && job.deadline == absl::InfiniteFuture()) {
    return Conclude(entry);
  }
  MaybePublish(entry, true);
  // Nothing to make one from, and nothing to wait for.
  if (!entry.publication.running && now_ >= entry.publication.not_before) Conclude(entry);
}

// B7: tells which folds were trained but do not answer. The causes are those that the publisher
// gave; of a Prediction that was published before a restart of traind they are not known.
void ControlCore::Impl::NoteLeftOut(JobEntry& entry) {
  const Job& job = entry.view();
  if (!job.prediction) return;
  const PublishedPrediction& answer = *job.prediction;
  NoteModelsLeftOut(entry);
  NoteSecondLayer(entry);
  std::set<int> answering, left_out(answer.left_out.begin(), answer.left_out.end());
  for (const Member& member : answer.members) {
    answering.insert(member.fold);
    left_out.erase(member.fold);
  }
  if (left_out.empty()) return;
  const std::string folds =
      absl::StrCat(left_out.size() == 1 ? "fold " : "folds ", absl::StrJoin(left_out, ", "));
  std::string cause = absl::StrCat("the floor (", job.floor_model, ") scores better than ", folds,
                                   ", on the rows that they validate or on those of all folds");
  // The scores are of all of them together.
  if (answer.left_out_floor && left_out.size() == answer.left_out.size()) {
    cause = absl::StrCat(
        job.spec.metric, " on the rows of ", folds, ": ", NumberText(answer.left_out_score),
        left_out.size() == 1 ? " by its models" : " by their models together", ", ",
        NumberText(answer.left_out_floor), " by the floor (", job.floor_model, ")");
  }
  Decide(entry, DecisionRule::kB7, std::move(cause),
         CountText(answering.size() + left_out.size(), "fold"),
         answering.empty() ? "the floor answers" : AnswerText(answering.size(), "fold"));
}

// Tells which extra models were left out because the fold's answers are better without them.
void ControlCore::Impl::NoteModelsLeftOut(JobEntry& entry) {
  const Job& job = entry.view();
  const std::vector<WorseModel>& worse = job.prediction->worse;
  if (worse.empty()) return;
  std::vector<std::string> out;
  for (const WorseModel& model : worse) {
    if (out.size() == kNamed) break;
    out.push_back(absl::StrCat(TaskName(TaskKind::kTrain, model.fold, model.trial, model.seed),
                               " (", model.with, " with it, ", model.without, " without)"));
  }
  const size_t members = job.prediction->members.size(), unnamed = worse.size() - out.size();
  Decide(entry, DecisionRule::kB7,
         absl::StrCat(job.spec.metric, " on the rows that a fold validates is worse with ",
                      absl::StrJoin(out, ", "),
                      unnamed > 0 ? absl::StrCat(" and ", unnamed, " more") : ""),
         CountText(members + worse.size(), "model"), AnswerText(members, "model"));
}

void ControlCore::Impl::NoteSecondLayer(JobEntry& entry) {
  const Job& job = entry.view();
  const PublishedPrediction& answer = *job.prediction;
  if (answer.tuned.powers.empty() || !answer.oof_score || !answer.weighed_score) return;
  DecideOnce(entry, {TrialNote::kLayer},
             absl::StrCat(job.spec.metric, " out of fold is ", *answer.oof_score,
                          " by a second layer and ", *answer.weighed_score, " by weights"),
             "the trials are joined by their weights");
}

void ControlCore::Impl::Conclude(JobEntry& entry) {
  const Job& job = entry.view();
  const bool has_model = std::any_of(job.tasks.begin(), job.tasks.end(),
                                     [](const Task& task) { return task.member.has_value(); });
  Ending ending = EndingOf(job, Gangs(entry) > 0);
  NoteEndedEarly(entry);
  NoteUnpublished(entry);
  NoteLeftOut(entry);
  if (HasAnswer(job) || (!job.spec.has_test && has_model)) {
    return End(entry, JobState::kSucceeded, ending.reason, std::move(ending.message));
  }
  if (!entry.publication.error.ok()) {
    const bool full = entry.publication.error.code() == absl::StatusCode::kResourceExhausted;
    ending.reason = full ? JobEndReason::kStorageFull : JobEndReason::kInternal;
    ending.message =
        absl::StrCat("the prediction could not be written: ", entry.publication.error.message());
  } else if (ending.reason == JobEndReason::kBudgetReached && job.table.table.empty()) {
    ending.message = absl::StrCat("the data could not be read in time",
                                  job.tasks[0].message.empty() ? "" : ": ", job.tasks[0].message);
  } else if (ending.reason == JobEndReason::kBudgetReached && ending.message.empty()) {
    ending.message = WhatWasCut(job);
  }
  End(entry, JobState::kFailed, ending.reason, std::move(ending.message));
}

// When it was final: what stood at the deadline was final then, whenever that is
// noticed.
absl::Time ControlCore::Impl::FinishedAt(const JobEntry& entry) const {
  const Job& job = entry.view();
  if (now_ <= job.deadline) return now_;
  return job.prediction ? std::clamp(job.prediction->at, job.accepted_at, job.deadline)
                        : job.deadline;
}

// A Worker that trained none of its folds was told of no cut. It may have published what others
// trained while traind was away, and nobody makes another Prediction after the deadline.
void ControlCore::Impl::CorrectQuality(JobEntry& entry) {
  const Job& job = entry.view();
  if (!job.prediction || job.prediction->quality != Quality::kFull || !PlanCut(job)) return;
  EditDurably(entry).prediction->quality = Quality::kDegraded;
}

void ControlCore::Impl::End(JobEntry& entry, JobState state, JobEndReason reason,
                            std::string message) {
  const size_t tasks = entry.view().tasks.size();
  const bool cancelled = state == JobState::kCancelled;
  for (size_t i = 0; i < tasks; ++i) {
    const Task& task = entry.view().tasks[i];
    if (LiveAttempt* live = OpenAttempt(task)) {
      // A fold that has said its last word is about to end: its Rank stays warm.
      if (live->saved_last) {
        CloseAttempt(*live, AttemptEndReason::kCompleted, "");
      } else {
        if (cancelled) {
          SendStop(*live, StopMode::kAbort, StopReason::kUserCancelled, "the job was cancelled");
        } else {
          SendStop(*live, StopMode::kAbort, StopReason::kJobOver, "the job is over");
        }
        CloseAttempt(*live,
                     cancelled ? AttemptEndReason::kCancelledByUser : AttemptEndReason::kDeadline,
                     "the job ended");
      }
    }
    if (IsTerminal(entry.view().tasks[i].state)) continue;
    if (i == 0) {
      EditDurably(entry).tasks[0].state =
          entry.view().table.table.empty() ? TaskState::kFailed : TaskState::kDone;
    } else {
      SettleFold(entry, static_cast<int>(i), "the job ended");
    }
  }
  CorrectQuality(entry);
  SetState(entry, state);
  Job& job = EditDurably(entry);
  job.end_reason = reason;
  job.end_message = std::move(message);
  job.finished_at = FinishedAt(entry);
  ended_now_.emplace_back(job.id, state);
  if (!job.attempts.empty()) turn_.ended.push_back(job.id);
  Log(entry, "ended",
      absl::StrCat(Name(state), " ", Name(reason), job.end_message.empty() ? "" : ": ",
                   job.end_message));
  // The Job may have failed while a cancel waited.
  for (const CallId call : std::exchange(entry.cancels, {})) {
    Answer(call, cancelled ? absl::OkStatus() : OverAlready(entry.view()), &entry);
  }
}

}  // namespace traind
