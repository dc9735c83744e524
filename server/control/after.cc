// Jobs that wait for the ends of others. A Job can only name Jobs that are there, so no circle
// comes about.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "server/control/control_core_impl.h"
#include "server/domain/after_rule.h"
#include "server/domain/names.h"

namespace traind {
namespace {

constexpr size_t kNamed = 3;

}  // namespace

std::string ControlCore::Impl::AfterText(const Job& job) {
  std::string text = job.after.size() == 1 ? "the end of job " : "the ends of jobs ";
  const size_t named = std::min(kNamed, job.after.size());
  for (size_t i = 0; i < named; ++i) absl::StrAppend(&text, i > 0 ? ", " : "", job.after[i]);
  if (named < job.after.size()) absl::StrAppend(&text, " and ", job.after.size() - named, " more");
  return text;
}

absl::Status ControlCore::Impl::SettleAfter(Job& job) const {
  std::vector<std::string> left;
  for (std::string& id : job.after) {
    const JobEntry* entry = Find(id);
    if (entry && !IsTerminal(entry->view().state)) {
      left.push_back(std::move(id));
      continue;
    }
    const auto ended = ended_states_.find(id);
    if (!entry && ended == ended_states_.end()) {
      return absl::UnavailableError(absl::StrCat(
          "after.jobs: job ", id, " was over before this job was accepted; submit it again"));
    }
    const JobState state = entry ? entry->view().state : ended->second;
    RETURN_IF_ERROR(MayBeginAfter(id, state, job.spec.after_any_end));
  }
  job.after = std::move(left);
  return absl::OkStatus();
}

// Ends are told in the turn that stores them. A Job that is not there all the same has left a
// database by other means, and nobody shall wait for it for ever.
void ControlCore::Impl::RestoreAfter(JobEntry& entry) {
  Job told = *entry.job;
  told.pending_reason = PendingReason::kOtherJobs;
  told.waits_for = AfterText(told);
  entry.job = std::make_shared<const Job>(std::move(told));
  for (const std::string& id : entry.job->after) {
    if (!jobs_.contains(id)) ended_now_.emplace_back(id, JobState::kCancelled);
  }
}

void ControlCore::Impl::AdvanceWaiting(JobEntry& entry) {
  if (now_ >= entry.view().deadline) {
    End(entry, JobState::kFailed, JobEndReason::kBudgetReached,
        absl::StrCat("its deadline came before ", AfterText(entry.view())));
  }
  UpdateQueues(entry);
}

// A chain of any length is walked without recursion.
void ControlCore::Impl::TellEnded() {
  while (!ended_now_.empty()) {
    const auto [ended, state] = std::move(ended_now_.front());
    ended_now_.pop_front();
    const auto found = waiting_.find(ended);
    if (found == waiting_.end()) continue;
    const std::vector<std::string> waiting = std::move(found->second);
    waiting_.erase(found);
    for (const std::string& id : waiting) {
      JobEntry* entry = Find(id);
      const bool waits = entry && !IsTerminal(entry->view().state) &&
                         std::count(entry->view().after.begin(), entry->view().after.end(), ended);
      if (waits) TellEnded(*entry, ended, state);
    }
  }
}

void ControlCore::Impl::TellEnded(JobEntry& entry, const std::string& ended, JobState state) {
  if (!MayBeginAfter(ended, state, entry.view().spec.after_any_end).ok()) {
    return End(entry, JobState::kCancelled, JobEndReason::kAfterFailed,
               absl::StrCat("it was to run after job ", ended, ", which is ", Name(state)));
  }
  Job& job = EditDurably(entry);
  const std::string waited_for = AfterText(job);
  job.after.erase(std::remove(job.after.begin(), job.after.end(), ended), job.after.end());
  if (!job.after.empty()) return;
  job.waited = now_ - job.accepted_at;
  if (job.spec.budget) job.deadline = std::min(job.deadline, now_ + *job.spec.budget);
  Decide(entry, DecisionRule::kAfter, absl::StrCat("job ", ended, " is ", Name(state)),
         "wait for " + waited_for,
         job.spec.budget ? absl::StrCat("start; its ", Text(*job.spec.budget), " begin now")
                         : "start");
  if (!TrainsNothing(job)) NoteLateStart(entry);
  Advance(entry);
}

}  // namespace traind
