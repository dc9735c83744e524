// Deleting and pinning Jobs that are over, and damage of their files.
#include <absl/strings/str_cat.h>

#include <utility>

#include "server/control/control_core_impl.h"
#include "server/domain/names.h"

namespace traind {
namespace {

// A Submit that was checked before a deletion began arrives within this time.
constexpr absl::Duration kRememberDeleted = absl::Hours(1);

}  // namespace

void ControlCore::Impl::CountSources(const Job& job, int change) {
  for (const std::string& source : {job.spec.from, job.spec.models_from}) {
    if (source.empty()) continue;
    if ((sources_[source] += change) == 0) sources_.erase(source);
  }
}

absl::Status ControlCore::Impl::CheckSources(const Job& job) const {
  for (const std::string& source : {job.spec.from, job.spec.models_from}) {
    if (deleted_.contains(source)) {
      return absl::NotFoundError(absl::StrCat("job ", source, " was deleted"));
    }
  }
  return absl::OkStatus();
}

absl::Status ControlCore::Impl::CheckDeletion(const DeleteJob& event) const {
  if (const JobEntry* entry = Find(event.job)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", event.job, " is ", Name(entry->view().state), "; cancel it before it is deleted"));
  }
  for (const int64_t attempt : event.attempts) {
    const auto live = attempts_.find(attempt);
    if (live == attempts_.end()) continue;
    return absl::UnavailableError(absl::StrCat("attempt ", attempt, " of job ", event.job,
                                               " has not ended yet on worker ",
                                               live->second.lead()));
  }
  if (!sources_.contains(event.job)) return absl::OkStatus();
  std::string users;
  for (const auto& [id, entry] : jobs_) {
    const Spec& spec = entry->view().spec;
    if (spec.from == event.job || spec.models_from == event.job) users = id;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("job ", users, ", which is not over, uses job ", event.job));
}

void ControlCore::Impl::Handle(DeleteJob& event) {
  absl::Status status = CheckDeletion(event);
  if (status.ok()) {
    turn_.mutations.deletions.push_back({event.job, now_});
    turn_.mutations.durable = true;
    deleted_.insert(event.job);
    deleted_order_.emplace_back(now_, event.job);
  }
  Answer(event.call, std::move(status), nullptr);
}

void ControlCore::Impl::Handle(PurgeJob& event) {
  turn_.mutations.purges.push_back({event.job, now_});
  Answer(event.call, absl::OkStatus(), nullptr);
}

void ControlCore::Impl::Handle(ForgetHistory& event) {
  turn_.mutations.forgotten.push_back(event.job);
  Answer(event.call, absl::OkStatus(), nullptr);
}

void ControlCore::Impl::Handle(FileDamaged& event) {
  turn_.mutations.remarks.push_back({event.job, now_, "damaged", std::move(event.detail)});
}

void ControlCore::Impl::Handle(Pin& event) {
  if (JobEntry* entry = Find(event.job)) {
    if (entry->view().pinned != event.pinned) EditDurably(*entry).pinned = event.pinned;
    return Answer(event.call, absl::OkStatus(), entry);
  }
  turn_.mutations.pins.emplace_back(event.job, event.pinned);
  turn_.mutations.durable = true;
  Answer(event.call, absl::OkStatus(), nullptr);
}

void ControlCore::Impl::ForgetDeleted() {
  while (!deleted_order_.empty() && now_ - deleted_order_.front().first > kRememberDeleted) {
    deleted_.erase(deleted_order_.front().second);
    deleted_order_.pop_front();
  }
}

}  // namespace traind
