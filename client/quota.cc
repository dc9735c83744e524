#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>
#include <google/protobuf/util/time_util.h>

#include "client/exit_codes.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/base/quota_text.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

using google::protobuf::util::TimeUtil;

constexpr char kUsage[] =
    "trainctl: quota [list [WHO]] | set WHO 45h per 7d[, fixed] [--add] | remove WHO; "
    "WHO is an owner, or a label like team=vision\n";

v1::QuotaSubject SubjectOf(const std::string& who) {
  v1::QuotaSubject subject;
  if (who.find('=') == std::string::npos) {
    subject.set_owner(who);
  } else {
    subject.set_label(who);
  }
  return subject;
}

int Set(const Arguments& arguments, Environment& environment, TrainingClient& client) {
  const auto quota =
      QuotaFromText(absl::StrJoin(arguments.words.begin() + 2, arguments.words.end(), " "));
  if (!quota.ok()) {
    environment.err << "trainctl: " << Printable(quota.status().message(), 400) << "\n";
    return kExitUsage;
  }
  v1::SetQuotaRequest request;
  *request.mutable_quota()->mutable_subject() = SubjectOf(arguments.words[1]);
  *request.mutable_quota()->mutable_allowance() =
      TimeUtil::MillisecondsToDuration(absl::ToInt64Milliseconds(quota->allowance));
  *request.mutable_quota()->mutable_period() =
      TimeUtil::MillisecondsToDuration(absl::ToInt64Milliseconds(quota->period));
  request.mutable_quota()->set_rolling(quota->rolling);
  if (!quota->rolling) {
    *request.mutable_quota()->mutable_since() =
        TimeUtil::MillisecondsToTimestamp(absl::ToUnixMillis(environment.clock.WallNow()));
  }
  request.set_add(arguments.add);
  const auto state = client.SetQuota(request);
  if (!state.ok()) return ReportError(environment, state.status());
  v1::ListQuotasReply reply;
  *reply.add_quotas() = *state;
  environment.out << (arguments.json ? ToJson(*state) + "\n"
                                     : QuotaTable(reply, environment.clock.WallNow()));
  return kExitOk;
}

int List(const Arguments& arguments, Environment& environment, TrainingClient& client) {
  v1::ListQuotasRequest request;
  if (arguments.words.size() > 1) *request.mutable_subject() = SubjectOf(arguments.words[1]);
  const auto reply = client.ListQuotas(request);
  if (!reply.ok()) return ReportError(environment, reply.status());
  if (arguments.json) {
    environment.out << ToJsonArray(*reply, "quotas") << "\n";
  } else if (reply->quotas().empty()) {
    environment.err << "no quotas\n";
  } else {
    environment.out << QuotaTable(*reply, environment.clock.WallNow());
  }
  return kExitOk;
}

int Remove(const Arguments& arguments, Environment& environment, TrainingClient& client) {
  v1::RemoveQuotaRequest request;
  *request.mutable_subject() = SubjectOf(arguments.words[1]);
  const auto reply = client.RemoveQuota(request);
  if (!reply.ok()) return ReportError(environment, reply.status());
  if (arguments.json) environment.out << ToJson(*reply) << "\n";
  return kExitOk;
}

}  // namespace

int RunQuota(const Arguments& arguments, Environment& environment) {
  const std::vector<std::string>& words = arguments.words;
  const std::string what = words.empty() ? "list" : words[0];
  TrainingClient client = MakeClient(arguments, environment);
  if (what == "list" && words.size() <= 2) return List(arguments, environment, client);
  if (what == "set" && words.size() >= 3) return Set(arguments, environment, client);
  if (what == "remove" && words.size() == 2) return Remove(arguments, environment, client);
  environment.err << kUsage;
  return kExitUsage;
}

}  // namespace traind
