#include "server/access/submit_rate.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace traind {
namespace {

using testing::HasSubstr;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1000);

TEST(SubmitRateTest, AMinutesWorthMayComeAtOnceAndThenTheRateCounts) {
  SubmitRate rate(/*jobs_per_s=*/10);
  for (int i = 0; i < 600; ++i) ASSERT_EQ(rate.Take("ann", 1, kStart), absl::OkStatus()) << i;
  EXPECT_TRUE(absl::IsResourceExhausted(rate.Take("ann", 1, kStart)));
  EXPECT_TRUE(absl::IsResourceExhausted(rate.Take("ann", 1, kStart + absl::Milliseconds(99))));
  EXPECT_EQ(rate.Take("ann", 1, kStart + absl::Milliseconds(101)), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(rate.Take("ann", 1, kStart + absl::Milliseconds(102))));
  EXPECT_EQ(rate.Take("ann", 600, kStart + absl::Hours(1)), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(rate.Take("ann", 1, kStart + absl::Hours(1))));
}

TEST(SubmitRateTest, OneOwnerDoesNotTakeFromAnother) {
  SubmitRate rate(1);
  EXPECT_EQ(rate.Take("ann", 60, kStart), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(rate.Take("ann", 1, kStart)));
  EXPECT_EQ(rate.Take("bob", 60, kStart), absl::OkStatus());
}

TEST(SubmitRateTest, ACallOfSeveralOwnersIsTakenForAllOrForNone) {
  SubmitRate rate(1);  // a bucket holds 60
  EXPECT_EQ(rate.Take("bob", 30, kStart), absl::OkStatus());
  EXPECT_EQ(rate.Take("zoe", 50, kStart), absl::OkStatus());
  const absl::Status refused = rate.Take({{"ann", 60}, {"zoe", 40}, {"zoo", 60}}, kStart);
  EXPECT_TRUE(absl::IsResourceExhausted(refused));
  EXPECT_THAT(refused.message(), HasSubstr("zoe"));
  EXPECT_EQ(rate.Take({{"ann", 60}, {"bob", 30}, {"zoe", 10}}, kStart), absl::OkStatus());
  for (const char* owner : {"ann", "bob", "zoe"}) {
    EXPECT_TRUE(absl::IsResourceExhausted(rate.Take(owner, 1, kStart))) << owner;
  }
}

TEST(SubmitRateTest, ACallOfSeveralOwnersIsTakenWhenTheLastOfThemMay) {
  SubmitRate rate(1);
  for (const char* owner : {"ann", "bob", "zoe"}) {
    EXPECT_EQ(rate.Take(owner, 60, kStart), absl::OkStatus());
  }
  const std::map<std::string, int> jobs = {{"ann", 10}, {"bob", 30}, {"zoe", 20}};
  EXPECT_THAT(rate.Take(jobs, kStart).message(), HasSubstr("bob"));
  EXPECT_THAT(rate.Take(jobs, kStart).message(), HasSubstr("these 30 may come in 30s"));
  EXPECT_TRUE(absl::IsResourceExhausted(rate.Take(jobs, kStart + absl::Seconds(29))));
  EXPECT_EQ(rate.Take(jobs, kStart + absl::Seconds(30)), absl::OkStatus());
}

TEST(SubmitRateTest, ARefusalNamesTheLimitAndTheTimeAtWhichTheCallIsTaken) {
  SubmitRate rate(10);
  ASSERT_EQ(rate.Take("ann", 600, kStart), absl::OkStatus());
  const absl::Status refused = rate.Take("ann", 25, kStart);
  EXPECT_THAT(refused.message(), HasSubstr("--submit-rate"));
  EXPECT_THAT(refused.message(), HasSubstr("ann"));
  EXPECT_THAT(refused.message(), HasSubstr("may come in 2.5s"));
  EXPECT_TRUE(absl::IsResourceExhausted(rate.Take("ann", 25, kStart + absl::Seconds(2.4))));
  EXPECT_EQ(rate.Take("ann", 25, kStart + absl::Seconds(2.5)), absl::OkStatus());
}

TEST(SubmitRateTest, ACallOfMoreThanABucketHoldsIsTakenWhenItIsFullAndOwesTheRest) {
  SubmitRate rate(1);
  EXPECT_EQ(rate.Take("ann", 100, kStart), absl::OkStatus());  // a bucket holds 60
  EXPECT_THAT(rate.Take("ann", 100, kStart).message(), HasSubstr("may come in 1m40s"));
  EXPECT_TRUE(absl::IsResourceExhausted(rate.Take("ann", 1, kStart + absl::Seconds(40))));
  EXPECT_EQ(rate.Take("ann", 1, kStart + absl::Seconds(41)), absl::OkStatus());
}

TEST(SubmitRateTest, AClockThatGoesBackGivesNothing) {
  SubmitRate rate(1);
  EXPECT_EQ(rate.Take("ann", 60, kStart), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(rate.Take("ann", 1, kStart - absl::Hours(5))));
  EXPECT_TRUE(absl::IsResourceExhausted(rate.Take("ann", 1, kStart + absl::Seconds(0.9))));
  EXPECT_EQ(rate.Take("ann", 1, kStart + absl::Seconds(1.1)), absl::OkStatus());
}

TEST(SubmitRateTest, WithoutARateThereIsNoLimit) {
  SubmitRate rate(0);
  EXPECT_EQ(rate.Take("ann", 1'000'000'000, kStart), absl::OkStatus());
  EXPECT_EQ(rate.Take("ann", 1'000'000'000, kStart), absl::OkStatus());
}

TEST(SubmitRateTest, NamesThatWereMadeUpAreForgottenWhenTheirBucketsAreFull) {
  SubmitRate rate(100);
  for (int i = 0; i < 100'000; ++i) {
    const absl::Time now = kStart + i * absl::Milliseconds(1);
    ASSERT_EQ(rate.Take(absl::StrCat("owner-", i), 1, now), absl::OkStatus());
    ASSERT_LE(rate.owners(), 1024u);
  }
}

}  // namespace
}  // namespace traind
