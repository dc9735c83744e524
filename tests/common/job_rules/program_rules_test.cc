#include "common/job_rules/program_rules.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(ProgramRules, PlaceholdersAreReplacedAndTheRestStays) {
  const PlaceholderValues values{3, 5, 17, 20, {}};
  EXPECT_EQ(FillPlaceholders("--fold={fold}/{folds}", values), "--fold=3/5");
  EXPECT_EQ(FillPlaceholders("{seed}{epochs}", values), "1720");
  EXPECT_EQ(FillPlaceholders("{{fold}} {{lr}}", values), "{fold} {lr}");
  EXPECT_EQ(FillPlaceholders("{}{ fold }{Fold}${x1}{", values), "{}{ fold }{Fold}${x1}{");
  EXPECT_EQ(FillPlaceholders("", values), "");
}

TEST(ProgramRules, UnknownPlaceholdersAreFound) {
  EXPECT_EQ(UnknownPlaceholder("--lr {lr} {fold}"), "{lr}");
  EXPECT_EQ(UnknownPlaceholder("awk '{print}'"), "{print}");
  EXPECT_EQ(UnknownPlaceholder("awk '{{print}}' {fold}"), "");
  EXPECT_EQ(UnknownPlaceholder("d = {} and {\"a\": 1}"), "");
}

TEST(ProgramRules, SettingsOfTheUserAreReplacedAndNoPlaceholderMayBeOne) {
  PlaceholderValues values;
  values.settings = {{"lr", "0.1"}, {"batch_size", "{fold}"}};
  EXPECT_EQ(FillPlaceholders("--lr={lr} {batch_size} {fold} {other}", values),
            "--lr=0.1 {fold} 0 {other}");
  EXPECT_EQ(UnknownPlaceholder("{lr} {batch_size}", {"lr"}), "{batch_size}");
  EXPECT_EQ(WordsInBraces("{lr} {{no}} {fold}"), (std::vector<std::string>{"{lr}", "{fold}"}));
  EXPECT_TRUE(IsSettingName("batch_size"));
  for (const char* name : {"", "fold", "epochs", "Lr", "l1", "a b"}) {
    EXPECT_FALSE(IsSettingName(name)) << name;
  }
}

TEST(ProgramRules, PatternsStayInTheFolder) {
  EXPECT_EQ(PatternProblem("out/sub_*.csv"), "");
  EXPECT_EQ(PatternProblem("a..b"), "");
  EXPECT_NE(PatternProblem(""), "");
  EXPECT_NE(PatternProblem("/etc/passwd"), "");
  EXPECT_NE(PatternProblem("a/../../b"), "");
}

TEST(ProgramRules, StarsMatchWithinAFolder) {
  EXPECT_TRUE(MatchesPattern("sub_1.csv", "sub_*.csv"));
  EXPECT_TRUE(MatchesPattern("a/b.csv", "a/?.csv"));
  EXPECT_FALSE(MatchesPattern("a/sub.csv", "*.csv"));
  EXPECT_FALSE(MatchesPattern("sub.csv.tmp", "*.csv"));
}

}  // namespace
}  // namespace traind
