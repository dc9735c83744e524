#include "client/verbs.h"

namespace traind {

int RunPause(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  const auto changed = client.PauseJob(job->id());
  if (!changed.ok()) return ReportError(environment, changed.status());
  return PrintJob(arguments, environment, *changed);
}

}  // namespace traind
