// Times `list` with each filter over many Jobs, and how long the control loop pauses meanwhile.
// Prints one line per filter.
//   list_bench --jobs 1000000 --folder /tmp/list_bench
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/synchronization/notification.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "server/loop/control_loop.h"
#include "server/store/sqlite_store.h"
#include "tests/contract/stored_jobs.h"
#include "tests/server/loop/no_workers.h"

namespace traind {
namespace {

constexpr int kBatch = 10'000;
constexpr int kListers = 4;

struct NamedFilter {
  const char* name;
  JobFilter filter;
};

double Milliseconds(absl::Duration time) { return absl::ToDoubleMilliseconds(time); }

Job MakeJob(int i, int jobs) {
  Job job = NewJob(absl::StrCat("bench-", i), 0);
  job.state = i % 100 == 0 ? JobState::kFailed : JobState::kSucceeded;
  if (i < 10) job.state = JobState::kCancelled;
  job.end_reason = JobEndReason::kCompleted;
  job.finished_at = job.accepted_at;
  job.spec.labels["team"] = i % 2 == 0 ? "a" : "b";
  job.spec.labels["run"] = absl::StrCat(i % 1000);
  job.spec.labels[i % 2 == 0 ? "even" : "odd"] = "yes";
  if (i < 10 || i > jobs - 10) job.spec.labels["rare"] = "yes";
  return job;
}

void Fill(SqliteStore& store, int jobs) {
  for (int begin = 0; begin < jobs; begin += kBatch) {
    std::vector<Job> batch;
    for (int i = begin; i < std::min(jobs, begin + kBatch); ++i) batch.push_back(MakeJob(i, jobs));
    if (!store.Commit(Change(std::move(batch))).ok()) std::abort();
    store.CheckpointLog().IgnoreError();
  }
}

std::vector<NamedFilter> Filters() {
  const std::vector<JobState> ended = {JobState::kFailed, JobState::kCancelled};
  return {{"none", {}},
          {"state SUCCEEDED", {{JobState::kSucceeded}, {}, 100, ""}},
          {"state CANCELLED (10 oldest)", {{JobState::kCancelled}, {}, 100, ""}},
          {"state QUEUED (none)", {{JobState::kQueued}, {}, 100, ""}},
          {"states FAILED and CANCELLED", {ended, {}, 100, ""}},
          {"label of half", {{}, {{"team", "a"}}, 100, ""}},
          {"label of a thousandth", {{}, {{"run", "7"}}, 100, ""}},
          {"label of 19", {{}, {{"rare", "yes"}}, 100, ""}},
          {"label that nobody has", {{}, {{"rare", "no"}}, 100, ""}},
          {"two labels of the same half", {{}, {{"team", "a"}, {"even", "yes"}}, 100, ""}},
          {"two labels, disjoint", {{}, {{"even", "yes"}, {"odd", "yes"}}, 100, ""}},
          {"label and state", {{JobState::kFailed}, {{"team", "a"}}, 100, ""}},
          {"label and state, disjoint", {{JobState::kFailed}, {{"team", "b"}}, 100, ""}}};
}

void TimeLists(SqliteStore& store) {
  for (const NamedFilter& filter : Filters()) {
    std::vector<double> took;
    size_t found = 0;
    bool more = false;
    for (int round = 0; round < 20; ++round) {
      const absl::Duration begin = SystemClock().MonotonicNow();
      const auto page = store.ListJobs(filter.filter);
      took.push_back(Milliseconds(SystemClock().MonotonicNow() - begin));
      found = page->jobs.size();
      more = !page->next_page_token.empty();
    }
    std::sort(took.begin(), took.end());
    absl::PrintF("%-30s %4d jobs%s  p50 %7.2f ms  max %7.2f ms\n", filter.name, found,
                 more ? ", more" : "      ", took[took.size() / 2], took.back());
  }
}

// Submits one Job after the other while others list, and prints how long the answers took: that is
// the longest pause of the loop, and a commit.
void TimeLoop(SqliteStore& store, const std::string& folder, int listers) {
  LoopOptions options;
  options.state_dir = folder;
  auto loop = ControlLoop::Create(options, &store, &SystemClock());
  if (!loop.ok()) std::abort();
  NoWorkers gateway;
  (*loop)->Start(&gateway);
  std::atomic<bool> stop{false};
  std::atomic<int64_t> lists{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < listers; ++i) {
    threads.emplace_back([&] {
      const std::vector<NamedFilter> filters = Filters();
      while (!stop) {
        if (!store.ListJobs(filters[lists++ % filters.size()].filter).ok()) std::abort();
      }
    });
  }
  std::vector<double> took;
  const absl::Duration end = SystemClock().MonotonicNow() + absl::Seconds(10);
  for (int i = 0; SystemClock().MonotonicNow() < end; ++i) {
    Job job = NewJob(absl::StrCat("new-", listers, "-", i), 1);
    job.request_id = job.id;
    job.spec.budget = absl::Hours(1);
    absl::Notification done;
    const absl::Duration begin = SystemClock().MonotonicNow();
    (*loop)->Submit(std::move(job), [&done](const Reply& reply) {
      if (!reply.status.ok()) std::abort();
      done.Notify();
    });
    done.WaitForNotification();
    took.push_back(Milliseconds(SystemClock().MonotonicNow() - begin));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::sort(took.begin(), took.end());
  absl::PrintF("%d callers list (%d lists): %d Submits, p50 %.1f ms, p99 %.1f ms, max %.1f ms\n",
               listers, lists.load(), took.size(), took[took.size() / 2],
               took[took.size() * 99 / 100], took.back());
}

int Run(const std::string& folder, int jobs) {
  absl::Duration begin = SystemClock().MonotonicNow();
  const auto since = [&begin] {
    const absl::Duration took = SystemClock().MonotonicNow() - begin;
    begin += took;
    return absl::ToDoubleSeconds(took);
  };
  const std::string path = folder + "/traind.db";
  {
    auto store = SqliteStore::Open(path);
    if (!store.ok()) return 1;
    Fill(**store, jobs);
  }
  absl::PrintF("%d jobs written in %.1f s\n", jobs, since());
  auto store = SqliteStore::Open(path);
  if (!store.ok()) return 1;
  absl::PrintF("opened in %.2f s\n", since());
  TimeLists(**store);
  for (const int listers : {0, kListers}) TimeLoop(**store, folder, listers);
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  std::string folder = "/tmp/list_bench";
  int jobs = 1'000'000;
  CLI::App app("Times list over many Jobs.");
  app.add_option("--folder", folder, "an empty folder")->check(CLI::ExistingDirectory);
  app.add_option("--jobs", jobs);
  CLI11_PARSE(app, argc, argv);
  return traind::Run(folder, jobs);
}
