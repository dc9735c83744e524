// Warm Ranks: how many, where, and when.
#include "tests/worker/daemon/worker_core_harness.h"

namespace traind::worker {
namespace {

class SparesTest : public CoreTest {
 protected:
  SparesTest() {
    options_.warm_spares = true;
    Make();
  }
  size_t dead_ = 0;
};

TEST_F(SparesTest, EverySlotGetsAWarmRankAtOnce) {
  Tick();
  EXPECT_EQ(spawned_.size(), 2u);
  Ready(1);
  Ready(2);
  EXPECT_EQ(core_->WarmRanks(), 2);
  RunUntil(now_ + absl::Minutes(10));
  EXPECT_EQ(spawned_.size(), 2u);
}

TEST_F(SparesTest, AUsedSpareIsReplacedAfterAWhile) {
  Tick();
  Ready(1);
  Ready(2);
  Start(Train(7));
  Start(Train(8, {1}));
  EXPECT_EQ(Sent<rp::Train>().size(), 2u);
  Tick(absl::Seconds(1));
  EXPECT_EQ(spawned_.size(), 2u) << "not while a task starts";
  RunUntil(now_ + absl::Seconds(3));
  EXPECT_EQ(spawned_.size(), 3u) << "one in reserve for two that train";
}

TEST_F(SparesTest, WithoutMemoryThereIsNoReserve) {
  Tick();
  Ready(1);
  Ready(2);
  available_ = 1 << 20;
  Start(Train(7));
  Start(Train(8, {1}));
  RunUntil(now_ + absl::Seconds(10));
  EXPECT_EQ(spawned_.size(), 2u);
}

TEST_F(SparesTest, SparesThatDieComeBackAtGrowingDistances) {
  Tick();
  std::vector<absl::Duration> starts;
  for (int i = 0; i < 8; ++i) {
    for (size_t p = dead_; p < spawned_.size(); ++p) {
      Die(spawned_[p].process, {ExitStatus::kExited, 1, ""});
    }
    dead_ = spawned_.size();
    Tick();
    starts.push_back(core_->NextWakeup() - now_);
    RunUntil(core_->NextWakeup());
    ASSERT_GT(spawned_.size(), dead_);
  }
  EXPECT_GE(starts.front(), absl::Milliseconds(500));
  EXPECT_EQ(starts.back(), absl::Minutes(1));
}

TEST_F(SparesTest, RanksThatCameBackBeyondTheNeedAreSentHome) {
  options_.warm_spares = true;
  Tick();
  Ready(1);
  Ready(2);
  // Reserves come while tasks run; then all of them return.
  Start(Train(7));
  Start(Train(8, {1}));
  RunUntil(now_ + absl::Seconds(5));
  Ready(3);
  Start(Train(9));  // overlapping slots happen while traind takes one for lost
  RunUntil(now_ + absl::Seconds(5));
  Ready(4);
  for (const int64_t attempt : {7, 8, 9}) {
    Say(attempt - 6, About<rp::Finished>(attempt));
    Ready(attempt - 6);
  }
  Tick();
  EXPECT_EQ(core_->WarmRanks(), 3);
  EXPECT_EQ(Sent<rp::Exit>().size(), 1u);
}

class GpuTest : public CoreTest {
 protected:
  GpuTest() : CoreTest({{"cuda", "H", "GPU-a", 1}, {"cuda", "H", "GPU-b", 1}}) {
    options_.warm_spares = true;
    options_.cores = 16;
    Make();
  }
};

TEST_F(GpuTest, EachRankSeesItsOwnGpuAndABusyOneGetsNoSpare) {
  Tick();
  ASSERT_EQ(spawned_.size(), 2u);
  EXPECT_EQ(spawned_[0].slot, 0);
  EXPECT_EQ(spawned_[1].slot, 1);
  Ready(1);
  Ready(2);
  Start(Train(7, {1}));
  ASSERT_EQ(Sent<rp::Train>().size(), 1u);
  EXPECT_EQ(sent_.back().process, 2);
  EXPECT_EQ(Sent<rp::Train>()[0].device, "cuda");
  EXPECT_EQ(Sent<rp::Train>()[0].threads, 8);
  RunUntil(now_ + absl::Seconds(10));
  EXPECT_EQ(spawned_.size(), 2u);
}

}  // namespace
}  // namespace traind::worker
