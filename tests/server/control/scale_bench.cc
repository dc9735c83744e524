// scale_bench --workers 10000 --slots 8 --jobs 1000000: what the core alone costs with so many
// Workers and so many Jobs in the queue, in CPU time, as one JSON line. Each Job has one fold; it
// ends as soon as all slots are taken, so that each end makes room for the next start.
//   attach_us      a Worker attaches, 64 a turn
//   submit_us      a Submit, 1,000 a turn
//   prepare_us     a Job's PREPARE, and its fold's start as long as there are free slots
//   heartbeat_us   a heartbeat that lists all that the Worker runs, 64 a turn
//   cores          of heartbeats every 2 s from all Workers
//   place_us       a fold ends, and the next one starts
//   turn_p99_ms, turn_max_ms   of the turns while folds begin and end
//   find_us        FindJob of a Job at the end of the queue, with its place
//   lost_ms        the turn in which a Worker with full slots is lost
//   kb_a_job       resident memory
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
  job.spec.folds = 1;
  job.spec.budget = absl::Hours(100) + absl::Seconds(i % 1000);
  job.owner = absl::StrCat("owner-", i % 50);
  return job;
}

double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double ResidentKilobytes() {
  std::ifstream statm("/proc/self/statm");
  double all = 0, resident = 0;
  statm >> all >> resident;
  return resident * 4;
}

class Cluster {
 public:
  Cluster(int workers, int slots) : workers_(workers), slots_(slots), core_(MakeOptions()) {}

  void Attach() {
    for (int begin = 0; begin < workers_; begin += kBatch) {
      std::vector<Event> events;
      for (int w = begin; w < std::min(workers_, begin + kBatch); ++w) {
        WorkerAttached hello;
        hello.worker = NameOf(w);
        hello.boot = "b";
        hello.session = 1;
        hello.hostname = hello.worker;
        hello.address = "10.0.0.1";
        for (int i = 0; i < slots_; ++i) hello.slots.push_back({i, "cuda", "", "", 0});
        events.push_back(std::move(hello));
      }
      Step(std::move(events));
    }
  }

  void Submit(int jobs) {
    while (submitted_ < jobs) {
      std::vector<Event> events;
      for (int i = 0; i < 1000 && submitted_ < jobs; ++i) {
        events.push_back(traind::Submit{1, MakeJob(submitted_++)});
      }
      Step(std::move(events));
    }
  }

  // Until every slot is taken, or the queue is empty.
  void Fill() {
    do {
      while (!todo_.empty()) Work(kBatch);
    } while (Step({}));
  }

  void Heartbeats() {
    for (int begin = 0; begin < workers_; begin += kBatch) {
      std::vector<Event> events;
      for (int w = begin; w < std::min(workers_, begin + kBatch); ++w) {
        const std::string worker = NameOf(w);
        const auto& running = running_[worker];
        events.push_back(WorkerHeartbeat{worker, 1, {running.begin(), running.end()}});
      }
      Step(std::move(events));
    }
  }

  // Ends so many folds, one after the other over all Workers, and starts what follows.
  void EndFolds(int folds) {
    int ended = 0;
    while (ended < folds) {
      for (auto& [worker, running] : folds_) {
        if (running.empty() || ended == folds) continue;
        ++ended;
        facts::FoldSaved saved;
        saved.complete = saved.last = true;
        saved.score = 0.9;
        saved.oof = "oof.npy";
        const int64_t attempt = running.front();
        running.pop_front();
        todo_.push_back(WorkerFact{worker, 1, 0, attempt, saved});
        todo_.push_back(
            WorkerFact{worker, 1, 0, attempt, facts::Ended{AttemptEndReason::kCompleted, ""}});
        running_[worker].erase(attempt);
        if (todo_.size() >= kBatch) Work(kBatch);
      }
    }
    while (!todo_.empty()) Work(kBatch);
  }

  void Lose(const std::string& worker) { Step({WorkerDied{worker, 1}}); }
  ControlCore& core() { return core_; }
  int64_t folds_started() const { return folds_started_; }
  std::vector<double> TakeTurns() { return std::exchange(turn_s_, {}); }
  static std::string NameOf(int w) { return absl::StrFormat("w%05d", w); }

 private:
  static constexpr int kBatch = 64;

  static CoreOptions MakeOptions() {
    CoreOptions options;
    options.max_active_jobs = 10'000'000;
    options.lease = absl::Hours(1);
    return options;
  }

  void Work(size_t most) {
    std::vector<Event> events;
    for (; !todo_.empty() && events.size() < most; todo_.pop_front()) {
      events.push_back(std::move(todo_.front()));
    }
    Step(std::move(events));
  }

  // Whether the turn started anything.
  bool Step(std::vector<Event> events) {
    now_ += absl::Milliseconds(1);
    const double begin = CpuSeconds();
    const Turn turn = core_.Step(std::move(events), now_);
    turn_s_.push_back(CpuSeconds() - begin);
    for (const StartCommand& start : turn.starts) {
      if (start.kind != TaskKind::kPrepare) {
        ++folds_started_;
        running_[start.worker].insert(start.attempt);
        folds_[start.worker].push_back(start.attempt);
        continue;
      }
      facts::TableReady ready;
      ready.table = "cache/x.table";
      ready.train_rows = 1000;
      todo_.push_back(WorkerFact{start.worker, 1, 0, start.attempt, ready});
      todo_.push_back(WorkerFact{start.worker, 1, 0, start.attempt, facts::FloorReady{"p", 0.5}});
      todo_.push_back(WorkerFact{start.worker, 1, 0, start.attempt,
                                 facts::Ended{AttemptEndReason::kCompleted, ""}});
    }
    for (const PublishCommand& publish : turn.publishes) {
      PublishedPrediction prediction;
      prediction.number = ++predictions_;
      prediction.at = now_;
      todo_.push_back(Published{publish.job, prediction, false});
    }
    for (const ReuseCommand& reuse : turn.reuses)
      todo_.push_back(Reused{reuse.job, std::vector<TrainedFold>()});
    return !turn.starts.empty();
  }

  const int workers_, slots_;
  ControlCore core_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);
  int submitted_ = 0, predictions_ = 0;
  int64_t folds_started_ = 0;
  std::deque<Event> todo_;
  std::map<std::string, std::set<int64_t>> running_;  // PREPAREs have ended by then
  std::map<std::string, std::deque<int64_t>> folds_;  // those that train
  std::vector<double> turn_s_;
};

template <typename Body>
double Micros(int times, Body body) {
  const double begin = CpuSeconds();
  body();
  return 1e6 * (CpuSeconds() - begin) / times;
}

void Run(int workers, int slots, int jobs) {
  Cluster cluster(workers, slots);
  const double attach = Micros(workers, [&] { cluster.Attach(); });
  const double before_kb = ResidentKilobytes();
  const double submit = Micros(jobs, [&] { cluster.Submit(jobs); });
  const double kb_a_job = (ResidentKilobytes() - before_kb) / jobs;
  const double fill = Micros(jobs, [&] { cluster.Fill(); });
  const int64_t filled = cluster.folds_started();
  const double heartbeat = Micros(workers, [&] { cluster.Heartbeats(); });
  cluster.TakeTurns();
  const int ends = std::min(20'000, jobs / 2);
  const double place = Micros(ends, [&] { cluster.EndFolds(ends); });
  std::vector<double> turns = cluster.TakeTurns();
  std::sort(turns.begin(), turns.end());
  const double find = Micros(100, [&] {
    for (int i = 0; i < 100; ++i) cluster.core().FindJob(absl::StrCat("job-", jobs - 1 - i));
  });
  const double lost = Micros(1, [&] { cluster.Lose(Cluster::NameOf(workers / 2)); });
  absl::PrintF(
      "{\"workers\":%d,\"slots\":%d,\"jobs\":%d,\"filled\":%d,\"attach_us\":%.1f,"
      "\"submit_us\":%.1f,\"prepare_us\":%.1f,\"heartbeat_us\":%.2f,\"cores\":%.3f,\"place_us\":%."
      "1f,"
      "\"placed\":%d,\"turn_p99_ms\":%.2f,\"turn_max_ms\":%.2f,\"find_us\":%.1f,\"lost_ms\":%.2f,"
      "\"kb_a_job\":%.1f}\n",
      workers, workers * slots, jobs, filled, attach, submit, fill, heartbeat,
      heartbeat * workers / 2e6, place, cluster.folds_started() - filled,
      1e3 * turns[turns.size() * 99 / 100], 1e3 * turns.back(), find, lost / 1e3, kb_a_job);
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  CLI::App app("What the core costs with many Workers and Jobs");
  int workers = 10'000, slots = 8, jobs = 1'000'000;
  app.add_option("--workers", workers, "how many");
  app.add_option("--slots", slots, "of each");
  app.add_option("--jobs", jobs, "in the queue");
  CLI11_PARSE(app, argc, argv);
  traind::Run(workers, slots, jobs);
  return 0;
}
