#include "server/schedule/owner_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace traind {
namespace {

using testing::HasSubstr;

TEST(OwnerLimitsTest, EachOwnerMayHaveSoManyJobs) {
  OwnerLimits limits(/*most_jobs=*/3, 0);
  limits.Add("ada", &OwnerUse::jobs, 2);
  EXPECT_EQ(limits.CheckJobs("ada", 1), absl::OkStatus());
  const absl::Status many = limits.CheckJobs("ada", 2);
  EXPECT_TRUE(absl::IsResourceExhausted(many));
  EXPECT_EQ(many.message(),
            "owner-jobs: ada has 2 Jobs that are not over, and an owner may have 3 (--owner-jobs "
            "of traind); these 2 are taken together or not at all");
  EXPECT_EQ(limits.CheckJobs("bob", 3), absl::OkStatus());
  limits.Add("ada", &OwnerUse::jobs, -2);
  EXPECT_EQ(limits.CheckJobs("ada", 3), absl::OkStatus());
}

TEST(OwnerLimitsTest, EachOwnerMayUseSoManySlots) {
  OwnerLimits limits(0, /*most_slots=*/8);
  EXPECT_EQ(limits.SlotsLeft("ada"), 8);
  limits.Add("ada", &OwnerUse::slots, 6);
  EXPECT_EQ(limits.SlotsLeft("ada"), 2);
  EXPECT_EQ(limits.SlotsLeft("bob"), 8);
  EXPECT_EQ(limits.SlotsText("ada"),
            "owner ada uses 6 of the 8 slots that an owner may use at a time");
  EXPECT_EQ(limits.Gangs(3), 2);
  EXPECT_EQ(limits.Gangs(9), 0);
  EXPECT_EQ(limits.CheckGang(8), absl::OkStatus());
  EXPECT_TRUE(absl::IsInvalidArgument(limits.CheckGang(9)));
  EXPECT_THAT(std::string(limits.CheckGang(9).message()), HasSubstr("--owner-slots"));
}

TEST(OwnerLimitsTest, WithoutLimitsThereAreNone) {
  OwnerLimits limits(0, 0);
  limits.Add("ada", &OwnerUse::jobs, 1'000'000);
  limits.Add("ada", &OwnerUse::slots, 1'000'000);
  EXPECT_EQ(limits.CheckJobs("ada", 1'000'000), absl::OkStatus());
  EXPECT_EQ(limits.CheckGang(1'000'000), absl::OkStatus());
  EXPECT_EQ(limits.SlotsLeft("ada"), OwnerLimits::kNoLimit);
  EXPECT_FALSE(limits.limits_slots());
}

}  // namespace
}  // namespace traind
