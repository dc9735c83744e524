// Many Workers at once, and Workers that do not read.
#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/base/engine_version.h"
#include "tests/server/rpc/rpc_house.h"

namespace traind {
namespace {

using M = v1::CoordinatorMessage;

constexpr int kWorkers = 300;
constexpr int kMessages = 20;

int Threads() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    int threads = 0;
    if (absl::StartsWith(line, "Threads:") && absl::SimpleAtoi(line.substr(8), &threads)) {
      return threads;
    }
  }
  return 0;
}

// A Worker without a thread: it notes what comes, and reads only while it `reads`.
class QuietWorker final
    : public grpc::ClientBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage> {
 public:
  QuietWorker(const RpcHouse& house, std::string id, bool reads, int facts = kMessages)
      : id_(std::move(id)), reads_(reads), stub_(v1::WorkerService::NewStub(house.Connect())) {
    v1::WorkerMessage hello;
    hello.mutable_hello()->set_worker_id(id_);
    hello.mutable_hello()->set_boot_id("boot-1");
    hello.mutable_hello()->set_engine(kEngineVersion);
    to_send_.push_back(std::move(hello));
    // Facts of Attempts that nobody knows are acknowledged, too.
    for (int i = 1; i <= facts; ++i) {
      v1::WorkerMessage fact;
      fact.set_sequence(i);
      fact.mutable_report()->set_attempt(1000 + i);
      fact.mutable_report()->mutable_floor_ready()->set_model("logistic");
      to_send_.push_back(std::move(fact));
    }
    std::reverse(to_send_.begin(), to_send_.end());
    stub_->async()->Attach(&context_, this);
    AddHold();  // so that a Worker that neither reads nor writes stays
    if (reads_) StartRead(&incoming_);
    StartWrite(&to_send_.back());
    StartCall();
  }
  // Ends the call, and waits for its end.
  ~QuietWorker() override {
    context_.TryCancel();
    RemoveHold();
    EXPECT_TRUE(Eventually([this] { return over(); }));
  }

  const std::string& id() const { return id_; }
  bool welcomed() const {
    absl::MutexLock lock(&mutex_);
    return !seen_.empty();
  }
  int64_t acknowledged() const {
    absl::MutexLock lock(&mutex_);
    return acknowledged_;
  }
  std::vector<M> seen() const {
    absl::MutexLock lock(&mutex_);
    return seen_;
  }
  bool over() const {
    absl::MutexLock lock(&mutex_);
    return over_;
  }
  // The end of the stream is told to those who read it.
  void ReadOn() { StartRead(&incoming_); }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return;
    {
      absl::MutexLock lock(&mutex_);
      if (incoming_.has_ack()) acknowledged_ = incoming_.ack().sequence();
      seen_.push_back(incoming_);
    }
    StartRead(&incoming_);
  }
  void OnWriteDone(bool ok) override {
    to_send_.pop_back();
    if (ok && !to_send_.empty()) StartWrite(&to_send_.back());
  }
  void OnDone(const grpc::Status& /*status*/) override {
    absl::MutexLock lock(&mutex_);
    over_ = true;
  }

  const std::string id_;
  const bool reads_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  grpc::ClientContext context_;
  std::vector<v1::WorkerMessage> to_send_;  // the next one is the last
  v1::CoordinatorMessage incoming_;
  mutable absl::Mutex mutex_;
  std::vector<M> seen_ ABSL_GUARDED_BY(mutex_);
  int64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
};

bool Attached(RpcHouse& house, const std::string& id) {
  const auto workers = house.gateway().Workers();
  return std::any_of(workers.begin(), workers.end(),
                     [&](const auto& w) { return w.id() == id && w.connected(); });
}

StopCommand Stop(const std::string& worker, int64_t attempt, size_t bytes = 10) {
  StopCommand command;
  command.worker = worker;
  command.attempt = attempt;
  command.why = std::string(bytes, 'x');
  return command;
}

TEST(WorkerStreamsTest, ManyWorkersTakeNoThreadsAndEachIsToldAllInOrder) {
  RpcHouse house;
  int before = 0;
  {
    // gRPC's own threads are there after the first one.
    QuietWorker first(house, "first", true);
    ASSERT_TRUE(Eventually([&] { return first.acknowledged() == kMessages; }));
    before = Threads();
  }
  std::vector<std::unique_ptr<QuietWorker>> workers;
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<QuietWorker>(house, absl::StrCat("w", i), true));
  }
  ASSERT_TRUE(Eventually([&] {
    return std::all_of(workers.begin(), workers.end(),
                       [](const auto& w) { return w->acknowledged() == kMessages; });
  }));
  EXPECT_LT(Threads() - before, 64) << "before: " << before;
  for (int i = 1; i <= kMessages; ++i) {
    for (const auto& worker : workers) house.gateway().Send(Stop(worker->id(), i));
  }
  const auto last = [](const auto& w) {
    const std::vector<M> seen = w->seen();
    return seen.back().has_stop() && seen.back().stop().attempt() == kMessages;
  };
  ASSERT_TRUE(Eventually([&] { return std::all_of(workers.begin(), workers.end(), last); }));
  for (const auto& worker : workers) {
    const std::vector<M> seen = worker->seen();
    EXPECT_TRUE(seen.front().has_welcome());
    int64_t acknowledged = 0, told = 0;
    for (const M& message : seen) {
      if (message.has_ack()) {
        EXPECT_GT(message.ack().sequence(), acknowledged);
        acknowledged = message.ack().sequence();
      } else if (message.has_stop() && message.stop().attempt() <= kMessages) {
        EXPECT_EQ(message.stop().attempt(), ++told);
      }
    }
    EXPECT_EQ(acknowledged, kMessages);
    EXPECT_EQ(told, kMessages);
  }
  EXPECT_LT(Threads() - before, 64) << "before: " << before;
}

TEST(WorkerStreamsTest, TheServerStopsWhileManyAreAttached) {
  auto house = std::make_unique<RpcHouse>();
  std::vector<std::unique_ptr<QuietWorker>> workers;
  for (int i = 0; i < 50; ++i) {
    workers.push_back(std::make_unique<QuietWorker>(*house, absl::StrCat("w", i), i % 2 == 0));
  }
  ASSERT_TRUE(Eventually([&] {
    return std::all_of(workers.begin(), workers.end(),
                       [&](const auto& w) { return Attached(*house, w->id()); });
  }));
  // Something is being written to each that does not read.
  for (const auto& worker : workers) {
    for (int i = 0; i < 5; ++i) house->gateway().Send(Stop(worker->id(), 1, 1 << 20));
  }
  house.reset();
  for (const auto& worker : workers) {
    if (!worker->welcomed()) worker->ReadOn();
  }
}

TEST(WorkerStreamsTest, AWorkerThatDoesNotReadIsCutOffAndDoesNotHoldUpOthers) {
  WorkerGatewayOptions options;
  options.stream = {100, 1 << 20};
  RpcHouse house(options);
  QuietWorker deaf(house, "deaf", false);
  QuietWorker good(house, "good", true);
  ASSERT_TRUE(Eventually([&] { return Attached(house, "deaf") && good.welcomed(); }));
  // What waits for it is bounded: the connection takes some MiB, and the queue one.
  constexpr size_t kBytes = 64 << 10;
  int64_t told = 0;
  ASSERT_TRUE(Eventually([&] {
    house.gateway().Send(Stop("deaf", ++told, kBytes));
    house.gateway().Send(Stop("good", told));
    return !Attached(house, "deaf");
  }));
  EXPECT_LT(static_cast<size_t>(told) * kBytes, size_t{256} << 20);
  const auto all = [&] {
    const std::vector<M> seen = good.seen();
    return seen.back().has_stop() && seen.back().stop().attempt() == told;
  };
  EXPECT_TRUE(Eventually(all));
  EXPECT_TRUE(Attached(house, "good"));
  // It may come back at once.
  QuietWorker again(house, "deaf", true);
  EXPECT_TRUE(Eventually([&] { return again.acknowledged() == kMessages; }));
}

TEST(WorkerStreamsTest, AQuestionThatFindsNoRoomIsRefusedAndTheStreamGoesOn) {
  WorkerGatewayOptions options;
  options.stream = {2, 64 << 20};
  RpcHouse house(options);
  QuietWorker deaf(house, "deaf", false, /*facts=*/0);
  ASSERT_TRUE(Eventually([&] { return Attached(house, "deaf"); }));
  v1::AskRows ask;
  ask.set_attempt(7);
  ask.add_columns(std::string(1 << 20, 'x'));
  absl::Status last;
  // Questions that are under way are not answered; one that finds no room is refused at once.
  ASSERT_TRUE(Eventually([&] {
    last = house.gateway().Ask("deaf", ask, absl::ZeroDuration()).status();
    return absl::StrContains(last.message(), "too much waits");
  })) << last;
  EXPECT_TRUE(absl::IsUnavailable(last)) << last;
  EXPECT_TRUE(Attached(house, "deaf"));
}

}  // namespace
}  // namespace traind
