// Asks for a Job by gRPC at a fixed rate over some connections and prints the latencies as one JSON
// line: dashboards that poll. A call that is late is made at once, and its latency counts from
// then.
//   get_bench --server 127.0.0.1:7070 --job JOB
#include <absl/base/thread_annotations.h>
#include <absl/strings/str_format.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proto/training_service.grpc.pb.h"

namespace traind {
namespace {

struct Flags {
  std::string server = "127.0.0.1:7070", job;
  double rate = 1000, seconds = 5;
  int connections = 20;
};

class Poller {
 public:
  explicit Poller(const Flags& flags) : flags_(flags) {}

  // The calls of one connection.
  void Poll(int index) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    const auto stub = v1::TrainingService::NewStub(
        grpc::CreateCustomChannel(flags_.server, grpc::InsecureChannelCredentials(), arguments));
    v1::GetJobRequest request;
    request.set_id(flags_.job);
    std::vector<absl::Duration> took;
    const absl::Time begin = absl::Now() + absl::Seconds(1);  // connected by then
    absl::Time due = begin + absl::Seconds(index / flags_.rate);
    (void)Call(*stub, request);
    for (; due < begin + absl::Seconds(flags_.seconds);
         due += absl::Seconds(flags_.connections / flags_.rate)) {
      absl::SleepFor(due - absl::Now());
      const absl::Time sent = absl::Now();
      if (!Call(*stub, request)) return;
      took.push_back(absl::Now() - sent);
    }
    absl::MutexLock lock(&mutex_);
    took_.insert(took_.end(), took.begin(), took.end());
  }

  int Report() {
    absl::MutexLock lock(&mutex_);
    if (!error_.empty() || took_.empty()) {
      std::fprintf(stderr, "get_bench: %s\n", error_.c_str());
      return 1;
    }
    std::sort(took_.begin(), took_.end());
    const auto at_ms = [this](double share) {
      mutex_.AssertReaderHeld();
      const auto last = static_cast<double>(took_.size() - 1);
      return absl::ToDoubleMilliseconds(took_[static_cast<size_t>(share * last)]);
    };
    std::printf("%s\n", absl::StrFormat(R"({"bench": "get", "calls_per_s": %.0f, "p50_ms": %.2f, )"
                                        R"("p99_ms": %.2f, "max_ms": %.2f})",
                                        static_cast<double>(took_.size()) / flags_.seconds,
                                        at_ms(0.5), at_ms(0.99), at_ms(1))
                            .c_str());
    return 0;
  }

 private:
  bool Call(v1::TrainingService::Stub& stub, const v1::GetJobRequest& request) {
    grpc::ClientContext context;
    v1::Job job;
    const grpc::Status status = stub.GetJob(&context, request, &job);
    if (status.ok()) return true;
    absl::MutexLock lock(&mutex_);
    error_ = status.error_message();
    return false;
  }

  const Flags& flags_;
  absl::Mutex mutex_;
  std::vector<absl::Duration> took_ ABSL_GUARDED_BY(mutex_);
  std::string error_ ABSL_GUARDED_BY(mutex_);
};

int Run(const Flags& flags) {
  Poller poller(flags);
  std::vector<std::thread> threads;
  for (int i = 0; i < flags.connections; ++i) {
    threads.emplace_back([&poller, i] { poller.Poll(i); });
  }
  for (std::thread& thread : threads) thread.join();
  return poller.Report();
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  traind::Flags flags;
  CLI::App app("Latency of GetJob at a fixed rate");
  app.add_option("--server", flags.server, "HOST:PORT of traind")->capture_default_str();
  app.add_option("--job", flags.job, "the Job that is asked for")->required();
  app.add_option("--rate", flags.rate, "calls a second")->capture_default_str();
  app.add_option("--seconds", flags.seconds, "how long")->capture_default_str();
  app.add_option("--connections", flags.connections, "over which they come")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  CLI11_PARSE(app, argc, argv);
  return traind::Run(flags);
}
