#include "client/follow.h"
#include "client/verbs.h"

namespace traind {

int RunWatch(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  auto job = FindJobToFollow(client, arguments.job, arguments.timeout, environment);
  if (!job.ok()) return ReportError(environment, job.status());
  return FollowToTheEnd(arguments, environment, client, *std::move(job), "", true);
}

}  // namespace traind
