#include "client/verbs.h"

namespace traind {

int RunFinish(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  const auto finishing = client.FinishJob(job->id());
  if (!finishing.ok()) return ReportError(environment, finishing.status());
  return PrintJob(arguments, environment, *finishing);
}

}  // namespace traind
