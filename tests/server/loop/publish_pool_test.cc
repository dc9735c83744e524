#include "server/loop/publish_pool.h"

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace traind {
namespace {

PublishCommand Command(const std::string& job) {
  PublishCommand command;
  command.job = job;
  command.request.job = job;
  return command;
}

TEST(PublishPoolTest, TheEarliestDeadlineGoesFirst) {
  absl::Mutex mutex;
  std::vector<std::string> order;
  absl::Notification started, go;
  PublishPool pool(
      1,
      [&](const PublishRequest& request) -> absl::StatusOr<PublishedPrediction> {
        if (request.job == "first") {
          started.Notify();
          go.WaitForNotification();
        }
        return PublishedPrediction();
      },
      [&](Published published) {
        absl::MutexLock lock(&mutex);
        order.push_back(published.job);
      });
  const absl::Time t = absl::UnixEpoch();
  pool.Add(Command("first"), t);
  started.WaitForNotification();  // the pool's only thread is busy, so the following wait
  pool.Add(Command("never due"), absl::InfiniteFuture());
  pool.Add(Command("late"), t + absl::Seconds(9));
  pool.Add(Command("soon"), t + absl::Seconds(1));
  go.Notify();
  absl::MutexLock lock(&mutex);
  const auto all = [&] {
    mutex.AssertReaderHeld();
    return order.size() == 4;
  };
  ASSERT_TRUE(mutex.AwaitWithTimeout(absl::Condition(&all), absl::Seconds(30)));
  EXPECT_THAT(order, testing::ElementsAre("first", "soon", "late", "never due"));
}

TEST(PublishPoolTest, ErrorsReachTheCaller) {
  absl::Notification done;
  absl::Status status;
  PublishPool pool(
      2, [](const PublishRequest&) { return absl::ResourceExhaustedError("disk full"); },
      [&](Published published) {
        status = published.result.status();
        done.Notify();
      });
  pool.Add(Command("a"), absl::InfiniteFuture());
  ASSERT_TRUE(done.WaitForNotificationWithTimeout(absl::Seconds(30)));
  EXPECT_TRUE(absl::IsResourceExhausted(status));
}

}  // namespace
}  // namespace traind
