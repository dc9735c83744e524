#include "server/schedule/owner_shares.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

TEST(OwnerSharesTest, HalfIsForgottenAfterAHalfLife) {
  OwnerShares shares(absl::Seconds(1000));
  shares.Began("ann", 2, At(0));
  shares.Ended("ann", 2, At(0), At(100));
  EXPECT_DOUBLE_EQ(shares.Of("ann", At(100)), 200);
  EXPECT_DOUBLE_EQ(shares.Of("ann", At(1100)), 100);
  shares.Add("ann", 1, At(1000), At(1100));
  EXPECT_DOUBLE_EQ(shares.Of("ann", At(1100)), 200);
  EXPECT_DOUBLE_EQ(shares.Of("bob", At(1100)), 0);
}

TEST(OwnerSharesTest, WhatIsToldLateHasDecayedAsMuch) {
  OwnerShares late(absl::Seconds(1000)), in_order(absl::Seconds(1000));
  late.Add("ann", 1, At(1000), At(1100));
  late.Add("ann", 2, At(0), At(100));
  in_order.Add("ann", 2, At(0), At(100));
  in_order.Add("ann", 1, At(1000), At(1100));
  EXPECT_DOUBLE_EQ(late.Of("ann", At(2000)), in_order.Of("ann", At(2000)));
}

TEST(OwnerSharesTest, RunningFoldsCountFromTheirStart) {
  OwnerShares shares(absl::Hours(1000));
  shares.Began("ann", 2, At(0));
  EXPECT_DOUBLE_EQ(shares.Of("ann", At(0)), OwnerShares::Held(2));
  shares.Began("ann", 1, At(10));
  EXPECT_NEAR(shares.Of("ann", At(20)), OwnerShares::Held(3) + 2 * 20 + 10, 1e-3);
  shares.Ended("ann", 2, At(0), At(20));
  shares.Ended("ann", 1, At(10), At(20));
  EXPECT_NEAR(shares.Of("ann", At(20)), 50, 1e-3);
}

}  // namespace
}  // namespace traind
