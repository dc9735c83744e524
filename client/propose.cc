#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <map>

#include "client/exit_codes.h"
#include "client/request_id.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

// Reads "FIELD=VALUE"s into the request. Returns false, after an error message, if one of them has
// another form, or names a field again.
bool ReadSettings(Environment& environment, const std::vector<std::string>& words,
                  v1::ProposeTrialRequest& request) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      environment.err << "trainctl: '" << Printable(word)
                      << "' is no setting; write it like learning_rate=0.05\n";
      return false;
    }
    const std::string field = word.substr(0, equals);
    if (!request.mutable_settings()->insert({field, word.substr(equals + 1)}).second) {
      environment.err << "trainctl: " << Printable(field) << " is set twice\n";
      return false;
    }
  }
  return true;
}

// Returns "trial 3 WAITING (new)  learning_rate=0.05 num_leaves=31".
std::string ProposalText(const v1::ProposeTrialReply& reply) {
  const v1::Trial& trial = reply.trial();
  const std::map<std::string, std::string> sorted(trial.settings().begin(), trial.settings().end());
  return Printable(
      absl::StrCat("trial ", trial.index(), " ",
                   v1::TrialState_Name(trial.state()).substr(sizeof("TRIAL_STATE_") - 1),
                   reply.created() ? " (new)" : " (was there already)", sorted.empty() ? "" : "  ",
                   absl::StrJoin(sorted, " ", absl::PairFormatter("="))),
      2000);
}

}  // namespace

int RunPropose(const Arguments& arguments, Environment& environment) {
  v1::ProposeTrialRequest request;
  if (!ReadSettings(environment, arguments.words, request)) return kExitUsage;
  request.set_request_id(arguments.request_id.empty() ? RandomRequestId() : arguments.request_id);
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  request.set_id(job->id());
  const auto reply = client.ProposeTrial(request);
  if (!reply.ok()) return ReportError(environment, reply.status());
  environment.out << (arguments.json ? ToJson(*reply) : ProposalText(*reply)) << "\n";
  SuggestNext(arguments, environment, {absl::StrCat("trials ", Printable(job->id()))});
  return kExitOk;
}

}  // namespace traind
