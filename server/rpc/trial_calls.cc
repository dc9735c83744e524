// TrainingCalls: the trials of Jobs.
#include <absl/strings/str_cat.h>

#include <map>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "server/rpc/proposals.h"
#include "server/rpc/training_calls.h"
#include "server/rpc/trial_settings.h"
#include "server/search/search.h"

namespace traind {

absl::StatusOr<Propose> TrainingCalls::CheckProposal(const Caller& caller,
                                                     const v1::ProposeTrialRequest& request) const {
  Propose proposal;
  ASSIGN_OR_RETURN(proposal.job, FindLive(caller, request.id()));
  if (request.request_id().size() > kMaxRequestId) {
    return absl::InvalidArgumentError(
        absl::StrCat("request_id: longer than ", kMaxRequestId, " characters"));
  }
  ASSIGN_OR_RETURN(const auto job, Find(proposal.job));
  if (!AsksClients(job->spec.search)) return NoProposals(job->id);
  ASSIGN_OR_RETURN(Settings settings,
                   ReadProposal(*job, {request.settings().begin(), request.settings().end()}));
  proposal.settings = std::make_shared<const Settings>(std::move(settings));
  proposal.request_id = request.request_id();
  return proposal;
}

void TrainingCalls::ProposeTrial(const Caller& caller, const v1::ProposeTrialRequest& request,
                                 v1::ProposeTrialReply* reply, Done done) {
  auto proposal = CheckProposal(caller, request);
  if (!proposal.ok()) return done(proposal.status());
  loop_->Propose(*std::move(proposal), [reply, done = std::move(done)](const Reply& answer) {
    if (answer.status.ok()) {
      *reply->mutable_trial() = TrialsOf(*answer.job)[static_cast<size_t>(answer.trial)];
      reply->set_created(answer.created);
    }
    done(answer.status);
  });
}

absl::Status TrainingCalls::ListTrials(const v1::ListTrialsRequest& request,
                                       v1::ListTrialsReply* reply) {
  ASSIGN_OR_RETURN(const auto job, Find(request.id()));
  reply->set_state(static_cast<v1::JobState>(job->state));
  for (v1::Trial& trial : TrialsOf(*job)) *reply->add_trials() = std::move(trial);
  if (auto search = SearchOf(*job)) *reply->mutable_search() = *std::move(search);
  reply->set_metric(job->spec.metric);
  reply->set_higher_is_better(job->spec.higher_is_better);
  return absl::OkStatus();
}

}  // namespace traind
