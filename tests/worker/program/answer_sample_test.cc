#include "worker/program/answer_sample.h"

#include <gtest/gtest.h>

#include "common/base/durable_file.h"

namespace traind {
namespace {

class AnswerSampleTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = testing::TempDir() + "/sample_submission.csv";
    ASSERT_TRUE(WriteFileDurably(path_, "id,target,word\n7,0.5,a\n5,0,b\n9,1,c\n").ok());
  }
  std::string Wrong(const std::string& text,
                    const std::map<std::string, std::string>& ranges = {}) {
    const auto sample = AnswerSample::Read(path_, ranges);
    if (!sample.ok()) return std::string(sample.status().message());
    return std::string(sample->Check(text, "sub.csv").message());
  }
  std::string path_;
};

TEST_F(AnswerSampleTest, AFileWithTheSamplesColumnsAndRowsIsWell) {
  EXPECT_EQ(Wrong("id,target,word\n7,1e-3,x\n5,2,y\n9,-4,z\n"), "");
}

TEST_F(AnswerSampleTest, EachDifferenceIsNamedWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"id,word,target\n7,a,1\n5,b,1\n9,c,1\n", "in this order"},
      {"id,target\n7,1\n5,1\n9,1\n", "its columns are 'id', 'target', but those of the sample"},
      {"id,target,word\n7,1,a\n5,1,b\n", "there are 2 rows, but the sample has 3"},
      {"id,target,word\n7,1,a\n5,1,b\n9,1,c\n11,1,d\n", "'11' is not in the sample"},
      {"id,target,word\n7,1,a\n7,1,b\n9,1,c\n", "'7' is there twice; before that in row 1"},
      {"id,target,word\n7,1,a\n9,1,c\n5,1,b\n", "'9' is there where the sample has '5'"},
      {"id,target,word\n7,1,a\n6,1,b\n9,1,c\n", "row 2 (line 3), column 'id': '6' is not in"},
      {"id,target,word\n7,nan,a\n5,1,b\n9,1,c\n", "column 'target': the value is missing"},
      {"id,target,word\n7,,a\n5,1,b\n9,1,c\n", "column 'target': the value is missing"},
      {"id,target,word\n7,inf,a\n5,1,b\n9,1,c\n", "'inf' is not finite"},
      {"id,target,word\n7,high,a\n5,1,b\n9,1,c\n", "'high' is no number"},
      {"id,target,word\n7,1,a\n5,1\n", "row 2"},
      {"id,target,word\n7,1,a\n5,1,b\n9,1", "row 3"},
      {"", "sub.csv"}};
  for (const auto& [text, words] : cases) {
    EXPECT_NE(Wrong(text).find(words), std::string::npos) << text << Wrong(text);
  }
}

TEST_F(AnswerSampleTest, RangesHoldWithAndWithoutASample) {
  const std::string good = "id,target,word\n7,1,a\n5,0,b\n9,0.25,a\n";
  const std::map<std::string, std::string> ranges = {{"target", "uniform(0, 1)"},
                                                     {"word", "choice(a, b)"}};
  EXPECT_EQ(Wrong(good, ranges), "");
  EXPECT_NE(Wrong("id,target,word\n7,1,a\n5,1.5,b\n9,1,a\n", ranges).find("'1.5' is not in uniform"),
            std::string::npos);
  EXPECT_NE(Wrong(good, {{"target", "int(0, 1)"}}).find("'0.25' is not in int"),
            std::string::npos);
  EXPECT_NE(Wrong(good, {{"none", "int(0, 1)"}}).find("no column 'none'"), std::string::npos);
  EXPECT_NE(Wrong(good, {{"target", "between(0, 1)"}}), "");
  path_ = "";
  EXPECT_EQ(Wrong("target\n1\n0\n", {{"target", "int(0, 1)"}}), "");
  EXPECT_NE(Wrong("other\n1\n0\n", {{"target", "int(0, 1)"}}), "");
}

TEST_F(AnswerSampleTest, ASampleThatNamesARowTwiceIsNone) {
  ASSERT_TRUE(WriteFileDurably(path_, "id,target\n7,0.5\n7,0\n").ok());
  EXPECT_NE(Wrong("").find("'7' is there twice"), std::string::npos);
  path_ += ".none";
  EXPECT_NE(Wrong(""), "");
}

}  // namespace
}  // namespace traind
