// TrainingCalls: many specs in one call.
#include <absl/strings/str_cat.h>

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/spec/spec_rules.h"
#include "server/rpc/training_calls.h"

namespace traind {
namespace {

constexpr int kMostEntries = 1000;

void Refuse(const absl::Status& why, v1::SubmitOutcome* outcome) {
  outcome->set_status(absl::StatusCodeToString(why.code()));
  outcome->set_message(std::string(why.message()));
}

}  // namespace

void TrainingCalls::SubmitBatch(const Caller& caller, const v1::SubmitBatchRequest& request,
                                v1::SubmitBatchReply* reply, Done done) {
  if (request.submits().empty() || request.submits_size() > kMostEntries) {
    return done(absl::InvalidArgumentError(absl::StrCat(
        "submits: has ", request.submits_size(), " entries; 1 to ", kMostEntries, " are taken")));
  }
  // The caller keeps request and reply until it is answered.
  checks_.Add([this, caller, &request, reply,
               done = std::move(done)] { CheckBatch(caller, request, reply, done); },
              absl::InfinitePast());
}

void TrainingCalls::CheckBatch(const Caller& caller, const v1::SubmitBatchRequest& request,
                               v1::SubmitBatchReply* reply, const Done& done) {
  const std::vector<std::optional<KnownRequest>> repeated = FindRepeatedOf(caller, request);
  std::map<std::string, int> by_owner;
  for (int i = 0; i < request.submits_size(); ++i) {
    if (repeated[i]) continue;  // it is answered whatever the rate is
    ++by_owner[CountedOwner(caller, request.submits(i).owner())];
  }
  if (const absl::Status many = submit_rate_.Take(by_owner, loop_->Now()); !many.ok()) {
    return done(many);
  }
  reply->mutable_outcomes()->Reserve(request.submits_size());
  for (int i = 0; i < request.submits_size(); ++i) reply->add_outcomes();
  std::vector<std::pair<Job, ControlLoop::Answer>> jobs;
  jobs.reserve(static_cast<size_t>(request.submits_size()));
  CheckedSpecs known;
  // The last one that the loop answers ends the call.
  const auto left = std::make_shared<std::atomic<int>>(0);
  for (int i = 0; i < request.submits_size(); ++i) {
    v1::SubmitOutcome* const outcome = reply->mutable_outcomes(i);
    auto job = CheckEntry(caller, request.submits(i), repeated[i], known, outcome);
    if (!job.ok()) {
      Refuse(job.status(), outcome);
    } else if (outcome->id().empty()) {
      AskedSpec kept{job->spec_sha256, job->spec_json};
      jobs.emplace_back(*std::move(job),
                        [outcome, kept = std::move(kept), left, done](const Reply& answer) {
                          TakeOutcome(answer, kept, outcome);
                          if (--*left == 0) done(absl::OkStatus());
                        });
    }
  }
  if (jobs.empty()) return done(absl::OkStatus());
  *left = static_cast<int>(jobs.size());
  loop_->SubmitAll(std::move(jobs));
}

std::vector<std::optional<KnownRequest>> TrainingCalls::FindRepeatedOf(
    const Caller& caller, const v1::SubmitBatchRequest& request) const {
  std::vector<RequestKey> requests;
  requests.reserve(static_cast<size_t>(request.submits_size()));
  for (const v1::SubmitRequest& submit : request.submits()) {
    const auto owner = OwnerOf(caller, submit.owner());
    requests.push_back(owner.ok() ? RequestKey{*owner, submit.request_id()} : RequestKey());
  }
  auto known = store_->FindRequests(requests);
  if (known.ok()) return *std::move(known);
  return std::vector<std::optional<KnownRequest>>(requests.size());
}

absl::StatusOr<Job> TrainingCalls::CheckEntry(const Caller& caller,
                                              const v1::SubmitRequest& request,
                                              const std::optional<KnownRequest>& repeated,
                                              CheckedSpecs& known,
                                              v1::SubmitOutcome* outcome) const {
  const v1::JobSpec& spec = request.spec();
  const std::string key = CheckedSpecs::KeyOf(spec);
  CheckedTwins* twins = key.empty() ? nullptr : known.Find(key);
  ASSIGN_OR_RETURN(
      const Asked asked,
      AskedBy(caller, request, twins ? twins->AskedJson(spec.name()) : SpecToJson(spec)));
  if (repeated && repeated->asked_sha256 == asked.sha256) {
    outcome->set_status("OK");
    outcome->set_id(repeated->id);
    return Job();
  }
  if (key.empty()) {
    ASSIGN_OR_RETURN(const v1::JobSpec completed, Completed(spec, asked.owner));
    return MakeJob(completed, asked);
  }
  RETURN_IF_ERROR(intake_->CheckOwner(spec, asked.owner));
  const absl::Time now = loop_->Now();
  if (twins == nullptr) {
    ASSIGN_OR_RETURN(CheckedSpec checked, CheckKind(spec, now));
    twins = known.Add(key, spec, std::move(checked));
  }
  return JobOf(twins->For(spec.name()), asked, now);
}

void TrainingCalls::TakeOutcome(const Reply& answer, const AskedSpec& spec,
                                v1::SubmitOutcome* outcome) {
  absl::Status status = answer.status;
  if (answer.job != nullptr && !answer.created) status = CheckKnown(*answer.job, spec);
  if (!status.ok() || answer.job == nullptr) return Refuse(status, outcome);
  outcome->set_status("OK");
  outcome->set_id(answer.job->id);
  outcome->set_created(answer.created);
  if (!answer.created) return;
  for (const std::string& warning : answer.job->warnings) outcome->add_warnings(warning);
}

}  // namespace traind
