#include "common/base/lock_order.h"

#include <gtest/gtest.h>

#include <string>

namespace traind {
namespace {

TEST(LockOrderTest, NobodyTellsOfItAnyMore) {
  IgnoreLockOrder();
  testing::internal::CaptureStderr();
  absl::Mutex one, other;
  {
    absl::MutexLock first(&one);
    absl::MutexLock second(&other);
  }
  {
    absl::MutexLock first(&other);
    absl::MutexLock second(&one);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace traind
