#include "common/base/quota_text.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(QuotaTextTest, AllowanceAndPeriodAreRead) {
  for (const char* text : {"45h per 7d", "45h/7d", " 45h  per 7d "}) {
    const auto quota = QuotaFromText(text);
    ASSERT_TRUE(quota.ok()) << text << quota.status();
    EXPECT_EQ(quota->allowance, absl::Hours(45));
    EXPECT_EQ(quota->period, absl::Hours(24 * 7));
    EXPECT_TRUE(quota->rolling);
  }
  EXPECT_FALSE(QuotaFromText("45h per 7d, fixed")->rolling);
}

TEST(QuotaTextTest, WhatIsNoQuotaIsRefused) {
  for (const char* text :
       {"", "45h", "45 per 7d", "45h per", "-1h per 7d", "45h per 10s", "fixed"}) {
    EXPECT_FALSE(QuotaFromText(text).ok()) << text;
  }
  EXPECT_EQ(QuotaFromText("45h").status().message(),
            "'45h' has no period; write it like '45h per 7d'");
}

}  // namespace
}  // namespace traind
