// The verbs that change a Job and need no other argument.
#include <absl/strings/str_cat.h>

#include "client/exit_codes.h"
#include "client/job_array.h"
#include "client/verbs.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

using Call = absl::StatusOr<v1::Job> (TrainingClient::*)(const std::string& id);

// next: a verb that may be the next one.
int Change(const Arguments& arguments, Environment& environment, Call call, const char* next) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  const auto changed = (client.*call)(job->id());
  if (!changed.ok()) return ReportError(environment, changed.status());
  PrintJob(arguments, environment, client, *changed);
  SuggestNext(arguments, environment, {absl::StrCat(next, " ", Printable(job->id()))});
  return kExitOk;
}

}  // namespace

int RunFinish(const Arguments& arguments, Environment& environment) {
  return Change(arguments, environment, &TrainingClient::FinishJob, "watch");
}

int RunPause(const Arguments& arguments, Environment& environment) {
  return Change(arguments, environment, &TrainingClient::PauseJob, "resume");
}

int RunResume(const Arguments& arguments, Environment& environment) {
  return Change(arguments, environment, &TrainingClient::ResumeJob, "watch");
}

int RunCancel(const Arguments& arguments, Environment& environment) {
  if (!arguments.array.empty()) return CancelArray(arguments, environment);
  return Change(arguments, environment, &TrainingClient::CancelJob, "get");
}

}  // namespace traind
