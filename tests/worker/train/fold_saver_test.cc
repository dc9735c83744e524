// The times at which a fold's checkpoints are due.
#include "worker/train/fold_saver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "tests/worker/fixture/recording_sink.h"

namespace traind {
namespace {

// Goes on by a tick with each look at it, so that writing a checkpoint takes a tick.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(absl::Duration tick) : tick_ms_(absl::ToInt64Milliseconds(tick)) {}
  absl::Time WallNow() const override { return absl::UnixEpoch(); }
  absl::Duration MonotonicNow() const override {
    return absl::Milliseconds(now_ms_.fetch_add(tick_ms_));
  }
  void Advance(absl::Duration by) { now_ms_ += absl::ToInt64Milliseconds(by); }

 private:
  const int64_t tick_ms_;
  mutable std::atomic<int64_t> now_ms_{0};
};

class FoldSaverTest : public testing::Test {
 protected:
  FoldSaverTest() : clock_(absl::Milliseconds(100)) {
    options_.state_dir = testing::TempDir() + "/fold_saver";
    options_.job = "job-a";
    options_.attempt = 1;
    options_.checkpoint_every = absl::Seconds(1);
    EXPECT_TRUE(MakeDirs(options_.state_dir + "/" + AttemptDir(options_.job, 1)).ok());
  }

  // Whether a checkpoint is due so long after another one, which took 100 ms to write.
  bool DueAfter(absl::Duration pause) {
    FoldSaver saver(options_, sink_, clock_);
    EXPECT_TRUE(saver.CheckpointDue()) << "the first one is due at once";
    const ParameterLayout layout{{"weight", {2}, 2}};
    const auto held = std::make_shared<std::map<std::string, std::vector<float>>>();
    (*held)["weights"] = {1, 2};
    Checkpoint checkpoint;
    checkpoint.step = 1;
    checkpoint.slots["weights"] = (*held)["weights"];
    checkpoint.owner = held;
    EXPECT_TRUE(saver.StartCheckpoint(layout, checkpoint, std::nullopt));
    EXPECT_TRUE(saver.Wait(absl::Seconds(30)));
    clock_.Advance(pause);
    return saver.CheckpointDue();
  }

  FoldSaverOptions options_;
  RecordingSink sink_;
  TickingClock clock_;
};

TEST_F(FoldSaverTest, CheckpointsComeAsOftenAsTheSpecAsks) {
  EXPECT_TRUE(DueAfter(absl::Seconds(1)));
}

TEST_F(FoldSaverTest, WhereItAsksForNothingTheyTakeAFiftiethOfTheTime) {
  options_.checkpoints_by_cost = true;
  EXPECT_FALSE(DueAfter(absl::Seconds(4)));
  EXPECT_TRUE(DueAfter(absl::Seconds(5)));
}

}  // namespace
}  // namespace traind
