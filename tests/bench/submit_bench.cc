// Submits Jobs from many clients at once and prints what that gave, as one JSON
// line. Each client has a connection of its own and one call under way; a call
// counts when traind has answered, that is, when its Jobs are on disk.
//   submit_bench --server 127.0.0.1:7070 --train DIR/train.csv --target kind [--batch 100]
#include <absl/base/thread_annotations.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "proto/training_service.grpc.pb.h"

namespace traind {
namespace {

struct Flags {
  std::string server = "127.0.0.1:7070", train, target;
  int jobs = 10'000, clients = 64, batch = 0;
  bool request_ids = true;
};

// The results of all clients.
class Tally {
 public:
  explicit Tally(int jobs, int clients) : left_(jobs), clients_(clients) {}

  // false: all calls have been handed out.
  bool Take(int* number) {
    absl::MutexLock lock(&mutex_);
    if (left_ == 0) return false;
    *number = --left_;
    return true;
  }
  void Add(absl::Duration took, const grpc::Status& status) {
    absl::MutexLock lock(&mutex_);
    if (status.ok()) {
      took_.push_back(took);
    } else if (failed_++ == 0) {
      first_error_ = absl::StrCat(status.error_code(), " ", status.error_message());
    }
  }
  void ClientDone() {
    absl::MutexLock lock(&mutex_);
    --clients_;
  }
  void AwaitClients() {
    absl::MutexLock lock(&mutex_);
    const auto none = [this] {
      mutex_.AssertReaderHeld();
      return clients_ == 0;
    };
    mutex_.Await(absl::Condition(&none));
  }
  // After AwaitClients.
  std::vector<absl::Duration> Sorted() {
    absl::MutexLock lock(&mutex_);
    std::sort(took_.begin(), took_.end());
    return took_;
  }
  int failed() {
    absl::MutexLock lock(&mutex_);
    return failed_;
  }
  std::string first_error() {
    absl::MutexLock lock(&mutex_);
    return first_error_;
  }

 private:
  absl::Mutex mutex_;
  int left_ ABSL_GUARDED_BY(mutex_);
  int clients_ ABSL_GUARDED_BY(mutex_);
  int failed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string first_error_ ABSL_GUARDED_BY(mutex_);
  std::vector<absl::Duration> took_ ABSL_GUARDED_BY(mutex_);
};

class Client {
 public:
  Client(const Flags& flags, Tally* tally) : flags_(flags), tally_(tally) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own
    channel_ =
        grpc::CreateCustomChannel(flags.server, grpc::InsecureChannelCredentials(), arguments);
    stub_ = v1::TrainingService::NewStub(channel_);
  }
  bool Connect() {
    return channel_->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10));
  }
  void Next() {
    int number = 0;
    if (!tally_->Take(&number)) return tally_->ClientDone();
    context_ = std::make_unique<grpc::ClientContext>();
    begin_ = absl::Now();
    if (flags_.batch > 0) return SubmitMany(number);
    request_ = RequestOf(number);
    reply_.Clear();
    stub_->async()->Submit(context_.get(), &request_, &reply_, [this](const grpc::Status& status) {
      tally_->Add(absl::Now() - begin_, status);
      Next();
    });
  }

 private:
  // `number` is that of the batch.
  void SubmitMany(int number) {
    batch_.Clear();
    for (int i = 0; i < flags_.batch; ++i) {
      *batch_.add_submits() = RequestOf(number * flags_.batch + i);
    }
    outcomes_.Clear();
    stub_->async()->SubmitBatch(
        context_.get(), &batch_, &outcomes_, [this](const grpc::Status& status) {
          grpc::Status worst = status;
          for (const v1::SubmitOutcome& outcome : outcomes_.outcomes()) {
            if (outcome.status() == "OK") continue;
            worst = {grpc::StatusCode::UNKNOWN,
                     absl::StrCat(outcome.status(), " ", outcome.message())};
          }
          tally_->Add(absl::Now() - begin_, worst);
          Next();
        });
  }
  v1::SubmitRequest RequestOf(int number) const {
    v1::SubmitRequest request;
    v1::JobSpec& spec = *request.mutable_spec();
    spec.set_api("v1");
    spec.set_name(absl::StrCat("bench-", number));
    spec.mutable_task()->set_type("classification");
    spec.mutable_data()->set_train(flags_.train);
    spec.mutable_data()->set_target(flags_.target);
    spec.mutable_model()->mutable_mlp();
    spec.mutable_budget()->mutable_time()->set_seconds(3600);
    if (flags_.request_ids) {
      request.set_request_id(absl::StrCat("bench-", getpid(), "-", number));
    }
    return request;
  }

  const Flags& flags_;
  Tally* const tally_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::TrainingService::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  v1::SubmitRequest request_;
  v1::SubmitReply reply_;
  v1::SubmitBatchRequest batch_;
  v1::SubmitBatchReply outcomes_;
  absl::Time begin_;
};

int Run(const Flags& flags) {
  const int at_once = std::max(1, flags.batch);  // Jobs of a call
  Tally tally(flags.jobs / at_once, flags.clients);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < flags.clients; ++i) {
    clients.push_back(std::make_unique<Client>(flags, &tally));
    if (!clients.back()->Connect()) {
      std::fprintf(stderr, "submit_bench: nobody answers at %s\n", flags.server.c_str());
      return 1;
    }
  }
  const absl::Time start = absl::Now();
  for (const auto& client : clients) client->Next();
  tally.AwaitClients();
  const double wall_s = absl::ToDoubleSeconds(absl::Now() - start);
  const std::vector<absl::Duration> took = tally.Sorted();
  if (tally.failed() > 0 || took.empty()) {
    std::fprintf(stderr, "submit_bench: %d of %d calls failed, the first with: %s\n",
                 tally.failed(), flags.jobs / at_once, tally.first_error().c_str());
    return 1;
  }
  const auto at_ms = [&](double share) {
    const auto last = static_cast<double>(took.size() - 1);
    return absl::ToDoubleMilliseconds(took[static_cast<size_t>(share * last)]);
  };
  const int jobs = static_cast<int>(took.size()) * at_once;
  std::printf("%s\n", absl::StrFormat(
                          R"({"bench": "submit", "jobs": %d, "batch": %d, "clients": %d, )"
                          R"("wall_s": %.3f, "jobs_per_s": %.0f, "p50_ms": %.2f, "p99_ms": %.2f, )"
                          R"("max_ms": %.2f})",
                          jobs, flags.batch, flags.clients, wall_s,
                          static_cast<double>(jobs) / wall_s, at_ms(0.5), at_ms(0.99), at_ms(1))
                          .c_str());
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) {
  traind::Flags flags;
  CLI::App app("Durable submits per second");
  app.add_option("--server", flags.server, "HOST:PORT of traind")->capture_default_str();
  app.add_option("--train", flags.train, "training file, absolute, below a data root")->required();
  app.add_option("--target", flags.target, "its target column")->required();
  app.add_option("--jobs", flags.jobs, "Jobs in all")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000'000));
  app.add_option("--clients", flags.clients, "at the same time")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--batch", flags.batch, "Jobs of a SubmitBatch; 0: each has a Submit of its own")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  app.add_flag("!--no-request-ids", flags.request_ids, "submit without request ids");
  CLI11_PARSE(app, argc, argv);
  return traind::Run(flags);
}
