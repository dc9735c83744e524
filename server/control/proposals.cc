// Trials whose settings clients propose (kAskMethod), and what a Job does while nobody proposes
// any.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "server/control/control_core_impl.h"
#include "server/domain/names.h"
#include "server/search/search.h"

namespace traind {
namespace {

// The trial with this property; -1: there is none.
template <typename Property>
int FindTrial(const Spec& spec, const Property& property) {
  const auto found = std::find_if(spec.trials.begin(), spec.trials.end(), property);
  return found == spec.trials.end() ? -1 : static_cast<int>(found - spec.trials.begin());
}

}  // namespace

absl::Status ControlCore::Impl::TakesProposals(const Job& job) const {
  if (!AsksClients(job.spec.search)) return NoProposals(job.id);
  if (job.state == JobState::kFinalizing || StopsTraining(job)) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", job.id, " is making its last prediction; it tries nothing more"));
  }
  return absl::OkStatus();
}

void ControlCore::Impl::Handle(Propose& event) {
  JobEntry* const entry = FindLive(event.call, event.job);
  if (!entry) return;
  const Spec& spec = entry->view().spec;
  const auto answer = [&](absl::Status status, int trial, bool created = false) {
    Answer(event.call, std::move(status), entry, created);
    turn_.replies.back().trial = trial;
  };
  const auto has = [&event](const Trial& trial) {
    return trial.settings != nullptr && *trial.settings == *event.settings;
  };
  const int known = event.request_id.empty() ? -1 : FindTrial(spec, [&event](const Trial& trial) {
    return trial.proposed && trial.request_id == event.request_id;
  });
  if (known >= 0 && !has(spec.trials[static_cast<size_t>(known)])) {
    return answer(
        absl::AlreadyExistsError(absl::StrCat("request_id ", event.request_id, " belongs to trial ",
                                              known, ", which has other settings")),
        known);
  }
  if (known >= 0) return answer(absl::OkStatus(), known);
  if (const absl::Status refused = TakesProposals(entry->view()); !refused.ok()) {
    return answer(refused, 0);
  }
  if (const int same = FindTrial(spec, has); same >= 0) return answer(absl::OkStatus(), same);
  const int open = FindTrial(spec, [](const Trial& trial) { return trial.settings == nullptr; });
  if (open < 0) {
    return answer(
        absl::ResourceExhaustedError(absl::StrCat("all ", spec.trials.size(), " trials of job ",
                                                  event.job, " have settings (search.trials)")),
        0);
  }
  Trial& trial = EditDurably(*entry).spec.trials[static_cast<size_t>(open)];
  TakeSettings(std::move(event.settings), trial);
  trial.proposed = true;
  trial.request_id = std::move(event.request_id);
  entry->proposed_at = now_;
  answer(absl::OkStatus(), open, /*created=*/true);
}

// Until then a Job that does nothing waits for a proposal.
absl::Time ControlCore::Impl::ProposalDue(const JobEntry& entry) const {
  absl::Time since = entry.proposed_at;
  for (const Attempt& attempt : entry.view().attempts) {
    if (attempt.ended_at != absl::InfiniteFuture()) since = std::max(since, attempt.ended_at);
  }
  return since + entry.view().spec.search.wait;
}

// Whether trials without settings are drawn here: nobody proposed one in time, nor since then.
bool ControlCore::Impl::DrawsItself(const JobEntry& entry) const {
  const Job& job = entry.view();
  const Search& search = job.spec.search;
  if (!AsksClients(search) || search.wait == absl::ZeroDuration()) return true;
  const auto last = std::find_if(job.spec.trials.rbegin(), job.spec.trials.rend() - 1,
                                 [](const Trial& trial) { return trial.settings != nullptr; });
  if (last != job.spec.trials.rend() - 1 && !last->proposed) return true;
  return AllSettled(job) && now_ >= ProposalDue(entry);
}

}  // namespace traind
