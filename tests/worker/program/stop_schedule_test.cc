#include "worker/program/stop_schedule.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(StopSchedule, OrdersComeOneAfterTheOtherAndLeaveTimeForTheFiles) {
  for (const int left_ms : {1, 50, 350, 1000, 3000, 29'000, 60'000, 3'600'000}) {
    for (const bool saves : {false, true}) {
      const absl::Duration now = absl::Seconds(100), deadline = now + absl::Milliseconds(left_ms);
      const StopSchedule stop = ScheduleStop(now, deadline, saves);
      EXPECT_EQ(stop.soft_at, now);
      EXPECT_LE(stop.soft_at, stop.terminate_at);
      EXPECT_LE(stop.terminate_at, stop.kill_at);
      EXPECT_LE(stop.kill_at - now, 0.6 * (deadline - now)) << left_ms;
      EXPECT_LE(stop.kill_at, stop.predict_by);
      EXPECT_LE(stop.predict_by - now, 0.85 * (deadline - now)) << left_ms;
      EXPECT_LE(stop.kill_at - now, saves ? kStopPatience : kDropPatience);
    }
  }
}

TEST(StopSchedule, ACommandThatAnswersHasMostOfTheTime) {
  const absl::Duration now = absl::Seconds(100), deadline = absl::Seconds(110);
  const StopSchedule alone = ScheduleStop(now, deadline, true);
  const StopSchedule followed = ScheduleStop(now, deadline, true, /*predicts=*/true);
  EXPECT_LT(followed.terminate_at, alone.terminate_at);
  EXPECT_LT(followed.terminate_at, followed.kill_at);
  EXPECT_GE(followed.predict_by - followed.kill_at, absl::Seconds(5) - absl::Milliseconds(1));
}

TEST(StopSchedule, WithoutTimeEverythingIsDueAtOnce) {
  const StopSchedule stop = ScheduleStop(absl::Seconds(9), absl::Seconds(8), true);
  EXPECT_EQ(stop.kill_at, absl::Seconds(9));
}

TEST(StopSchedule, WithoutADeadlineThereIsPatience) {
  const StopSchedule stop = ScheduleStop(absl::Seconds(9), absl::InfiniteDuration(), true);
  EXPECT_GT(stop.terminate_at, absl::Seconds(15));
  EXPECT_LT(stop.kill_at, absl::Seconds(40));
}

}  // namespace
}  // namespace traind
