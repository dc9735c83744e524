#include "server/access/gate.h"

#include <absl/strings/str_cat.h>

#include <utility>

namespace traind {

std::string TrainingMethod(absl::string_view rpc) {
  return absl::StrCat("/traind.v1.TrainingService/", rpc);
}

absl::StatusOr<Caller> Gate::Admit(absl::string_view method, absl::string_view authorization,
                                   bool has_certificate, absl::Time now) {
  auto caller = tokens_.Check(method, authorization, has_certificate, now);
  if (caller.ok()) return caller;
  if (const auto told = Thin(caller.status(), now)) {
    const size_t slash = method.rfind('/');
    audit_.Add(
        {now, "", "", std::string(method.substr(slash == method.npos ? 0 : slash + 1)), "", *told});
  }
  return caller;
}

std::optional<absl::Status> Gate::Thin(const absl::Status& refusal, absl::Time now) {
  absl::MutexLock lock(&mutex_);
  if (now - minute_ >= absl::Minutes(1) || now < minute_) {
    minute_ = now;
    refusals_ = 0;
  }
  if (++refusals_ > kMostRefusals) {
    ++left_out_;
    return std::nullopt;
  }
  const int left_out = std::exchange(left_out_, 0);
  if (left_out == 0) return refusal;
  return absl::Status(refusal.code(), absl::StrCat(refusal.message(), " (", left_out,
                                                   " refusals before it are not recorded)"));
}

void Gate::Record(const Caller& caller, const std::string& rpc, const std::string& subject,
                  const absl::Status& outcome, absl::Time now) {
  const auto need = NeedOf(TrainingMethod(rpc));
  if (need && !need->recorded && outcome.ok()) return;
  audit_.Add({now, caller.name, RoleName(caller.role), rpc, subject, outcome});
}

}  // namespace traind
