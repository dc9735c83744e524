#include "common/job_rules/ignore_rules.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

bool File(const IgnoreRules& rules, const char* path) { return rules.Ignores(path, false); }
bool Folder(const IgnoreRules& rules, const char* path) { return rules.Ignores(path, true); }

TEST(IgnoreRulesTest, ANameMatchesAtAnyDepthAndAPathInItsPlace) {
  const IgnoreRules rules("*.log\n/top.txt\ndata/raw\n");
  EXPECT_TRUE(File(rules, "a.log"));
  EXPECT_TRUE(File(rules, "deep/er/a.log"));
  EXPECT_FALSE(File(rules, "a.log.txt"));
  EXPECT_TRUE(File(rules, "top.txt"));
  EXPECT_FALSE(File(rules, "deep/top.txt"));
  EXPECT_TRUE(Folder(rules, "data/raw"));
  EXPECT_FALSE(Folder(rules, "more/data/raw"));
}

TEST(IgnoreRulesTest, ASlashAtTheEndIsAboutFolders) {
  const IgnoreRules rules("runs/\n");
  EXPECT_TRUE(Folder(rules, "runs"));
  EXPECT_TRUE(Folder(rules, "a/runs"));
  EXPECT_FALSE(File(rules, "runs"));
}

TEST(IgnoreRulesTest, TheLastLineThatMatchesCounts) {
  const IgnoreRules rules("# all but one\n*.csv\n!keep.csv\n\n   \n");
  EXPECT_TRUE(File(rules, "a.csv"));
  EXPECT_FALSE(File(rules, "keep.csv"));
  EXPECT_FALSE(File(rules, "# all but one"));
}

TEST(IgnoreRulesTest, TwoStarsAreAnyNumberOfFolders) {
  const IgnoreRules rules("a/**/z\nout/**\n**/tmp\n");
  EXPECT_TRUE(File(rules, "a/z"));
  EXPECT_TRUE(File(rules, "a/b/c/z"));
  EXPECT_FALSE(File(rules, "b/a/z"));
  EXPECT_TRUE(File(rules, "out/x"));
  EXPECT_FALSE(Folder(rules, "out"));
  EXPECT_TRUE(Folder(rules, "q/tmp"));
}

TEST(IgnoreRulesTest, StarsAndBracketsStayWithinAName) {
  const IgnoreRules rules("/a*z\nmodel_[0-9].pt\nx?y\r\n");
  EXPECT_TRUE(File(rules, "abcz"));
  EXPECT_FALSE(File(rules, "ab/cz"));
  EXPECT_TRUE(File(rules, "model_3.pt"));
  EXPECT_FALSE(File(rules, "model_x.pt"));
  EXPECT_TRUE(File(rules, "x1y")) << "lines of Windows";
}

TEST(IgnoreRulesTest, WithoutLinesNothingIsIgnored) {
  EXPECT_FALSE(File(IgnoreRules(), "a"));
  EXPECT_FALSE(File(IgnoreRules("/\n!\n#\n"), "a"));
}

}  // namespace
}  // namespace traind
