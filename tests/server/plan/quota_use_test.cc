#include "server/plan/quota_use.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

Quota Make(bool rolling) {
  Quota quota;
  quota.subject.owner = "a";
  quota.allowance = absl::Hours(2);
  quota.period = absl::Hours(256);  // a part is an hour
  quota.rolling = rolling;
  quota.since = kStart;
  return quota;
}

TEST(QuotaUseTest, SlotsTimesSecondsAreAddedUp) {
  QuotaUse use(Make(true));
  use.Add(kStart, kStart + absl::Minutes(30), 2);
  use.Add(kStart + absl::Minutes(50), kStart + absl::Minutes(70), 1);
  EXPECT_NEAR(use.Used(kStart + absl::Hours(2)), 2 * 1800 + 1200, 1e-6);
}

TEST(QuotaUseTest, WhatIsOlderThanARollingPeriodIsFree) {
  QuotaUse use(Make(true));
  use.Add(kStart, kStart + absl::Hours(1), 2);
  EXPECT_NEAR(use.Used(kStart + absl::Hours(256)), 7200, 1e-6);
  EXPECT_EQ(use.FreeAt(kStart + absl::Hours(3)), kStart + absl::Hours(257));
  EXPECT_NEAR(use.Used(kStart + absl::Hours(258)), 0, 1e-6);
}

TEST(QuotaUseTest, LessThanASecondIsNothing) {
  QuotaUse use(Make(true));
  EXPECT_EQ(use.Left(7190), 10);
  EXPECT_EQ(use.Left(7199.5), 0);
  EXPECT_EQ(use.Left(8000), 0);
  use.Add(kStart, kStart + absl::Seconds(3599.8), 2);
  EXPECT_EQ(use.FreeAt(kStart + absl::Hours(3)), kStart + absl::Hours(257));
}

TEST(QuotaUseTest, AFixedPeriodBeginsAnew) {
  QuotaUse use(Make(false));
  use.Add(kStart + absl::Hours(254), kStart + absl::Hours(257), 1);
  EXPECT_NEAR(use.Used(kStart + absl::Hours(255.99)), 3 * 3600, 1e-6);
  EXPECT_NEAR(use.Used(kStart + absl::Hours(257)), 3600, 1e-6);
  use.Add(kStart + absl::Hours(257), kStart + absl::Hours(259), 1);
  EXPECT_EQ(use.FreeAt(kStart + absl::Hours(260)), kStart + absl::Hours(512));
}

TEST(QuotaUseTest, AnAttemptLongerThanAPeriodCountsForOnePeriod) {
  QuotaUse use(Make(true));
  use.Add(kStart - absl::Hours(1000), kStart, 1);
  EXPECT_NEAR(use.Used(kStart), 256 * 3600, 3601);
}

TEST(QuotaUseTest, MarksAreFiftyEightyAndNinety) {
  EXPECT_EQ(WarningMark(49, 100), 0);
  EXPECT_EQ(WarningMark(50, 100), 50);
  EXPECT_EQ(WarningMark(85, 100), 80);
  EXPECT_EQ(WarningMark(200, 100), 90);
}

TEST(QuotaUseTest, SubjectsAreOwnersOrLabels) {
  const QuotaSubject owner{"a", ""}, label{"", "team=x"};
  EXPECT_TRUE(owner.Covers("a", {}));
  EXPECT_FALSE(owner.Covers("b", {{"team", "x"}}));
  EXPECT_TRUE(label.Covers("b", {{"team", "x"}}));
  EXPECT_FALSE(label.Covers("b", {{"team", "y"}}));
  EXPECT_EQ(Text(Make(false)), "2h00m per 10d16h, fixed");
}

}  // namespace
}  // namespace traind
