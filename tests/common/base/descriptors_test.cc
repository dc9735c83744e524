#include "common/base/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace traind {
namespace {

TEST(DescriptorsTest, TheLastOnesAreReserved) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = 128;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(DescriptorLimit(), 128);
  EXPECT_FALSE(IsReservedDescriptor(95));
  EXPECT_TRUE(IsReservedDescriptor(96));
  limit.rlim_cur = 1024;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_FALSE(IsReservedDescriptor(959));
  EXPECT_TRUE(IsReservedDescriptor(960));
}

TEST(DescriptorsTest, TheSoftLimitIsRaisedToTheHardOne) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = 128;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  RaiseDescriptorLimit();
  rlimit raised{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, limit.rlim_max);
  EXPECT_EQ(raised.rlim_max, limit.rlim_max);
}

}  // namespace
}  // namespace traind
