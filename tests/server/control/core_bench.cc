// core_bench [JOBS]: what the core alone costs with so many Jobs in the queue, as
// one JSON line: microseconds of CPU per Submit (one a turn, and 64 a turn), per heartbeat
// and per Progress turn, also of a Job with many trials, and for a restart.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "server/control/control_core.h"

namespace traind {
namespace {

Job MakeJob(int i) {
  Job job;
  job.id = absl::StrCat("job-", i);
  job.request_id = absl::StrCat("request-", i);
  job.spec_sha256 = std::string(64, 'a');
  job.spec_json = std::string(1500, 'j');
  job.spec_text = std::string(800, 't');
  job.spec.name = "job";
  job.spec.has_test = true;
  job.spec.budget = absl::Hours(10) + absl::Seconds(i % 1000);
  return job;
}

template <typename Body>
double Micros(int times, Body body) {
  const std::clock_t begin = std::clock();
  for (int i = 0; i < times; ++i) body(i);
  return 1e6 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / times;
}

// A Progress of a Job with 90 trials: 300 models are trained, and no slot is idle.
double ProgressBesideTrials() {
  ControlCore core{CoreOptions()};
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  int64_t attempt = 0;
  const auto step = [&](std::vector<Event> events) {
    now += absl::Milliseconds(1);
    for (const StartCommand& start : core.Step(std::move(events), now).starts) {
      attempt = start.attempt;
    }
  };
  WorkerAttached hello;
  hello.worker = "w";
  hello.boot = "b";
  hello.session = 1;
  hello.slots = {{0, "cpu", "", "", 0}};
  Job job = MakeJob(0);
  job.spec.folds = 5;
  for (int i = 0; i < 90; ++i) job.spec.trials.push_back({absl::StrCat("t", i), "lightgbm", 20, 5});
  step({hello, Submit{1, std::move(job)}});
  const auto say = [&](int64_t by, facts::Fact fact) {
    step({WorkerFact{"w", 1, 0, by, std::move(fact)}});
  };
  const int64_t prepare = attempt;
  facts::TableReady ready;
  ready.table = "cache/x.table";
  say(prepare, ready);
  say(prepare, facts::FloorReady{"prior", 0.5});
  say(prepare, facts::Ended{AttemptEndReason::kCompleted, ""});
  for (int i = 0; i < 300; ++i) {
    facts::FoldSaved saved;
    saved.complete = saved.last = true;
    saved.score = 0.9;
    const int64_t trained = attempt;
    say(trained, saved);
    say(trained, facts::Ended{AttemptEndReason::kCompleted, ""});
  }
  return Micros(2000, [&](int i) {
    facts::Progress progressed;
    progressed.step = i;
    say(attempt, progressed);
  });
}

void Run(int jobs) {
  ControlCore core{CoreOptions()};
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  int next = 0;
  const auto tick = [&now] { return now += absl::Microseconds(300); };
  std::vector<Event> fill;
  for (; next < jobs; ++next) fill.push_back(Submit{1, MakeJob(next)});
  core.Step(std::move(fill), tick());

  const double single = Micros(2000, [&](int) { core.Step({Submit{1, MakeJob(next++)}}, tick()); });
  const double batched = Micros(100,
                                [&](int) {
                                  std::vector<Event> events;
                                  for (int i = 0; i < 64; ++i)
                                    events.push_back(Submit{1, MakeJob(next++)});
                                  core.Step(std::move(events), tick());
                                }) /
                         64;

  WorkerAttached hello;
  hello.worker = "w";
  hello.boot = "b";
  hello.session = 1;
  hello.slots = {{0, "cpu", "", "", 0}, {1, "cpu", "", "", 0}};
  Turn turn = core.Step({hello}, tick());
  std::vector<int64_t> running;
  facts::TableReady ready;
  ready.table = "cache/x.table";
  for (const StartCommand& start : turn.starts) running.push_back(start.attempt);
  for (int64_t attempt : std::vector<int64_t>(running)) {
    for (const StartCommand& start :
         core.Step({WorkerFact{"w", 1, attempt, attempt, ready}}, tick()).starts) {
      running.push_back(start.attempt);
    }
  }
  const double heartbeat = Micros(2000, [&](int) {
    core.Step({WorkerHeartbeat{"w", 1, running}}, tick());
  });
  const int64_t fold = running.back();
  const double progress = Micros(2000, [&](int i) {
    facts::Progress progressed;
    progressed.step = i;
    core.Step({WorkerFact{"w", 1, 0, fold, progressed}}, tick());
  });

  Snapshot snapshot;
  for (const auto& job : core.ActiveJobs()) snapshot.active.push_back(*job);
  const double restart = Micros(1, [&](int) {
    ControlCore again{CoreOptions()};
    again.Restore(std::move(snapshot), now);
    again.Step({}, now);
  });
  absl::PrintF(
      "{\"jobs\":%d,\"submit_us\":%.1f,\"submit_batched_us\":%.1f,\"heartbeat_us\":%.1f,"
      "\"progress_us\":%.1f,\"progress_beside_trials_us\":%.1f,\"restart_ms\":%.1f}\n",
      jobs, single, batched, heartbeat, progress, ProgressBesideTrials(), restart / 1000);
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  traind::Run(argc > 1 ? std::atoi(argv[1]) : 10'000);
  return 0;
}
