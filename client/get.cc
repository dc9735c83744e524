#include "client/verbs.h"

namespace traind {

int RunGet(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  const auto job = client.GetJob(arguments.job);
  if (!job.ok()) return ReportError(environment, job.status());
  return PrintJob(arguments, environment, client, *job);
}

}  // namespace traind
