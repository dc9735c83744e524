// The verbs that change a Job and need no other argument.
#include "client/verbs.h"

namespace traind {
namespace {

using Call = absl::StatusOr<v1::Job> (TrainingClient::*)(const std::string& id);

int Change(const Arguments& arguments, Environment& environment, Call call) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  const auto changed = (client.*call)(job->id());
  if (!changed.ok()) return ReportError(environment, changed.status());
  return PrintJob(arguments, environment, *changed);
}

}  // namespace

int RunFinish(const Arguments& arguments, Environment& environment) {
  return Change(arguments, environment, &TrainingClient::FinishJob);
}

int RunPause(const Arguments& arguments, Environment& environment) {
  return Change(arguments, environment, &TrainingClient::PauseJob);
}

int RunResume(const Arguments& arguments, Environment& environment) {
  return Change(arguments, environment, &TrainingClient::ResumeJob);
}

int RunCancel(const Arguments& arguments, Environment& environment) {
  return Change(arguments, environment, &TrainingClient::CancelJob);
}

}  // namespace traind
