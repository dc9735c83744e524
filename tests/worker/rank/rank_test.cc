// trainrank over pipes, as a Worker drives it: the contract of all programs that train, and gangs.
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/reserved_port.h"
#include "tests/contract/fold_trainer_contract.h"
#include "tests/worker/fixture/fold_fixture.h"
#include "worker/rank_protocol/messages.h"

namespace traind {
namespace {

namespace rp = rank_protocol;

constexpr char kRank[] = "worker/trainrank";
constexpr char kSpec[] =
    R"({"task":{"type":"classification"},"model":{"mlp":{"hidden":[16]}},"train":{"patience":0}})";

INSTANTIATE_TEST_SUITE_P(Network, FoldTrainerContractTest,
                         testing::Values(TrainerProgram{kRank, kSpec}));

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
    train.spec_json = kSpec;
    train.table = table_;
    train.fold = 0;
    train.epochs = epochs;
    return train;
  }
  static constexpr int kForever = 10'000'000;

  std::string state_, table_;
};

class RankGangTest : public RankTest {
 protected:
  // Starts a gang of two on a run without end, and waits until it trains.
  void Start(TaskProgram& zero, TaskProgram& one) {
    rp::Train train = Task(1, kForever);
    train.world_size = 2;
    train.rendezvous.port = ReservePort();
    train.rendezvous.timeout_ms = 5000;
    zero.Say(train);
    train.rank = 1;
    one.Say(train);
    ASSERT_TRUE(zero.Await<rp::Epoch>().has_value());
  }
};

TEST_F(RankGangTest, ASoftStopToBothEndsBothAndRankZeroPredicts) {
  TaskProgram zero(kRank), one(kRank);
  Start(zero, one);
  one.Say(rp::Stop{1, true});
  zero.Say(rp::Stop{1, true});
  EXPECT_TRUE(zero.Await<rp::Finished>().has_value());
  EXPECT_TRUE(one.Await<rp::Finished>().has_value());
  EXPECT_GE(zero.Count<rp::FoldSaved>(), 1);
  EXPECT_EQ(one.Count<rp::FoldSaved>(), 0);
}

TEST_F(RankGangTest, ARankThatDiesEndsTheOthersTaskWithinSeconds) {
  TaskProgram zero(kRank), one(kRank);
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
  TaskProgram zero(kRank), one(kRank);
  Start(zero, one);
  one.Signal(SIGSTOP);
  const auto failed = zero.Await<rp::Failed>();
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->reason, AttemptEndReason::kCollectiveTimeout) << failed->message;
}

// A listening port must not be reachable from outside.
TEST_F(RankGangTest, TheRendezvousListensOnItsHostAlone) {
  TaskProgram zero(kRank);
  rp::Train train = Task(1, kForever);
  train.world_size = 2;
  train.rendezvous.port = ReservePort();
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
