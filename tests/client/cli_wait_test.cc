// trainctl wait: the ends of several Jobs, in the order in which they come.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <absl/synchronization/notification.h>
#include <absl/time/clock.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>
#include <utility>

#include "tests/client/cli_harness.h"

namespace traind {
namespace {

v1::Job Named(v1::Job job, const std::string& id, v1::JobState state) {
  job.set_id(id);
  job.set_state(state);
  return job;
}

class WaitTest : public CliTest {
 protected:
  WaitTest() {
    service_.on_get = [this](const v1::GetJobRequest& request, v1::Job* job) {
      const auto end = ends_.find(request.id());
      if (end == ends_.end()) {
        return grpc::Status(grpc::StatusCode::NOT_FOUND, "no Job " + request.id());
      }
      *job = over_.count(request.id()) > 0
                 ? Named(EndedJob(), request.id(), end->second)
                 : Named(RunningJob(), request.id(), v1::JOB_STATE_RUNNING);
      return grpc::Status::OK;
    };
    service_.on_watch = [this](grpc::ServerContext* context, const v1::WatchJobRequest& request,
                               const std::function<bool(const v1::Job&)>& send) {
      if (endless_.count(request.id()) > 0) return UntilCancelled(*context);
      send(Named(EndedJob(), request.id(), ends_.at(request.id())));
      return grpc::Status::OK;
    };
  }

  static grpc::Status UntilCancelled(grpc::ServerContext& context) {
    while (!context.IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  }

  std::map<std::string, v1::JobState> ends_ = {{"a", v1::JOB_STATE_SUCCEEDED},
                                               {"b", v1::JOB_STATE_SUCCEEDED},
                                               {"failed", v1::JOB_STATE_FAILED},
                                               {"cancelled", v1::JOB_STATE_CANCELLED}};
  std::set<std::string> over_;     // when they are looked up
  std::set<std::string> endless_;  // their streams bring nothing
};

TEST_F(WaitTest, EachEndedJobGetsALine) {
  over_ = {"b"};
  const Ran ran = Run({"wait", "a", "b", "a"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::vector<std::string> lines = absl::StrSplit(ran.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2u) << ran.out;
  EXPECT_TRUE(Has(lines[0], "b SUCCEEDED  quality DEGRADED")) << ran.out;
  EXPECT_TRUE(Has(lines[1], "a SUCCEEDED  quality DEGRADED")) << ran.out;
}

TEST_F(WaitTest, JsonIsOneDocumentAndJsonLinesComeOneByOne) {
  const auto document = nlohmann::json::parse(Run({"wait", "a", "failed", "-o", "json"}).out);
  ASSERT_EQ(document["jobs"].size(), 2u);
  EXPECT_EQ(Run({"wait", "a", "-o", "name"}).out, "a\n");
  endless_ = {"b"};  // lines that have come stay, whatever becomes of the wait
  const Ran lines = Run({"wait", "a", "b", "-o", "jsonl", "--timeout", "300ms"});
  EXPECT_EQ(lines.code, 3);
  EXPECT_EQ(nlohmann::json::parse(lines.out)["id"], "a");
}

TEST_F(WaitTest, TheExitCodeTellsTheWorstEnd) {
  EXPECT_EQ(Run({"wait", "a", "b"}).code, 0);
  EXPECT_EQ(Run({"wait", "cancelled", "a"}).code, 9);
  EXPECT_EQ(Run({"wait", "cancelled", "failed", "a"}).code, 1);
  EXPECT_EQ(Run({"wait", "failed", "cancelled", "a"}).code, 1);
}

TEST_F(WaitTest, AnyReturnsAtTheFirstEnd) {
  endless_ = {"a", "failed"};
  const Ran ran = Run({"wait", "--any", "failed", "a", "b"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.out, "b SUCCEEDED")) << ran.out;
  EXPECT_FALSE(Has(ran.out, "failed")) << ran.out;
}

TEST_F(WaitTest, TheTimeoutNamesTheJobsThatGoOn) {
  endless_ = {"b"};
  const Ran ran = Run({"wait", "a", "b", "--timeout", "300ms"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(Has(ran.out, "a SUCCEEDED")) << ran.out;
  EXPECT_TRUE(Has(ran.err, "these go on: b RUNNING\n")) << ran.err;
}

TEST_F(WaitTest, ARestartOfTheDaemonIsSurvivedAndToldOnce) {
  endless_ = {"a", "b"};
  std::atomic<int> watches{0};
  absl::Notification watched;
  const auto first = service_.on_watch;
  service_.on_watch = [&](grpc::ServerContext* context, const v1::WatchJobRequest& request,
                          const std::function<bool(const v1::Job&)>& send) {
    const int number = ++watches;
    if (number == 2) watched.Notify();
    if (number <= 2) return UntilCancelled(*context);
    send(Named(EndedJob(), request.id(), v1::JOB_STATE_SUCCEEDED));
    return grpc::Status::OK;
  };
  Ran ran;
  std::thread waiter([&] { ran = Run({"wait", "a", "b"}); });
  const bool both = watched.WaitForNotificationWithTimeout(absl::Seconds(20));
  server_.Stop();
  absl::SleepFor(absl::Milliseconds(300));  // so that both streams are lost; earlier is right, too
  server_.Start();
  waiter.join();
  EXPECT_TRUE(both);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.out, "a SUCCEEDED")) << ran.out;
  EXPECT_TRUE(Has(ran.out, "b SUCCEEDED")) << ran.out;
  const std::vector<std::string> lost = absl::StrSplit(ran.err, "lost traind");
  EXPECT_EQ(lost.size(), 2u) << ran.err;
}

TEST_F(WaitTest, ManyJobsAreFollowedByFewStreams) {
  std::vector<std::string> args = {"wait"};
  for (int i = 0; i < 70; ++i) {  // traind serves 64 streams of a connection
    const std::string id = absl::StrCat("job-", i);
    ends_[id] = v1::JOB_STATE_SUCCEEDED;
    args.push_back(id);
  }
  std::atomic<int> open{0}, most{0};
  service_.on_watch = [&](grpc::ServerContext*, const v1::WatchJobRequest& request,
                          const std::function<bool(const v1::Job&)>& send) {
    const int now = ++open;
    int before = most.load();
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
    absl::SleepFor(absl::Milliseconds(200));
    send(Named(EndedJob(), request.id(), v1::JOB_STATE_SUCCEEDED));
    --open;
    return grpc::Status::OK;
  };
  const Ran ran = Run(args);
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::vector<std::string> lines = absl::StrSplit(ran.out, '\n', absl::SkipEmpty());
  EXPECT_EQ(lines.size(), 70u);
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 32);
  args.push_back("--any");
  const Ran any = Run(args);
  EXPECT_EQ(any.code, 2);
  EXPECT_TRUE(Has(any.err, "--any takes at most 32 Jobs, not 70")) << any.err;
}

TEST_F(WaitTest, MistakesAreNamed) {
  EXPECT_EQ(Run({"wait", "a", "nobody"}).code, 5);
  EXPECT_EQ(Run({"wait"}).code, 2);
  EXPECT_EQ(Run({"wait", "a", "--all", "--any"}).code, 2);
  server_.Stop();
  EXPECT_EQ(Run({"wait", "a", "--timeout", "300ms"}).code, 7);
}

}  // namespace
}  // namespace traind
