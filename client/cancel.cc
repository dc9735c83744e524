#include "client/verbs.h"

namespace traind {

int RunCancel(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  const auto cancelled = client.CancelJob(job->id());
  if (!cancelled.ok()) return ReportError(environment, cancelled.status());
  return PrintJob(arguments, environment, *cancelled);
}

}  // namespace traind
