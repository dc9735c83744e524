// Handles what clients ask for, and answers them.
#include <absl/strings/str_cat.h>

#include "server/control/control_core_impl.h"
#include "server/domain/first_tasks.h"
#include "server/domain/names.h"
#include "server/plan/planner.h"

namespace traind {

namespace {

std::string TextOf(const Job& job, absl::Time deadline) {
  if (deadline == absl::InfiniteFuture()) return "no deadline";
  return absl::StrCat(Text(deadline - ClockStart(job)), " after ",
                      job.waited > absl::ZeroDuration() ? "its start" : "acceptance");
}

}  // namespace

bool ControlCore::Impl::KnowsRequest(const Job& job) const {
  const RequestKey key(job.owner, job.request_id);
  const auto old = ended_.find(key);
  return !job.request_id.empty() &&
         (requests_.contains(key) || (old != ended_.end() && !deleted_.contains(old->second->id)));
}

bool ControlCore::Impl::AnswerKnownRequest(const Submit& event) {
  const Job& job = event.job;
  if (job.request_id.empty()) return false;
  const RequestKey key(job.owner, job.request_id);
  JobEntry* entry = nullptr;
  const Job* existing = nullptr;
  std::shared_ptr<const Job> ended;
  if (const auto it = requests_.find(key); it != requests_.end()) {
    entry = it->second;
    existing = &entry->view();
  } else if (const auto old = ended_.find(key);
             old != ended_.end() && !deleted_.contains(old->second->id)) {
    ended = old->second;
    existing = ended.get();
  } else {
    return false;
  }
  absl::Status status;
  if (existing->spec_sha256 != job.spec_sha256) {
    status =
        absl::AlreadyExistsError(absl::StrCat("request_id ", job.request_id, " belongs to job ",
                                              existing->id, ", which has another spec"));
  }
  Answer(event.call, std::move(status), entry);
  turn_.replies.back().job = std::move(ended);
  return true;
}

void ControlCore::Impl::CheckBatch(const std::vector<Event>& events, size_t begin) {
  const auto* const first = std::get_if<Submit>(&events[begin]);
  if (first == nullptr || first->batch == 0 || first->batch == batch_.first) return;
  batch_ = {first->batch, absl::OkStatus()};
  std::map<std::string, int> more;  // by owner
  std::set<RequestKey> requests;
  for (size_t i = begin; i < events.size(); ++i) {
    const auto* const submit = std::get_if<Submit>(&events[i]);
    if (submit == nullptr || submit->batch != first->batch) break;
    const Job& job = submit->job;
    const bool again =
        !job.request_id.empty() && !requests.insert({job.owner, job.request_id}).second;
    if (!again && !KnowsRequest(job)) ++more[job.owner];
  }
  for (const auto& [owner, count] : more) {
    if (batch_.second.ok()) batch_.second = limits_.CheckJobs(owner, count);
  }
}

absl::Status ControlCore::Impl::CheckLimitsOf(const Submit& event) const {
  const Job& job = event.job;
  if (jobs_.size() >= static_cast<size_t>(options_.max_active_jobs)) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue is full: ", jobs_.size(), " active jobs"));
  }
  const absl::Status jobs = event.batch != 0 ? batch_.second : limits_.CheckJobs(job.owner, 1);
  if (!jobs.ok() || TrainsNothing(job)) return jobs;
  return limits_.CheckGang(job.spec.slots);
}

void ControlCore::Impl::Handle(Submit& event) {
  if (AnswerKnownRequest(event)) return;
  Job& job = event.job;
  if (shutting_down_) {
    return Answer(event.call, absl::UnavailableError("traind is shutting down"), nullptr);
  }
  if (const absl::Status limits = CheckLimitsOf(event); !limits.ok()) {
    return Answer(event.call, limits, nullptr);
  }
  if (const absl::Status after = SettleAfter(job); !after.ok()) {
    return Answer(event.call, after, nullptr);
  }
  const absl::Time deadline = DeadlineOf(job.spec, now_);
  if (deadline <= now_) {
    return Answer(
        event.call,
        absl::InvalidArgumentError(absl::StrCat("budget.deadline: ", absl::FormatTime(deadline),
                                                " is past; it is ", absl::FormatTime(now_))),
        nullptr);
  }
  if (const absl::Status sources = CheckSources(job); !sources.ok()) {
    return Answer(event.call, sources, nullptr);
  }
  // Quotas are of slots; who trains nothing takes none.
  if (const absl::Status quota = TrainsNothing(job) ? absl::OkStatus() : CheckQuotasOf(job);
      !quota.ok()) {
    return Answer(event.call, quota, nullptr);
  }
  std::string id = job.id;
  for (int digit = 2; jobs_.contains(id); ++digit) id = absl::StrCat(job.id, "-", digit);
  job.id = std::move(id);
  job.state = JobState::kQueued;
  job.accepted_at = now_;
  // A budget counts from the end of the last Job that it waits for.
  job.deadline = job.after.empty() ? deadline : job.spec.deadline.value_or(absl::InfiniteFuture());
  job.version = 0;
  const TaskKind first = job.tasks.empty() ? TaskKind::kPrepare : job.tasks[0].kind;
  job.tasks = FirstTasks(job.spec, first);
  AddEntry(std::make_shared<Job>(std::move(job)));
  JobEntry& entry = *touched_.back();
  EditDurably(entry);
  Log(entry, "state", "QUEUED");
  NoteQuotas(entry);
  if (!TrainsNothing(entry.view()) && entry.view().after.empty()) NoteLateStart(entry);
  Answer(event.call, absl::OkStatus(), &entry, true);
}

// The Job of a call; null: there is none to change, and the caller has been told.
absl::Status ControlCore::Impl::OverAlready(const Job& job) {
  return absl::FailedPreconditionError(
      absl::StrCat("job ", job.id, " is ", Name(job.state), " already"));
}

JobEntry* ControlCore::Impl::FindLive(CallId call, const std::string& job, bool cancels) {
  JobEntry* entry = Find(job);
  if (!entry) {
    // Whoever calls has just seen it.
    Answer(call, absl::FailedPreconditionError(absl::StrCat("job ", job, " is over already")),
           nullptr);
    return nullptr;
  }
  if (IsTerminal(entry->view().state)) {
    Answer(call, OverAlready(entry->view()), entry);
    return nullptr;
  }
  if (entry->view().cancel_requested && !cancels) {
    Answer(call, absl::FailedPreconditionError(absl::StrCat("job ", job, " is being cancelled")),
           entry);
    return nullptr;
  }
  return entry;
}

void ControlCore::Impl::Handle(Finish& event) {
  JobEntry* entry = FindLive(event.call, event.job);
  if (!entry) return;
  if (!entry->view().after.empty()) {
    return Answer(event.call,
                  absl::FailedPreconditionError(
                      absl::StrCat("job ", event.job, " waits for ", AfterText(entry->view()),
                                   "; it has nothing to predict with yet. `cancel` ends it")),
                  entry);
  }
  if (!entry->view().finish_requested) {
    Job& job = EditDurably(*entry);
    job.finish_requested = true;
    entry->finish_at = now_;
    if (TrainsNothing(job)) {
      if (LiveAttempt* live = OpenAttempt(job.tasks[0])) {
        SendStop(*live, StopMode::kPredict, StopReason::kUserFinished, "the user asked to finish");
      } else {
        FinishInference(*entry);
      }
      return Answer(event.call, absl::OkStatus(), entry);
    }
    std::string from = absl::StrCat("train ", job.spec.folds, " folds");
    for (size_t i = 1; i < job.tasks.size(); ++i) {
      if (job.tasks[i].state == TaskState::kPending) {
        SettleFold(*entry, static_cast<int>(i), "the user asked to finish");
      }
    }
    Decide(*entry, DecisionRule::kUser, "finish was asked for", std::move(from),
           "stop training now and predict with what there is");
  }
  Answer(event.call, absl::OkStatus(), entry);
}

void ControlCore::Impl::Handle(Cancel& event) {
  JobEntry* entry = FindLive(event.call, event.job, /*cancels=*/true);
  if (!entry) return;
  EditDurably(*entry).cancel_requested = true;
  entry->cancels.push_back(event.call);
  AdvanceCancelled(*entry);
}

// Predictions made so far stay. So the end waits until one that is being written is there, and
// until the disk has told whether one stands of which nothing was heard.
void ControlCore::Impl::AdvanceCancelled(JobEntry& entry) {
  const Job& job = entry.view();
  const bool publishes = job.spec.has_test && !RunsProgram(job.spec) && !TrainsNothing(job);
  if (entry.publication.running || (publishes && !job.attempts.empty())) {
    AskDisk(entry);
    const bool told = entry.publication.disk_told && !entry.publication.running;
    if (!told && now_ < entry.publication.disk_by) return;
  }
  End(entry, JobState::kCancelled, JobEndReason::kCancelledByUser, "cancelled by the user");
}

void ControlCore::Impl::Handle(Pause& event) {
  JobEntry* entry = FindLive(event.call, event.job);
  if (!entry) return;
  const Job& job = entry->view();
  if (TrainsNothing(job)) {
    return Answer(event.call,
                  absl::FailedPreconditionError(
                      absl::StrCat("job ", event.job, " trains nothing; it cannot be paused")),
                  entry);
  }
  if (job.state == JobState::kFinalizing || StopsTraining(job)) {
    return Answer(event.call,
                  absl::FailedPreconditionError(absl::StrCat(
                      "job ", event.job, " is making its last prediction; it cannot be paused")),
                  entry);
  }
  if (job.state != JobState::kPaused) {
    Decide(*entry, DecisionRule::kUser, "pause was asked for", std::string(Name(job.state)),
           job.deadline == absl::InfiniteFuture()
               ? "checkpoint, then wait for resume"
               : "checkpoint, then wait for resume; the clock goes on");
    SetState(*entry, JobState::kPaused);
  }
  Answer(event.call, absl::OkStatus(), entry);
}

void ControlCore::Impl::Handle(Resume& event) {
  JobEntry* entry = FindLive(event.call, event.job);
  if (!entry) return;
  if (entry->view().state == JobState::kPaused) {
    Decide(*entry, DecisionRule::kUser, "resume was asked for", "PAUSED",
           "train on with the time that is left");
    SetState(*entry, JobState::kQueued);
    entry->pace.replan_wanted = true;
  }
  Answer(event.call, absl::OkStatus(), entry);
}

absl::Status ControlCore::Impl::CheckUpdate(const JobEntry& entry, const Update& event) const {
  const Job& job = entry.view();
  if (!event.budget && !event.deadline) return absl::OkStatus();
  if (event.budget && !job.after.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("budget: job ", job.id, " waits for ", AfterText(job),
                     "; its time begins then, and can be changed then"));
  }
  if (job.state == JobState::kFinalizing || StopsTraining(job)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job.id, " is making its last prediction; its time cannot be changed. ",
                     "For more, submit a new job"));
  }
  const absl::Time deadline = UpdatedDeadline(job, event);
  if (deadline - FinalizeLeadOf(entry) > now_) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(event.budget ? "budget" : "deadline", ": ", absl::FormatTime(deadline),
                   deadline <= now_ ? " is past; it is " : " leaves no time to predict; it is ",
                   absl::FormatTime(now_)));
}

absl::Time ControlCore::Impl::UpdatedDeadline(const Job& job, const Update& event) {
  absl::Time deadline = event.deadline.value_or(absl::InfiniteFuture());
  if (event.budget) deadline = std::min(deadline, ClockStart(job) + *event.budget);
  return deadline;
}

void ControlCore::Impl::Handle(Update& event) {
  JobEntry* entry = FindLive(event.call, event.job);
  if (!entry) return;
  const absl::Status wrong = CheckUpdate(*entry, event);
  if (!wrong.ok()) return Answer(event.call, wrong, entry);
  // What is asked for a second time changes nothing.
  std::map<std::string, std::string> labels = entry->view().spec.labels;
  for (const std::string& key : event.remove_labels) labels.erase(key);
  for (auto& [key, value] : event.set_labels) labels[key] = value;
  if (labels != entry->view().spec.labels) EditDurably(*entry).spec.labels = std::move(labels);
  if (event.priority && *event.priority != entry->view().spec.priority) {
    Job& job = EditDurably(*entry);
    Decide(*entry, DecisionRule::kUser, "another priority was asked for",
           absl::StrCat(job.spec.priority), absl::StrCat(*event.priority));
    job.spec.priority = *event.priority;
    LeaveQueues(*entry);
  }
  if (event.budget || event.deadline) {
    MoveDeadline(*entry, UpdatedDeadline(entry->view(), event));
  }
  Answer(event.call, absl::OkStatus(), entry);
}

void ControlCore::Impl::MoveDeadline(JobEntry& entry, absl::Time deadline) {
  if (deadline == entry.view().deadline) return;
  Job& job = EditDurably(entry);
  Decide(entry, DecisionRule::kUser, "another deadline was asked for", TextOf(job, job.deadline),
         TextOf(job, deadline));
  LeaveQueues(entry);
  const bool later = deadline > job.deadline;
  job.deadline = deadline;
  entry.pace.replan_wanted = true;
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    Task& task = job.tasks[i];
    if (LiveAttempt* live = OpenAttempt(task)) TellDeadline(entry, *live);
    // Tasks that were not begun for lack of time may run now; the Plan's own cuts come back by B9.
    const bool in_plan =
        !IsExtra(task) && (job.plans.empty() || task.fold < job.plans.back().folds);
    if (later && task.state == TaskState::kDropped && task.attempts == 0 && in_plan) {
      task.state = TaskState::kPending;
      task.message.clear();
    }
  }
  if (later) entry.pace.stopping = entry.pace.stop_checked = false;
}

void ControlCore::Impl::TellDeadline(JobEntry& entry, LiveAttempt& live) {
  if (live.stop_sent || !workers_[live.lead()].attached) return;
  const Job& job = entry.view();
  ReplanCommand command;
  command.deadline = job.deadline;
  command.plan_cut = PlanCut(job);
  if (live.kind == TaskKind::kTrain) {
    command.epochs = live.epochs;
    command.row_share = live.row_share;
    command.stop_at = live.stop_at = StopOf(entry, &live);
  }
  SendReplan(live, std::move(command));
}

// Its place goes by deadline and priority; the end of the turn finds the new one.
void ControlCore::Impl::LeaveQueues(JobEntry& entry) {
  if (entry.prepare_key) prepare_queue_.erase(*entry.prepare_key);
  LeaveTrainQueue(entry);
  entry.prepare_key.reset();
  LeaveTraining(entry);
  comebacks_.erase(entry.sequence);
}

void ControlCore::Impl::Handle(ShutdownRequested&) {
  shutting_down_ = true;
  // Workers of a cluster keep their deadlines by themselves until the next traind takes them over.
  if (!options_.standalone) return;
  for (auto& [id, live] : attempts_) {
    if (live.open)
      SendStop(live, StopMode::kDrop, StopReason::kShutdown, "traind is shutting down");
  }
  for (auto& [id, worker] : workers_) {
    if (worker.attached) turn_.shutdowns.push_back({id});
  }
}

void ControlCore::Impl::Answer(CallId call, absl::Status status, JobEntry* entry, bool created) {
  // A client that is told of a Job can rely on it, even where another call of this turn has made
  // the Job.
  if (entry) turn_.mutations.durable = true;
  turn_.replies.push_back({call, std::move(status), nullptr, created, {}});
  reply_owners_.push_back(entry);
  if (entry) Touch(*entry);
}

void ControlCore::Impl::ForgetEnded() {
  while (!ended_order_.empty() && (now_ - std::get<absl::Time>(ended_order_.front()) > kKeepEnded ||
                                   ended_order_.size() > kKeepEndedMost)) {
    ended_.erase(std::get<RequestKey>(ended_order_.front()));
    ended_states_.erase(std::get<std::string>(ended_order_.front()));
    ended_order_.pop_front();
  }
}

}  // namespace traind
