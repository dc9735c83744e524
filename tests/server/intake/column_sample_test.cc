#include "server/intake/column_sample.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace traind {
namespace {

// Returns "TYPE, because ..." of a target with these values, each repeated `times`.
std::string TypeOf(const std::vector<std::string>& values, int times = 1) {
  std::string bytes = "a,y\n";
  for (int i = 0; i < times; ++i) {
    for (const std::string& value : values) absl::StrAppend(&bytes, "1,", value, "\n");
  }
  const auto sample = SampleColumn(bytes, "t.csv", "y");
  EXPECT_TRUE(sample.ok()) << sample.status();
  const auto choice = TypeOfTarget("y", *sample);
  if (!choice.ok()) return std::string(choice.status().message());
  return absl::StrCat(choice->type, ", because ", choice->because);
}

std::vector<std::string> Numbers(int count, const char* behind = "") {
  std::vector<std::string> values;
  for (int i = 0; i < count; ++i) values.push_back(absl::StrCat(i, behind));
  return values;
}

TEST(ColumnSampleTest, TextsAreClasses) {
  EXPECT_EQ(TypeOf({"yes", "no"}),
            "classification, because the target 'y' has values that are no numbers, such as 'yes'");
  EXPECT_EQ(TypeOf({"true", "false", "true"}).substr(0, 14), "classification");
}

TEST(ColumnSampleTest, FewWholeNumbersAreClasses) {
  EXPECT_EQ(TypeOf({"0", "1"}), "classification, because the target 'y' has 2 different values");
  EXPECT_EQ(TypeOf({"0.5", "1.5"}, 9),
            "classification, because the target 'y' has 2 different values");
  EXPECT_EQ(TypeOf(Numbers(20), 10),
            "classification, because the target 'y' has 20 different values");
  EXPECT_EQ(TypeOf(Numbers(5, ".0"), 10).substr(0, 14), "classification");
}

TEST(ColumnSampleTest, OtherNumbersAreValues) {
  EXPECT_EQ(TypeOf(Numbers(21), 10), "regression, because the target 'y' has 21 different numbers");
  EXPECT_EQ(TypeOf(Numbers(5), 9), "regression, because the target 'y' has 5 different numbers");
  EXPECT_EQ(TypeOf(Numbers(5, ".5"), 10),
            "regression, because the target 'y' has 5 different numbers");
  EXPECT_EQ(TypeOf(Numbers(12000)),
            "regression, because the target 'y' has more than 10000 different numbers");
}

TEST(ColumnSampleTest, TextsHaveManyWordsAndDiffer) {
  const auto holds = [](const std::vector<std::string>& values, double words) {
    const auto sample = SampleColumn("a\n" + absl::StrJoin(values, "\n") + "\n", "t.csv", "a");
    EXPECT_TRUE(sample.ok()) << sample.status();
    return HoldsTexts(*sample, words);
  };
  const std::vector<std::string> texts = {"a quiet  film", "loud and long", "not for me"};
  EXPECT_TRUE(holds(texts, 3));
  EXPECT_FALSE(holds(texts, 4));
  EXPECT_FALSE(holds({"so so so", "so so so", "so so so", "not for me"}, 3));  // categories
  EXPECT_FALSE(holds(Numbers(40), 1));
  EXPECT_FALSE(holds({"a quiet film", "2", "3"}, 3));
  std::vector<std::string> with_missing(10, "");
  with_missing.insert(with_missing.begin(), texts.begin(), texts.end());
  EXPECT_TRUE(holds(with_missing, 3));
}

TEST(ColumnSampleTest, ADashIsMissingAmongNumbersAndAClassAmongTexts) {
  std::vector<std::string> values = Numbers(40, ".5");
  values.insert(values.begin(), 10, "-");
  EXPECT_EQ(TypeOf(values), "regression, because the target 'y' has 40 different numbers");
  EXPECT_EQ(TypeOf({"+", "-"}),
            "classification, because the target 'y' has values that are no numbers, such as '+'");
  EXPECT_EQ(TypeOf({"-", "--"}),
            "classification, because the target 'y' has values that are no numbers, such as '-'");
}

TEST(ColumnSampleTest, AFewBadCellsDoNotMakeANumericTargetOneOfClasses) {
  std::vector<std::string> values = Numbers(96, ".5");
  values.insert(values.end(), {"n.a.", "", "?", "heavy"});
  EXPECT_EQ(TypeOf(values).substr(0, 10), "regression");
  values.insert(values.end(), 4, "heavy");
  EXPECT_EQ(TypeOf(values),
            "classification, because the target 'y' has values that are no numbers, such as "
            "'n.a.'");
}

TEST(ColumnSampleTest, CountsAreWholeNumbersFromZeroOnThatScatter) {
  const auto counts = [](const std::vector<std::string>& values) {
    const auto sample =
        SampleColumn(absl::StrCat("y\n", absl::StrJoin(values, "\n"), "\n"), "t", "y");
    EXPECT_TRUE(sample.ok()) << sample.status();
    return LooksLikeCounts(*sample);
  };
  EXPECT_TRUE(counts({"0", "1", "0", "2", "0", "5", "1"}));
  EXPECT_TRUE(counts({"0", "100", "3", "NA", "0"}));
  EXPECT_FALSE(counts({"0", "1.5", "0", "2", "0", "5"})) << "not whole";
  EXPECT_FALSE(counts({"0", "-1", "0", "2", "0", "5"})) << "negative";
  EXPECT_FALSE(counts({"5", "6", "7", "1", "19"})) << "no zeros";
  EXPECT_FALSE(counts({"0", "3", "3", "3", "3", "3", "3", "3"})) << "no scatter";
  EXPECT_FALSE(counts({"0", "0"}));
}

ColumnSample SampleOf(const std::vector<std::string>& values) {
  const auto sample =
      SampleColumn(absl::StrCat("y\n", absl::StrJoin(values, "\n"), "\n"), "t", "y");
  EXPECT_TRUE(sample.ok()) << sample.status();
  return *sample;
}

TEST(ColumnSampleTest, OneTailMakesAColumnSkewedAndAWildNumberDoesNot) {
  std::vector<std::string> even, right, left;
  for (int i = 0; i < 400; ++i) {
    even.push_back(absl::StrCat(i));
    right.push_back(absl::StrCat(std::exp(0.01 * i)));
    left.push_back(absl::StrCat(-std::exp(0.01 * i)));
  }
  EXPECT_FALSE(IsSkewed(SampleOf(even)));
  EXPECT_NEAR(SampleOf(even).skewness, 0, 1e-3);
  EXPECT_TRUE(IsSkewed(SampleOf(right)));
  EXPECT_TRUE(IsSkewed(SampleOf(left)));
  EXPECT_EQ(SampleOf(right).least, 1);
  even.insert(even.end(), {"1e9", "-50"});
  EXPECT_FALSE(IsSkewed(SampleOf(even)));
  EXPECT_EQ(SampleOf(even).least, -50);
  EXPECT_FALSE(IsSkewed(SampleOf({"7", "7", "7"})));
}

TEST(ColumnSampleTest, WithoutAValueThereIsNoType) {
  EXPECT_EQ(TypeOf({"", "?"}),
            "is missing, and the target 'y' has no value in the first rows that would tell it");
}

TEST(ColumnSampleTest, ARowThatThePartCutsIsIgnored) {
  const auto sample = SampleColumn("a;y\n1;2\n1;3\n1", "t.csv", "y");
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(sample->rows, 2);
  EXPECT_EQ(sample->distinct, 2u);
  EXPECT_EQ(sample->bytes_per_row, 6);  // the header counts
  EXPECT_FALSE(SampleColumn("a,b\n1,2\n", "t.csv", "y").ok());
}

}  // namespace
}  // namespace traind
