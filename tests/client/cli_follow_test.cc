// Following a Job: waiting, watching, Ctrl-C, a traind that restarts.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/synchronization/notification.h>
#include <absl/time/clock.h>

#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "tests/client/cli_harness.h"

namespace traind {
namespace {

TEST_F(CliTest, WaitPrintsOneDocumentAndCopiesThePredictions) {
  WatchToTheEnd();
  std::filesystem::create_directories(folder_ / "out");
  const Ran ran =
      Run({"submit", "-f", Path("job.yaml"), "--set", "output=out/p.csv", "--wait", "-o", "json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(nlohmann::json::parse(ran.out)["state"], "SUCCEEDED");
  EXPECT_EQ(Text(Path("out/p.csv")), service_.artifact);
}

TEST_F(CliTest, AnOutputThatCannotBeWrittenIsRefusedBeforeTheTraining) {
  WatchToTheEnd();
  const std::vector<std::string> submit = {"submit", "-f", Path("job.yaml"), "--wait", "--set"};
  const auto refusal = [&](const std::string& output) {
    std::vector<std::string> args = submit;
    args.push_back("output=" + output);
    return Run(args);
  };
  const Ran ran = refusal("out/p.csv");
  EXPECT_NE(ran.code, 0);
  EXPECT_TRUE(Has(
      ran.err, "--set output: error: output: cannot write " + Path("out/p.csv") + ": No such file"))
      << ran.err;
  EXPECT_TRUE(Has(ran.err, "nothing submitted")) << ran.err;
  EXPECT_TRUE(Has(refusal(folder_.string()).err, "Is a directory"));
  EXPECT_TRUE(submitted().empty());
  EXPECT_EQ(refusal("p.csv").code, 0);
  const auto files = std::filesystem::directory_iterator(folder_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 2) << "job.yaml and p.csv";
  const Ran later = Run({"predict", "digits", "--data", "x.csv", "--out", Path("out/p.csv")});
  EXPECT_TRUE(Has(later.err, "cannot write " + Path("out/p.csv"))) << later.err;
}

TEST_F(CliTest, PredictionsThatCouldNotBeCopiedCanBeFetched) {
  std::filesystem::create_directories(folder_ / "out");
  service_.on_watch = [this](grpc::ServerContext*, const v1::WatchJobRequest&,
                             const std::function<bool(const v1::Job&)>& send) {
    std::filesystem::remove_all(folder_ / "out");  // while the Job runs
    send(EndedJob());
    return grpc::Status::OK;
  };
  const Ran ran = Run({"submit", "-f", Path("job.yaml"), "--set", "output=out/p.csv", "--wait"});
  EXPECT_EQ(ran.code, 1) << ran.err;
  EXPECT_TRUE(Has(ran.err, "cannot write " + Path("out/p.csv") + ": No such file")) << ran.err;
  EXPECT_TRUE(Has(ran.err, " fetch digits-7f3k2a --to FILE")) << ran.err;
}

TEST_F(CliTest, FollowSaysEachDecisionOnceAndSumsUp) {
  WatchToTheEnd();
  const Ran ran = Run({"submit", "-f", Path("job.yaml"), "--follow"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const std::vector<std::string> parts = absl::StrSplit(ran.err, "B2: 5 folds -> 4 folds");
  EXPECT_EQ(parts.size(), 2u) << ran.err;
  EXPECT_TRUE(Has(ran.err, "fold 3 12/40 ep")) << ran.err;
  EXPECT_TRUE(Has(ran.out, "digits-7f3k2a SUCCEEDED  quality DEGRADED")) << ran.out;
}

TEST_F(CliTest, ATerminalGetsBarsThatAreRedrawn) {
  WatchToTheEnd();
  terminal_ = true;
  const Ran ran = Run({"watch", "digits", "--color", "never"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.err, "fold 3  31%|")) << ran.err;
  EXPECT_TRUE(Has(ran.err, "\x1b[2A\r\x1b[J")) << ran.err;
  EXPECT_FALSE(Has(ran.out, "\x1b")) << ran.out;
  terminal_ = false;
  EXPECT_EQ(Run({"watch", "digits", "--quiet"}).err, "");
}

TEST_F(CliTest, TheEndOfTheJobIsTheExitCode) {
  for (const auto& [state, exit_code] : std::vector<std::pair<v1::JobState, int>>{
           {v1::JOB_STATE_FAILED, 1}, {v1::JOB_STATE_CANCELLED, 9}, {v1::JOB_STATE_SUCCEEDED, 0}}) {
    service_.on_watch = [state = state](grpc::ServerContext*, const v1::WatchJobRequest&,
                                        const std::function<bool(const v1::Job&)>& send) {
      v1::Job job = EndedJob();
      job.set_state(state);
      send(job);
      return grpc::Status::OK;
    };
    EXPECT_EQ(Run({"watch", "digits"}).code, exit_code);
  }
}

TEST_F(CliTest, WaitingEndsAtTheTimeout) {
  service_.on_watch = [](grpc::ServerContext* context, const v1::WatchJobRequest&,
                         const std::function<bool(const v1::Job&)>&) {
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  };
  const Ran ran = Run({"watch", "digits", "--timeout", "300ms"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(Has(ran.err, "still RUNNING")) << ran.err;
}

TEST_F(CliTest, CtrlCDetaches) {
  service_.on_watch = [this](grpc::ServerContext* context, const v1::WatchJobRequest&,
                             const std::function<bool(const v1::Job&)>&) {
    EXPECT_TRUE(held_);
    interrupted_ = true;
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
    return grpc::Status::CANCELLED;
  };
  const Ran ran = Run({"submit", "-f", Path("job.yaml"), "--follow"});
  EXPECT_EQ(ran.code, 130);
  EXPECT_TRUE(Has(ran.err, "trainctl watch digits-7f3k2a")) << ran.err;
  EXPECT_FALSE(held_);
  // Where a flag led to the server, the next command needs it, too.
  interrupted_ = false;
  const Ran named =
      Run({"--server", server_.address(), "submit", "-f", Path("job.yaml"), "--follow"});
  const std::string again = absl::StrCat("trainctl --server ", server_.address(), " watch digits-");
  EXPECT_TRUE(Has(named.err, again)) << named.err;
}

TEST_F(CliTest, ARestartOfTheDaemonIsSurvivedAndSaidOnce) {
  absl::Notification watched;
  std::atomic<int> watches{0};
  service_.on_watch = [&](grpc::ServerContext* context, const v1::WatchJobRequest& request,
                          const std::function<bool(const v1::Job&)>& send) {
    if (++watches == 1) {
      v1::Job job = RunningJob();
      job.set_version(18);
      send(job);
      watched.Notify();
      while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(5));
      return grpc::Status::CANCELLED;
    }
    EXPECT_EQ(request.since_version(), 18);
    send(EndedJob());
    return grpc::Status::OK;
  };
  Ran ran;
  std::thread follower([&] { ran = Run({"watch", "digits"}); });
  ASSERT_TRUE(watched.WaitForNotificationWithTimeout(absl::Seconds(20)));
  server_.Stop();
  server_.Start();
  follower.join();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_GE(watches, 2);
  const std::vector<std::string> lost = absl::StrSplit(ran.err, "lost traind");
  EXPECT_EQ(lost.size(), 2u) << ran.err;
  EXPECT_TRUE(Has(ran.err, "connected again")) << ran.err;
}

TEST_F(CliTest, WatchWaitsForADaemonThatIsNotThereYet) {
  WatchToTheEnd();
  server_.Stop();
  Ran ran;
  std::thread follower([&] { ran = Run({"watch", "digits", "--timeout", "20s"}); });
  absl::SleepFor(absl::Milliseconds(300));  // so that it finds nobody; earlier is right, too
  server_.Start();
  follower.join();
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.err, "trainctl waits up to 20s for it")) << ran.err;
}

TEST_F(CliTest, WatchGivesUpWhereNoDaemonComes) {
  server_.Stop();
  const Ran ran = Run({"watch", "digits", "--timeout", "300ms"});
  EXPECT_EQ(ran.code, 7);
  EXPECT_TRUE(Has(ran.err, "trainctl waits up to")) << ran.err;
  EXPECT_TRUE(Has(ran.err, "traind --standalone")) << ran.err;
}

TEST_F(CliTest, AJobThatVanishesWhileWatchedIsAnError) {
  service_.on_watch = [](grpc::ServerContext*, const v1::WatchJobRequest&,
                         const std::function<bool(const v1::Job&)>&) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "gone");
  };
  EXPECT_EQ(Run({"watch", "digits"}).code, 5);
}

}  // namespace
}  // namespace traind
