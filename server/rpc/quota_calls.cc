// TrainingCalls: the calls about quotas.
#include <absl/strings/str_cat.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <utility>

#include "common/base/quota_text.h"
#include "common/base/status_macros.h"
#include "server/plan/quota_use.h"
#include "server/rpc/job_conversion.h"
#include "server/rpc/training_calls.h"

namespace traind {
namespace {

using google::protobuf::util::TimeUtil;

absl::StatusOr<QuotaSubject> SubjectOf(const v1::QuotaSubject& from) {
  if (from.owner().empty() == from.label().empty()) {
    return absl::InvalidArgumentError("subject: an owner or a label, one of the two");
  }
  const size_t equals = from.label().find('=');
  if (!from.label().empty() && (equals == std::string::npos || equals == 0)) {
    return absl::InvalidArgumentError("subject.label: write it like team=vision");
  }
  return QuotaSubject{from.owner(), from.label()};
}

absl::StatusOr<Quota> QuotaOf(const v1::Quota& from) {
  Quota quota;
  ASSIGN_OR_RETURN(quota.subject, SubjectOf(from.subject()));
  quota.allowance = absl::Milliseconds(TimeUtil::DurationToMilliseconds(from.allowance()));
  quota.period = absl::Milliseconds(TimeUtil::DurationToMilliseconds(from.period()));
  quota.rolling = from.rolling();
  if (from.has_since()) {
    quota.since = absl::FromUnixMillis(TimeUtil::TimestampToMilliseconds(from.since()));
  }
  if (quota.allowance < absl::ZeroDuration()) {
    return absl::InvalidArgumentError("allowance: it is negative");
  }
  if (quota.period < kShortestQuotaPeriod || quota.period > kLongestQuotaPeriod) {
    return absl::InvalidArgumentError("period: a minute to a year");
  }
  return quota;
}

}  // namespace

void TrainingCalls::ListQuotas(const v1::ListQuotasRequest& request, v1::ListQuotasReply* reply,
                               Done done) {
  QuotaSubject only;
  if (request.has_subject()) {
    const auto subject = SubjectOf(request.subject());
    if (!subject.ok()) return done(subject.status());
    only = *subject;
  }
  loop_->ListQuotas([this, done = std::move(done), reply, only](const Reply& answer) {
    absl::Status status = answer.status;
    const bool all = only == QuotaSubject();
    for (const QuotaState& state : answer.quotas) {
      if (all || state.quota.subject == only) *reply->add_quotas() = ToProto(state);
    }
    if (status.ok() && !all && reply->quotas().empty()) {
      const bool known = !only.owner.empty() && store_->HasOwner(only.owner).value_or(false);
      status = absl::NotFoundError(
          absl::StrCat(Text(only), known ? " has no quota" : " is not known, and has no quota"));
    }
    done(status);
  });
}

void TrainingCalls::SetQuota(const v1::SetQuotaRequest& request, v1::QuotaState* reply, Done done) {
  const auto quota = QuotaOf(request.quota());
  if (!quota.ok()) return done(quota.status());
  traind::SetQuota event;
  event.quota = *quota;
  const std::string& owner = quota->subject.owner;
  // A label needs nobody to be there first.
  event.known = request.add() || owner.empty();
  if (!event.known) {
    const auto known = store_->HasOwner(owner);
    if (!known.ok()) return done(known.status());
    event.known = *known;
  }
  auto history = store_->UsageSince(loop_->Now() - quota->period);
  if (!history.ok()) return done(history.status());
  event.history = *std::move(history);
  loop_->SetQuota(std::move(event), [done = std::move(done), reply](const Reply& answer) {
    if (!answer.quotas.empty()) *reply = ToProto(answer.quotas[0]);
    done(answer.status);
  });
}

void TrainingCalls::RemoveQuota(const v1::RemoveQuotaRequest& request, v1::RemoveQuotaReply*,
                                Done done) {
  const auto subject = SubjectOf(request.subject());
  if (!subject.ok()) return done(subject.status());
  loop_->RemoveQuota(*subject,
                     [done = std::move(done)](const Reply& answer) { done(answer.status); });
}

}  // namespace traind
