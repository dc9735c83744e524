// Drives the real trainrank over pipes, as a Worker does.
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "tests/free_port.h"
#include "tests/worker/fixture/fold_fixture.h"
#include "worker/rank_protocol/line_channel.h"
#include "worker/rank_protocol/messages.h"

extern char** environ;

namespace traind {
namespace {

namespace rp = rank_protocol;

// Loaded machines are slow; a hang still ends the test.
constexpr absl::Duration kPatience = absl::Seconds(60);

class RankProcess {
 public:
  RankProcess() {
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::string program = "worker/trainrank";
    char* argv[] = {program.data(), nullptr};
    EXPECT_EQ(posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    channel_ = std::make_unique<rp::LineChannel>(out[0], in[1]);
  }
  ~RankProcess() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  void Say(const rp::ToProcess& message) { SayLine(rp::Encode(message)); }
  void SayLine(const std::string& line) {
    const absl::Status said = channel_->WriteLine(line, kPatience);
    EXPECT_TRUE(said.ok()) << said.ToString();
  }

  // The next message of that type; others before it are kept in `heard`. A Failed
  // that is not waited for ends the wait.
  template <class M>
  std::optional<M> Await() {
    while (true) {
      const auto line = channel_->ReadLine(kPatience);
      if (!line.ok()) {
        ADD_FAILURE() << line.status().ToString();
        return std::nullopt;
      }
      const auto message = rp::DecodeFromProcess(*line);
      if (!message.ok()) {
        ADD_FAILURE() << "no protocol: " << *line;
        return std::nullopt;
      }
      heard.push_back(*message);
      if (const M* found = std::get_if<M>(&*message)) return *found;
      if (const auto* failed = std::get_if<rp::Failed>(&*message)) {
        ADD_FAILURE() << Name(failed->reason) << ": " << failed->message;
        return std::nullopt;
      }
    }
  }

  template <class M>
  int Count() const {
    int count = 0;
    for (const auto& message : heard) count += std::holds_alternative<M>(message);
    return count;
  }

  void CloseInput() { channel_.reset(); }
  void Signal(int signal) { kill(pid_, signal); }
  pid_t pid() const { return pid_; }

  // Its wait status; nullopt: still alive after kPatience.
  std::optional<int> AwaitExit() {
    const absl::Duration until = SystemClock().MonotonicNow() + kPatience;
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (SystemClock().MonotonicNow() > until) return std::nullopt;
      usleep(2000);
    }
    pid_ = 0;
    return status;
  }

  std::vector<rp::FromProcess> heard;

 private:
  pid_t pid_ = 0;
  std::unique_ptr<rp::LineChannel> channel_;
};

class RankTest : public testing::Test {
 protected:
  void SetUp() override {
    state_ = NewStateDir();
    table_ = WriteState(state_, MakeRows({}), MakeFolds({}));
  }

  rp::Train Task(int64_t attempt, int epochs) {
    rp::Train train;
    train.attempt = attempt;
    train.job = "job";
    train.state_dir = state_;
    train.spec_json = R"({"task":{"type":"classification"},"model":{"mlp":{"hidden":[16]}},)"
                      R"("train":{"patience":0}})";
    train.table = table_;
    train.fold = 0;
    train.epochs = epochs;
    return train;
  }
  static constexpr int kForever = 10'000'000;

  std::string state_, table_;
};

TEST_F(RankTest, ReadyTrainFinishedReadyInTheOrderOfTheProtocol) {
  RankProcess rank;
  const auto ready = rank.Await<rp::Ready>();
  ASSERT_TRUE(ready.has_value());
  EXPECT_EQ(ready->pid, rank.pid());
  EXPECT_EQ(ready->device, "cpu");
  EXPECT_FALSE(ready->engine.empty());
  rank.Say(Task(5, 3));
  ASSERT_TRUE(rank.Await<rp::Finished>().has_value());
  ASSERT_TRUE(rank.Await<rp::Ready>().has_value());
  ASSERT_GE(rank.heard.size(), 7u);
  EXPECT_TRUE(std::holds_alternative<rp::Started>(rank.heard[1]));
  EXPECT_EQ(rank.Count<rp::Probe>(), 1);
  EXPECT_EQ(rank.Count<rp::Epoch>(), 3);
  EXPECT_GE(rank.Count<rp::CheckpointSaved>(), 1);
  rank.Say(Task(6, 1));  // warm, and again
  ASSERT_TRUE(rank.Await<rp::Finished>().has_value());
  rank.Say(rp::Exit{});
  EXPECT_EQ(rank.AwaitExit(), 0);
}

TEST_F(RankTest, AReplanEndsARunThatWouldNotEnd) {
  RankProcess rank;
  rank.Say(Task(1, kForever));
  ASSERT_TRUE(rank.Await<rp::Epoch>().has_value());
  rank.Say(rp::Replan{1, 1, -1});  // behind us already
  ASSERT_TRUE(rank.Await<rp::Finished>().has_value());
  const rp::FoldSaved* saved = nullptr;
  for (const auto& message : rank.heard) {
    if (const auto* m = std::get_if<rp::FoldSaved>(&message)) saved = m;
  }
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->last);
  EXPECT_TRUE(saved->complete);
}

TEST_F(RankTest, AHardStopChecksPointsAndPredictsNothing) {
  RankProcess rank;
  rank.Say(Task(1, kForever));
  ASSERT_TRUE(rank.Await<rp::Probe>().has_value());
  rank.Say(rp::Stop{1, false});
  ASSERT_TRUE(rank.Await<rp::Finished>().has_value());
  EXPECT_GE(rank.Count<rp::CheckpointSaved>(), 1);
  for (const auto& message : rank.heard) {
    const auto* saved = std::get_if<rp::FoldSaved>(&message);
    EXPECT_FALSE(saved != nullptr && saved->last);
  }
  EXPECT_TRUE(rank.Await<rp::Ready>().has_value());
}

TEST_F(RankTest, OrdersForAnotherAttemptAreNotObeyed) {
  RankProcess rank;
  rank.Say(Task(2, 3));
  rank.Say(rp::Stop{1, false});
  ASSERT_TRUE(rank.Await<rp::Finished>().has_value());
  EXPECT_EQ(rank.Count<rp::Epoch>(), 3);
}

TEST_F(RankTest, TheEndOfInputEndsItWhileItTrains) {
  RankProcess rank;
  rank.Say(Task(1, kForever));
  ASSERT_TRUE(rank.Await<rp::Epoch>().has_value());
  rank.CloseInput();
  EXPECT_TRUE(rank.AwaitExit().has_value());
}

TEST_F(RankTest, TheEndOfInputEndsItWhileItIsIdle) {
  RankProcess rank;
  ASSERT_TRUE(rank.Await<rp::Ready>().has_value());
  rank.CloseInput();
  EXPECT_EQ(rank.AwaitExit(), 0);
}

TEST_F(RankTest, AFailedTaskNamesItsReasonAndTheRankGoesOn) {
  RankProcess rank;
  rp::Train train = Task(1, 1);
  train.table = "cache/none.table";
  rank.Say(train);
  ASSERT_TRUE(rank.Await<rp::Ready>().has_value());
  const auto failed = rank.Await<rp::Failed>();
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->attempt, 1);
  EXPECT_TRUE(absl::StrContains(failed->message, "none.table")) << failed->message;
  rank.Say(Task(2, 1));
  EXPECT_TRUE(rank.Await<rp::Finished>().has_value());
}

TEST_F(RankTest, LinesThatAreNoMessageAreToldAndPassedOver) {
  RankProcess rank;
  rank.SayLine("{\"type\":\"dance\"}");
  rank.SayLine("]");
  rank.Say(Task(1, 1));
  ASSERT_TRUE(rank.Await<rp::Finished>().has_value());
  EXPECT_GE(rank.Count<rp::LogText>(), 2);
}

TEST_F(RankTest, ARankKilledInMidTrainingLeavesACheckpointToGoOnFrom) {
  std::string manifest;
  int64_t step = 0;
  {
    RankProcess rank;
    rank.Say(Task(1, kForever));
    const auto saved = rank.Await<rp::CheckpointSaved>();
    ASSERT_TRUE(saved.has_value());
    manifest = saved->manifest;
    step = saved->step;
    rank.Signal(SIGKILL);
    ASSERT_TRUE(rank.AwaitExit().has_value());
  }
  RankProcess rank;
  rp::Train train = Task(2, kForever);
  train.resume = manifest;
  train.stop_ms = 0;
  rank.Say(train);
  const auto started = rank.Await<rp::Started>();
  ASSERT_TRUE(started.has_value());
  EXPECT_EQ(started->first_step, step);
  const auto saved = rank.Await<rp::FoldSaved>();
  ASSERT_TRUE(saved.has_value());
  EXPECT_EQ(saved->stopped_by, StopCause::kTime);
}

class RankGangTest : public RankTest {
 protected:
  // Starts a gang of two on a run without end, and waits until it trains.
  void Start(RankProcess& zero, RankProcess& one) {
    rp::Train train = Task(1, kForever);
    train.world_size = 2;
    train.rendezvous.port = FreePort();
    train.rendezvous.timeout_ms = 5000;
    zero.Say(train);
    train.rank = 1;
    one.Say(train);
    ASSERT_TRUE(zero.Await<rp::Epoch>().has_value());
  }
};

TEST_F(RankGangTest, ASoftStopToBothEndsBothAndRankZeroPredicts) {
  RankProcess zero, one;
  Start(zero, one);
  one.Say(rp::Stop{1, true});
  zero.Say(rp::Stop{1, true});
  EXPECT_TRUE(zero.Await<rp::Finished>().has_value());
  EXPECT_TRUE(one.Await<rp::Finished>().has_value());
  EXPECT_GE(zero.Count<rp::FoldSaved>(), 1);
  EXPECT_EQ(one.Count<rp::FoldSaved>(), 0);
}

TEST_F(RankGangTest, ARankThatDiesEndsTheOthersTaskWithinSeconds) {
  RankProcess zero, one;
  Start(zero, one);
  one.Signal(SIGKILL);
  const absl::Duration killed = SystemClock().MonotonicNow();
  const auto failed = zero.Await<rp::Failed>();
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->reason, AttemptEndReason::kCollectiveTimeout) << failed->message;
  EXPECT_LT(SystemClock().MonotonicNow() - killed, absl::Seconds(20));
  EXPECT_TRUE(zero.Await<rp::Ready>().has_value());
  zero.Say(Task(2, 1));  // and it is of use again
  EXPECT_TRUE(zero.Await<rp::Finished>().has_value());
}

TEST_F(RankGangTest, ARankThatStandsStillEndsTheOthersTaskByTheTimeout) {
  RankProcess zero, one;
  Start(zero, one);
  one.Signal(SIGSTOP);
  const auto failed = zero.Await<rp::Failed>();
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->reason, AttemptEndReason::kCollectiveTimeout) << failed->message;
}

// What listens must not be reachable from outside.
TEST_F(RankGangTest, TheRendezvousListensOnItsHostAlone) {
  RankProcess zero;
  rp::Train train = Task(1, kForever);
  train.world_size = 2;
  train.rendezvous.port = FreePort();
  zero.Say(train);
  const std::string port = absl::StrCat(absl::Hex(train.rendezvous.port, absl::kZeroPad4));
  const std::string loopback = absl::StrCat("0100007F:", absl::AsciiStrToUpper(port));
  const absl::Duration until = SystemClock().MonotonicNow() + kPatience;
  std::string tcp, tcp6;
  do {
    tcp = *ReadFile("/proc/net/tcp");
    tcp6 = ReadFile("/proc/net/tcp6").value_or("");
    usleep(5000);
  } while (!absl::StrContains(tcp, loopback) && SystemClock().MonotonicNow() < until);
  EXPECT_TRUE(absl::StrContains(tcp, loopback)) << tcp;
  EXPECT_FALSE(absl::StrContains(tcp, absl::StrCat("00000000:", absl::AsciiStrToUpper(port))));
  EXPECT_FALSE(absl::StrContains(
      tcp6, absl::StrCat("00000000000000000000000000000000:", absl::AsciiStrToUpper(port))));
}

}  // namespace
}  // namespace traind
