#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>

#include "client/follow.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

// The wait for a traind that is not there when watch starts; its address may be wrong.
constexpr absl::Duration kFirstContact = absl::Minutes(5);
constexpr absl::Duration kAskLimit = absl::Seconds(5);

// Returns the Job once traind answers. Errors: Unavailable: it did not answer in time.
absl::StatusOr<v1::Job> FindJob(const Arguments& arguments, Environment& environment,
                                TrainingClient& client) {
  const absl::Duration limit = arguments.timeout.value_or(kFirstContact);
  const absl::Duration until = environment.clock.MonotonicNow() + limit;
  const auto left = [&] { return until - environment.clock.MonotonicNow(); };
  const auto ask = [&] { return client.GetJobOnce(arguments.job, std::min(kAskLimit, left())); };
  const auto first = ask();
  if (first.ok() || !IsConnectionLoss(first.status())) return first;
  environment.err << Printable(first.status().message(), 400) << "; trainctl waits up to "
                  << DurationToText(limit) << " for it (--timeout)" << std::endl;
  Backoff backoff;
  while (left() > absl::ZeroDuration()) {
    absl::SleepFor(std::min(backoff.Next(), left()));
    auto job = ask();
    if (job.ok() || !IsConnectionLoss(job.status())) return job;
  }
  return first.status();
}

}  // namespace

int RunWatch(const Arguments& arguments, Environment& environment) {
  TrainingClient client = MakeClient(arguments, environment);
  auto job = FindJob(arguments, environment, client);
  if (!job.ok()) return ReportError(environment, job.status());
  return FollowToTheEnd(arguments, environment, client, *std::move(job), "", true);
}

}  // namespace traind
