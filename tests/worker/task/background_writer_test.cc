#include "worker/task/background_writer.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(BackgroundWriterTest, WorkRunsOneAtATimeAndTheSecondIsRefused) {
  BackgroundWriter writer;
  absl::Notification go, done;
  int runs = 0;
  ASSERT_TRUE(writer.TryStart([&] {
    go.WaitForNotification();
    ++runs;
  }));
  EXPECT_FALSE(writer.TryStart([&] { ++runs; }));
  EXPECT_FALSE(writer.Wait(absl::ZeroDuration()));
  go.Notify();
  EXPECT_TRUE(writer.Wait(absl::Seconds(30)));
  EXPECT_TRUE(writer.TryStart([&] { ++runs; }));
  EXPECT_TRUE(writer.Wait(absl::Seconds(30)));
  EXPECT_EQ(runs, 2);
}

TEST(BackgroundWriterTest, TheDestructorWaitsForAcceptedWork) {
  bool ran = false;
  {
    BackgroundWriter writer;
    ASSERT_TRUE(writer.TryStart([&] { ran = true; }));
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace traind
