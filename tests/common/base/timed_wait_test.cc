#include "common/base/timed_wait.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "common/base/clock.h"

namespace traind {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

struct Flag {
  absl::Mutex mutex;
  TimedCondVar changed;
  bool set ABSL_GUARDED_BY(mutex) = false;

  void Set() {
    absl::MutexLock lock(&mutex);
    set = true;
    changed.NotifyAll();
  }
  bool Wait(absl::Duration timeout) {
    absl::MutexLock lock(&mutex);
    return changed.Await(mutex, timeout, [this] {
      mutex.AssertReaderHeld();
      return set;
    });
  }
};

TEST(TimedCondVarTest, AWaitLastsAsLongAsItsLimitOnTheMonotonicClock) {
  Flag flag;
  const absl::Duration begin = SystemClock().MonotonicNow();
  EXPECT_FALSE(flag.Wait(absl::Milliseconds(50)));
  const absl::Duration took = SystemClock().MonotonicNow() - begin;
  EXPECT_GE(took, absl::Milliseconds(50));
  EXPECT_LT(took, kLong);
}

TEST(TimedCondVarTest, NothingIsWaitedForThatIsThereAlready) {
  Flag flag;
  flag.Set();
  EXPECT_TRUE(flag.Wait(-absl::Seconds(1)));
}

TEST(TimedCondVarTest, ANotificationIsNeverLost) {
  for (int round = 0; round < 500; ++round) {
    Flag flag;
    std::thread setter([&flag] { flag.Set(); });
    EXPECT_TRUE(flag.Wait(round % 2 == 0 ? kLong : absl::InfiniteDuration()));
    setter.join();
  }
}

TEST(TimedCondVarTest, AllWhoWaitAreWoken) {
  Flag flag;
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&flag] { EXPECT_TRUE(flag.Wait(kLong)); });
  }
  flag.Set();
  for (std::thread& waiter : waiters) waiter.join();
}

}  // namespace
}  // namespace traind
