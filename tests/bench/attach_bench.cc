// Attaches many Workers that only send heartbeats, each by a connection of its own, and prints what
// they cost traind, as one JSON line. traind must serve Workers (no --standalone).
//   attach_bench --server 127.0.0.1:7070 --pid $(pidof traind) --workers 2000
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_split.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/engine_version.h"
#include "proto/worker_service.grpc.pb.h"

namespace traind {
namespace {

struct Flags {
  std::string server = "127.0.0.1:7070";
  int pid = 0, workers = 2000, slots = 8, beat_ms = 2000, seconds = 20;
};

// A Worker that reads what comes, and says what it is told to.
class Worker final : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  Worker(const Flags& flags, int number) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    stub_ = v1::WorkerService::NewStub(
        grpc::CreateCustomChannel(flags.server, grpc::InsecureChannelCredentials(), arguments));
    v1::Hello& hello = *outgoing_.mutable_hello();
    hello.set_worker_id(absl::StrCat("bench-", number));
    hello.set_boot_id(absl::StrCat(getpid()));
    hello.set_engine(kEngineVersion);
    hello.set_hostname("bench");
    for (int i = 0; i < flags.slots; ++i) {
      hello.add_slots()->set_index(i);
      hello.mutable_slots(i)->set_device("cpu");
    }
    stub_->async()->Attach(&context_, this);
    StartWrite(&outgoing_);
    StartRead(&incoming_);
    StartCall();
  }
  void Beat() {
    if (writing_.exchange(true)) return;
    outgoing_.mutable_heartbeat();
    StartWrite(&outgoing_);
  }
  void Leave() { context_.TryCancel(); }
  bool attached() const { return attached_; }
  bool over() const { return over_; }
  int beats() const { return beats_; }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    attached_ = true;
    StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return;
    if (outgoing_.has_heartbeat()) ++beats_;
    writing_ = false;
  }
  void OnDone(const grpc::Status& /*status*/) override { over_ = true; }

  std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
  v1::WorkerMessage outgoing_;
  v1::CoordinatorMessage incoming_;
  std::atomic<bool> writing_{true}, attached_{false}, over_{false};
  std::atomic<int> beats_{0};
};

// A number from /proc/PID/status; 0: it does not say.
int64_t StatusOf(int pid, const std::string& key) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (!absl::StartsWith(line, key + ":")) continue;
    const std::vector<std::string> words =
        absl::StrSplit(line, absl::ByAnyChar("\t "), absl::SkipEmpty());
    int64_t value = 0;
    return words.size() > 1 && absl::SimpleAtoi(words[1], &value) ? value : 0;
  }
  return 0;
}

// The CPU time of all threads of that process.
double CpuSeconds(int pid) {
  std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(stat, line);
  const std::vector<std::string> fields =
      absl::StrSplit(line.substr(std::min(line.size(), line.rfind(')') + 1)), ' ');
  int64_t user = 0, system = 0;
  if (fields.size() < 14 || !absl::SimpleAtoi(fields[12], &user) ||
      !absl::SimpleAtoi(fields[13], &system)) {
    return 0;
  }
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int Run(const Flags& flags) {
  const int64_t threads_before = StatusOf(flags.pid, "Threads");
  const int64_t rss_before = StatusOf(flags.pid, "VmRSS");
  const absl::Time begin = absl::Now();
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < flags.workers; ++i) workers.push_back(std::make_unique<Worker>(flags, i));
  const absl::Time patience = begin + absl::Minutes(5);
  const auto attached = [&] {
    return std::all_of(workers.begin(), workers.end(), [](const auto& w) { return w->attached(); });
  };
  while (!attached() && absl::Now() < patience) absl::SleepFor(absl::Milliseconds(20));
  const double attach_s = absl::ToDoubleSeconds(absl::Now() - begin);
  const double cpu_begin = CpuSeconds(flags.pid);
  const absl::Time first = absl::Now();
  // All of them, spread over each interval.
  const absl::Duration step = absl::Milliseconds(flags.beat_ms) / flags.workers;
  const int64_t beats = absl::Seconds(flags.seconds) / step;
  for (int64_t i = 0; i < beats; ++i) {
    const absl::Duration early = first + i * step - absl::Now();
    if (early > absl::Milliseconds(1)) absl::SleepFor(early);
    workers[static_cast<size_t>(i) % workers.size()]->Beat();
  }
  const double took_s = absl::ToDoubleSeconds(absl::Now() - first);
  const double cpu_s = CpuSeconds(flags.pid) - cpu_begin;
  int64_t sent = 0, lost = 0;
  for (const auto& worker : workers) {
    sent += worker->beats();
    lost += worker->over() || !worker->attached() ? 1 : 0;
  }
  std::printf(
      "%s\n",
      absl::StrFormat(R"({"bench": "attach", "workers": %d, "not_attached": %d, "attach_s": %.2f, )"
                      R"("beats_per_s": %.0f, "cores": %.3f, "threads_before": %d, "threads": %d, )"
                      R"("rss_before_mib": %.1f, "rss_mib": %.1f})",
                      flags.workers, lost, attach_s, static_cast<double>(sent) / took_s,
                      cpu_s / took_s, threads_before, StatusOf(flags.pid, "Threads"),
                      static_cast<double>(rss_before) / 1024,
                      static_cast<double>(StatusOf(flags.pid, "VmRSS")) / 1024)
          .c_str());
  for (const auto& worker : workers) worker->Leave();
  const auto over = [&] {
    return std::all_of(workers.begin(), workers.end(), [](const auto& w) { return w->over(); });
  };
  while (!over() && absl::Now() < patience) absl::SleepFor(absl::Milliseconds(20));
  std::fflush(stdout);
  if (!over()) _exit(1);  // gRPC still uses them
  return lost == 0 ? 0 : 1;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  traind::Flags flags;
  CLI::App app("What attached Workers cost traind");
  app.add_option("--server", flags.server, "HOST:PORT of traind")->capture_default_str();
  app.add_option("--pid", flags.pid, "of traind, on this machine")->required();
  app.add_option("--workers", flags.workers, "so many attach")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  app.add_option("--slots", flags.slots, "of each")->capture_default_str();
  app.add_option("--beat-ms", flags.beat_ms, "between two heartbeats of a Worker")
      ->capture_default_str()
      ->check(CLI::Range(1, 60'000));
  app.add_option("--seconds", flags.seconds, "of heartbeats that are measured")
      ->capture_default_str()
      ->check(CLI::Range(1, 3600));
  CLI11_PARSE(app, argc, argv);
  return traind::Run(flags);
}
