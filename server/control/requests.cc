// What clients ask for, and what they are told.
#include <absl/strings/str_cat.h>

#include "server/control/core_impl.h"
#include "server/domain/names.h"

namespace traind {

bool Core::Impl::AnswerKnownRequest(const Submit& event) {
  const Job& job = event.job;
  if (job.request_id.empty()) return false;
  const RequestKey key(job.owner, job.request_id);
  JobEntry* entry = nullptr;
  const Job* existing = nullptr;
  std::shared_ptr<const Job> ended;
  if (const auto it = requests_.find(key); it != requests_.end()) {
    entry = it->second;
    existing = &entry->view();
  } else if (const auto old = ended_.find(key); old != ended_.end()) {
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

void Core::Impl::Handle(Submit& event) {
  if (AnswerKnownRequest(event)) return;
  Job& job = event.job;
  if (shutting_down_) {
    return Answer(event.call, absl::UnavailableError("traind is shutting down"), nullptr);
  }
  if (jobs_.size() >= static_cast<size_t>(options_.max_active_jobs)) {
    return Answer(event.call,
                  absl::ResourceExhaustedError(
                      absl::StrCat("the queue is full: ", jobs_.size(), " active jobs")),
                  nullptr);
  }
  const absl::Time deadline = DeadlineOf(job.spec, now_);
  if (deadline <= now_) {
    return Answer(
        event.call,
        absl::InvalidArgumentError(absl::StrCat("budget.deadline: ", absl::FormatTime(deadline),
                                                " is past; it is ", absl::FormatTime(now_))),
        nullptr);
  }
  std::string id = job.id;
  for (int digit = 2; jobs_.contains(id); ++digit) id = absl::StrCat(job.id, "-", digit);
  job.id = std::move(id);
  job.state = JobState::kQueued;
  job.accepted_at = now_;
  job.deadline = deadline;
  job.version = 0;
  job.tasks.assign(1 + static_cast<size_t>(job.spec.folds), Task());
  job.tasks[0].kind = TaskKind::kPrepare;
  for (int fold = 0; fold < job.spec.folds; ++fold) {
    job.tasks[1 + fold].fold = fold;
    job.tasks[1 + fold].epochs_planned = job.spec.epochs;
  }
  AddEntry(std::make_shared<Job>(std::move(job)));
  JobEntry& entry = *touched_.back();
  EditDurably(entry);
  Log(entry, "state", "QUEUED");
  Answer(event.call, absl::OkStatus(), &entry, true);
}

void Core::Impl::Handle(Finish& event) {
  JobEntry* entry = Find(event.job);
  if (!entry) {
    return Answer(event.call, absl::NotFoundError(absl::StrCat("no active job ", event.job)),
                  nullptr);
  }
  if (IsTerminal(entry->view().state)) {
    return Answer(event.call,
                  absl::FailedPreconditionError(absl::StrCat(
                      "job ", event.job, " is ", Name(entry->view().state), " already")),
                  entry);
  }
  if (!entry->view().finish_requested) {
    Job& job = EditDurably(*entry);
    job.finish_requested = true;
    entry->finish_at = now_;
    std::string from = absl::StrCat("train ", job.spec.folds, " folds");
    for (size_t i = 1; i < job.tasks.size(); ++i) {
      if (job.tasks[i].state == TaskState::kPending) {
        SettleFold(*entry, static_cast<int>(i), "the user asked to finish");
      }
    }
    Decide(*entry, "user", "finish was asked for", std::move(from),
           "stop training now and predict with what there is");
  }
  Answer(event.call, absl::OkStatus(), entry);
}

void Core::Impl::Handle(Cancel& event) {
  JobEntry* entry = Find(event.job);
  if (!entry) {
    return Answer(event.call, absl::NotFoundError(absl::StrCat("no active job ", event.job)),
                  nullptr);
  }
  if (IsTerminal(entry->view().state)) {
    return Answer(event.call,
                  absl::FailedPreconditionError(absl::StrCat(
                      "job ", event.job, " is ", Name(entry->view().state), " already")),
                  entry);
  }
  EditDurably(*entry).cancel_requested = true;
  End(*entry, JobState::kCancelled, JobEndReason::kCancelledByUser, "cancelled by the user");
  Answer(event.call, absl::OkStatus(), entry);
}

void Core::Impl::Handle(ShutdownRequested&) {
  shutting_down_ = true;
  for (auto& [id, live] : attempts_) {
    if (live.open) SendStop(live, StopMode::kDrop, "traind is shutting down");
  }
  for (auto& [id, worker] : workers_) {
    if (worker.attached) turn_.shutdowns.push_back({id});
  }
}

void Core::Impl::Answer(CallId call, absl::Status status, JobEntry* entry, bool created) {
  // Whoever is told of a Job can rely on it: also one that another call of this
  // turn has made.
  if (entry) turn_.mutations.durable = true;
  turn_.replies.push_back({call, std::move(status), nullptr, created});
  reply_owners_.push_back(entry);
  if (entry) Touch(*entry);
}

void Core::Impl::ForgetEnded() {
  while (!ended_order_.empty() &&
         (now_ - ended_order_.front().first > kKeepEnded || ended_order_.size() > kKeepEndedMost)) {
    ended_.erase(ended_order_.front().second);
    ended_order_.pop_front();
  }
}

}  // namespace traind
