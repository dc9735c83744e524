// B13: a retry pays from the same window and changes something.
#include <gmock/gmock.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

std::string Train(CoreHarness& h) {
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(CoreHarness::MakeJob("a", 2));
  h.PrepareJob(id);
  h.Say(h.AttemptOf(id, 1), CoreHarness::Started());  // batches of 32
  return id;
}

// The slot may go to the other fold first; then fold 0 waits for it.
void ExpectFoldZeroStartsWithBatch(CoreHarness& h, const std::string& id, int64_t batch) {
  const auto started = [&h] {
    return std::find_if(h.starts.begin(), h.starts.end(),
                        [](const StartCommand& start) { return start.fold == 0; });
  };
  h.Wait(absl::Seconds(1));
  if (started() == h.starts.end()) {
    h.FinishFold(id, 1);
    h.Wait(absl::Seconds(1));
  }
  ASSERT_NE(started(), h.starts.end());
  EXPECT_EQ(started()->batch, batch);
}

TEST(B13RetryTest, WhatFailsByItselfIsTriedWithHalfTheBatch) {
  CoreHarness h;
  const std::string id = Train(h);
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kDiverged, "NaN"));
  EXPECT_EQ(h.Stored(id).decisions.back().to, "start again with batches of 16");
  h.starts.clear();
  ExpectFoldZeroStartsWithBatch(h, id, 16);
}

TEST(B13RetryTest, HalfTheBatchOutlivesACrash) {
  CoreHarness h;
  const std::string id = Train(h);
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kOutOfMemory, "no room"));
  h.Crash();
  h.FinishFold(id, 1);
  h.starts.clear();
  h.Attach("w", 1);
  ExpectFoldZeroStartsWithBatch(h, id, 16);
}

TEST(B13RetryTest, WhatWasLostIsTriedAsItWas) {
  CoreHarness h;
  const std::string id = Train(h);
  h.Say(h.AttemptOf(id, 1), CoreHarness::CheckpointAt(500, 5));
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  EXPECT_EQ(h.Stored(id).decisions.back().to, "go on from step 500");
}

TEST(B13RetryTest, TheDeadlineStaysAndARetryThatComesTooLateIsNotMade) {
  CoreHarness h;
  const std::string id = Train(h);
  const absl::Time deadline = h.Stored(id).deadline;
  h.Wait(absl::Seconds(52));  // 15 % of 60 s are held back
  h.Say(h.AttemptOf(id, 1), CoreHarness::Ended(AttemptEndReason::kRankDied, "signal 9"));
  EXPECT_EQ(h.Stored(id).deadline, deadline);
  EXPECT_TRUE(IsTerminal(h.TaskOf(id, 1).state));
}

}  // namespace
}  // namespace traind
