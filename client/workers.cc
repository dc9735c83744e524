#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>

#include "client/exit_codes.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "common/base/duration.h"
#include "common/spec/field_text.h"
#include "common/wire/render_json.h"

namespace traind {
namespace {

using google::protobuf::util::TimeUtil;

constexpr char kUsage[] =
    "trainctl: workers [list] | cordon WORKER | drain WORKER [--grace DURATION] [--wait] | "
    "uncordon WORKER\n";
constexpr absl::Duration kLookEvery = absl::Milliseconds(500);

int Usage(Environment& environment) {
  environment.err << kUsage;
  return kExitUsage;
}

int List(const Arguments& arguments, Environment& environment, TrainingClient& client) {
  const auto reply = client.ListWorkers();
  if (!reply.ok()) return ReportError(environment, reply.status());
  if (arguments.json) {
    environment.out << ToJsonArray(*reply, "workers") << "\n";
  } else if (reply->workers().empty()) {
    environment.err << "no workers: start trainworker, or traind with --standalone\n";
  } else {
    environment.out << WorkerTable(*reply, environment.clock.WallNow(),
                                   arguments.output == OutputFormat::kWide);
  }
  return kExitOk;
}

// Waits until that Worker runs nothing. DeadlineExceeded: --timeout has passed.
absl::StatusOr<v1::WorkerInfo> AwaitDrained(v1::WorkerInfo worker, const Arguments& arguments,
                                            Environment& environment, TrainingClient& client) {
  const absl::Duration until =
      environment.clock.MonotonicNow() + arguments.timeout.value_or(absl::InfiniteDuration());
  int32_t told = 0;
  while (worker.attempts() > 0) {
    if (worker.attempts() != told && !arguments.quiet) {
      environment.err << worker.id() << " still runs " << worker.attempts()
                      << (worker.attempts() == 1 ? " Attempt" : " Attempts") << std::endl;
    }
    told = worker.attempts();
    const absl::Duration left = until - environment.clock.MonotonicNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat(worker.id(), " is not drained yet"));
    }
    absl::SleepFor(std::min(kLookEvery, left));
    const auto all = client.ListWorkers();
    if (!all.ok()) return all.status();
    worker.set_attempts(0);  // traind has forgotten it: it runs nothing
    for (const v1::WorkerInfo& other : all->workers()) {
      if (other.id() == worker.id()) worker = other;
    }
  }
  return worker;
}

int Update(const Arguments& arguments, Environment& environment, TrainingClient& client,
           v1::WorkerMode mode) {
  v1::UpdateWorkerRequest request;
  request.set_id(arguments.words[1]);
  request.set_mode(mode);
  if (!arguments.grace.empty()) {
    const auto grace = DurationFromText(arguments.grace);
    if (!grace.ok()) {
      environment.err << "trainctl: --grace " << Printable(grace.status().message(), 400) << "\n";
      return kExitUsage;
    }
    *request.mutable_grace() = TimeUtil::MillisecondsToDuration(absl::ToInt64Milliseconds(*grace));
  }
  auto worker = client.UpdateWorker(request);
  if (worker.ok() && arguments.wait) {
    worker = AwaitDrained(*std::move(worker), arguments, environment, client);
  }
  if (!worker.ok()) return ReportError(environment, worker.status());
  if (arguments.json) {
    environment.out << ToJson(*worker) << "\n";
    return kExitOk;
  }
  v1::ListWorkersReply reply;
  *reply.add_workers() = *worker;
  environment.out << WorkerTable(reply, environment.clock.WallNow(),
                                 arguments.output == OutputFormat::kWide);
  return kExitOk;
}

}  // namespace

int RunWorkers(const Arguments& arguments, Environment& environment) {
  const std::vector<std::string>& words = arguments.words;
  const std::string what = words.empty() ? "list" : words[0];
  const bool drains = what == "drain";
  if (!drains && (arguments.wait || !arguments.grace.empty())) return Usage(environment);
  TrainingClient client = MakeClient(arguments, environment);
  if (what == "list" && words.size() <= 1) return List(arguments, environment, client);
  if (words.size() != 2) return Usage(environment);
  if (what == "cordon") return Update(arguments, environment, client, v1::WORKER_MODE_CORDONED);
  if (drains) return Update(arguments, environment, client, v1::WORKER_MODE_DRAINING);
  if (what == "uncordon") {
    return Update(arguments, environment, client, v1::WORKER_MODE_UNSPECIFIED);
  }
  return Usage(environment);
}

}  // namespace traind
