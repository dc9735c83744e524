#include "worker/inference/commit_cost.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>

namespace traind {
namespace {

// Each look at it takes `step`.
class SteppingClock final : public Clock {
 public:
  absl::Time WallNow() const override { return absl::UnixEpoch(); }
  absl::Duration MonotonicNow() const override { return now += step; }
  mutable absl::Duration now;
  absl::Duration step;
};

class CommitCostTest : public testing::Test {
 protected:
  CommitCostTest() {
    std::string pattern = testing::TempDir() + "/cost.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~CommitCostTest() override { std::filesystem::remove_all(folder_); }

  // Times twelve files that take so long each.
  void Time(absl::Duration each) {
    clock_.now += absl::Seconds(10);
    clock_.step = 12 * each;
    EXPECT_TRUE(cost().Update().ok());
  }
  CommitCost& cost() {
    if (!cost_) cost_ = std::make_unique<CommitCost>(folder_, clock_);
    return *cost_;
  }

  std::string folder_;
  SteppingClock clock_;
  std::unique_ptr<CommitCost> cost_;
};

TEST_F(CommitCostTest, ADiskThatGrowsSlowIsNoticedAndForgottenOnlyAfterAWhile) {
  EXPECT_EQ(cost().of_file(), absl::ZeroDuration());
  Time(absl::Milliseconds(1));
  EXPECT_EQ(cost().of_file(), absl::Milliseconds(1));
  Time(absl::Milliseconds(5));
  EXPECT_EQ(cost().of_file(), absl::Milliseconds(5));
  for (int i = 0; i < 3; ++i) {
    Time(absl::Milliseconds(2));
    EXPECT_EQ(cost().of_file(), absl::Milliseconds(5));
  }
  Time(absl::Milliseconds(2));
  EXPECT_EQ(cost().of_file(), absl::Milliseconds(2));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(CommitCostTest, WithinASecondNothingIsWritten) {
  Time(absl::Milliseconds(1));
  std::filesystem::remove_all(folder_);
  clock_.step = absl::Milliseconds(900);
  EXPECT_TRUE(cost().Update().ok());
  EXPECT_EQ(cost().of_file(), absl::Milliseconds(1));
}

TEST_F(CommitCostTest, ASlowDiskIsTimedForATwentiethOfTheTime) {
  Time(absl::Milliseconds(100));
  EXPECT_EQ(cost().took(), absl::Milliseconds(1200));
  std::filesystem::remove_all(folder_);
  clock_.step = absl::Seconds(20);
  EXPECT_TRUE(cost().Update().ok());  // nothing is written
  EXPECT_FALSE(cost().Update().ok());
}

TEST_F(CommitCostTest, AFolderThatCannotBeWrittenIsAnError) {
  std::filesystem::remove_all(folder_);
  EXPECT_FALSE(cost().Update().ok());
  EXPECT_EQ(cost().of_file(), absl::ZeroDuration());
}

}  // namespace
}  // namespace traind
