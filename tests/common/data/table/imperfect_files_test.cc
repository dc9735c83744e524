// Files as people have them: a few texts among numbers, ids that repeat, semicolons.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/data/table/table_reader.h"
#include "tests/common/data/table/table_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_table::Read;

// `rows` rows of x, y, where x is a number but for `texts` rows from row `first` on, counted
// from 1.
std::string Numbers(int rows, int texts, int first = 1) {
  std::string file = "x,y\n";
  for (int row = 1; row <= rows; ++row) {
    const bool text = row >= first && row < first + texts;
    absl::StrAppend(&file, text ? absl::StrCat("bad", row) : absl::StrCat(row, ".5"), ",", row % 2,
                    "\n");
  }
  return file;
}

TEST(ImperfectFilesTest, AFewTextsAmongNumbersCountAsMissingAndAreNamed) {
  const auto rows = Read(Numbers(314, 2, 17));
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->schema.features.size(), 1u);
  EXPECT_EQ(rows->schema.features[0].kind, ColumnKind::kNumeric);
  EXPECT_TRUE(std::isnan(rows->train[0].numbers[16]));
  EXPECT_EQ(rows->train[0].numbers[18], 19.5f);
  EXPECT_THAT(rows->schema.warnings,
              ElementsAre("train.csv: column 'x': 2 of 314 values are not numbers and count as "
                          "missing: 'bad17' (row 17, line 18), 'bad18' (row 18, line 19)"));
}

TEST(ImperfectFilesTest, TheShareOfTextsIsThatOfAllRowsWhereverTheyStand) {
  for (const int first : {1, 400, 985}) {
    const auto few = Read(Numbers(1000, 16, first));
    ASSERT_TRUE(few.ok()) << few.status();
    EXPECT_EQ(few->schema.features[0].kind, ColumnKind::kNumeric) << first;
    EXPECT_THAT(few->schema.warnings, ElementsAre(HasSubstr("16 of 1000 values")));
    EXPECT_THAT(few->schema.warnings[0], HasSubstr(", ..."));
  }
}

TEST(ImperfectFilesTest, AboveFivePercentAColumnIsText) {
  std::string file = "x,y\n";
  for (int row = 0; row < 100; ++row) {
    absl::StrAppend(&file, row < 6 ? "none of these" : absl::StrCat(row % 7), ",", row % 2, "\n");
  }
  const auto rows = Read(file);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->schema.features[0].kind, ColumnKind::kCategorical);
  // Its numbers are not lost.
  ASSERT_EQ(rows->schema.features.size(), 2);
  EXPECT_EQ(rows->schema.features[1].name, "x.number");
  EXPECT_EQ(rows->train[1].numbers[99], 99 % 7);
}

TEST(ImperfectFilesTest, ATestFileMayHaveAFewTextsAmongNumbersToo) {
  const auto rows = Read(Numbers(40, 0), Numbers(40, 2, 30));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(std::isnan(rows->test[0].numbers[29]));
  EXPECT_EQ(rows->test[0].numbers[31], 32.5f);
  EXPECT_THAT(rows->schema.warnings,
              ElementsAre(HasSubstr("test.csv: column 'x': 2 of 40 values are not numbers")));
}

TEST(ImperfectFilesTest, ATestFileWithManyTextsAmongNumbersIsRefusedWithTheFirst) {
  const auto rows = Read(Numbers(40, 0), Numbers(40, 3, 30));
  ASSERT_FALSE(rows.ok());
  EXPECT_THAT(std::string(rows.status().message()),
              HasSubstr("test.csv: row 30 (line 31), column 'x': 'bad30' is not a number"));
}

TEST(ImperfectFilesTest, ColumnsWithTheSameNameAreToldApart) {
  const auto rows = Read("x,y,x\n1,0,5\n2,1,4\n3,1,2\n", "x,x\n7,8\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->schema.features.size(), 2u);
  EXPECT_EQ(rows->schema.features[1].name, "x.1");
  EXPECT_THAT(rows->train[1].numbers, ElementsAre(5, 4, 2));
  EXPECT_THAT(rows->test[0].numbers, ElementsAre(7));
  EXPECT_THAT(rows->test[1].numbers, ElementsAre(8));
  EXPECT_THAT(rows->schema.warnings,
              ElementsAre("train.csv: several columns have the same name, column 'x'; the later "
                          "ones are called 'x.1' and so on",
                          "test.csv: several columns have the same name, column 'x'; the later "
                          "ones are called 'x.1' and so on"));
}

TEST(ImperfectFilesTest, TheIndexThatPandasWritesIsNoFeature) {
  for (const char* name : {"", "Unnamed: 0"}) {
    const auto rows =
        Read(absl::StrCat(name, ",x,y\n7,1,0\n3,2,1\n0,2,1\n"), absl::StrCat(name, ",x\n9,5\n"));
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(rows->schema.features.size(), 1u);
    EXPECT_EQ(rows->schema.features[0].name, "x");
    EXPECT_THAT(
        rows->schema.warnings,
        ::testing::Contains(absl::StrCat("train.csv: column '", *name == '\0' ? "unnamed: 0" : name,
                                         "' ignored: it numbers the rows; give it a name "
                                         "to use it")));
  }
  for (const char* numbers : {"7,1,0\n7,2,1\n0,2,1\n", "0.5,1,0\n1,2,1\n2,2,1\n"}) {
    const auto rows = Read(absl::StrCat(",x,y\n", numbers));
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_EQ(rows->schema.features.size(), 2u);
  }
}

TEST(ImperfectFilesTest, DelimitersAtTheEndOfEachLineAreNoColumn) {
  const auto rows = Read("x,y,\n1,0,\n2,1,\n3,1,\n", "x,\n7,\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->schema.features.size(), 1u);
  EXPECT_THAT(rows->test[0].numbers, ElementsAre(7));
  // A column with values is needed.
  EXPECT_THAT(std::string(Read("x,y,\n1,0,5\n2,1,6\n3,1,7\n", "x\n7\n").status().message()),
              HasSubstr("column 'unnamed: 2' of train.csv is missing"));
}

TEST(ImperfectFilesTest, TwoTargetsOrIdsOfTheSameNameAreRefused) {
  EXPECT_EQ(Read("x,y,y\n1,0,5\n2,1,4\n").status().message(),
            "train.csv: two columns are called 'y' (the target)");
  EXPECT_EQ(Read("x,y,k,k\n1,0,5,1\n2,1,4,2\n", "x,k\n1,2\n", TargetKind::kClasses, "k")
                .status()
                .message(),
            "train.csv: two columns are called 'k' (the id)");
  EXPECT_EQ(
      Read("x,y,k\n1,0,5\n2,1,4\n", "x,k,k\n1,2,3\n", TargetKind::kClasses, "k").status().message(),
      "test.csv: two columns are called 'k' (the id)");
  EXPECT_EQ(Read("x,y\n1,0\n2,1\n", "x,y,y\n1,0,1\n").status().message(),
            "test.csv: two columns are called 'y' (the target)");
}

TEST(ImperfectFilesTest, IdsThatRepeatAreWarnedOf) {
  const auto rows = Read("x,id,y\n1,a,0\n2,b,1\n3,c,1\n", "x,id\n5,r1\n6,r2\n7,r1\n8,r1\n",
                         TargetKind::kClasses, "id");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->schema.warnings,
              ElementsAre("test.csv: column 'id': 2 ids repeat an earlier one: 'r1' stands in rows "
                          "1 and 3"));
}

TEST(ImperfectFilesTest, ClassesThatDifferInLetterCaseAloneAreWarnedOf) {
  const auto rows = Read("x,y\n1,Yes\n2,no\n3,yes\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->schema.classes, ElementsAre("Yes", "no", "yes"));
  EXPECT_THAT(rows->schema.warnings,
              ElementsAre("train.csv: target 'y' has the classes 'Yes' and 'yes', which differ in "
                          "letter case alone"));
}

TEST(ImperfectFilesTest, ManyClassesThatAreNumbersGetAHint) {
  std::string file = "x,y\n";
  for (int row = 0; row < 60; ++row) absl::StrAppend(&file, row, ",", row % 30, ".25\n");
  const auto rows = Read(file);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->schema.warnings,
              ElementsAre("train.csv: target 'y' has 30 classes, and all of them are numbers; "
                          "should task.type be regression?"));
}

TEST(ImperfectFilesTest, SemicolonsSeparateFieldsWhereTheHeaderHasNoCommas) {
  const auto rows = Read("x;c;y\n1.5;a,b;0\n2.5;\"c;d\";1\n3.5;a,b;1\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->train[0].numbers, ElementsAre(1.5, 2.5, 3.5));
  EXPECT_THAT(rows->schema.features[1].categories, ElementsAre("a,b", "c;d"));
}

TEST(ImperfectFilesTest, DecimalCommasAreReadWhereSemicolonsSeparateFields) {
  const auto rows = Read("x;y\n1,5;0\n1.002,5;1\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->train[0].numbers, ElementsAre(1.5, 1002.5));
  EXPECT_THAT(rows->schema.warnings,
              ::testing::Contains("train.csv: numbers have decimal commas, such as '1,5'; points "
                                  "separate thousands"));
}

TEST(ImperfectFilesTest, ADecimalCommaBesidePointsIsNamedWithItsPlace) {
  const auto rows = Read("x;z;y\n1,5;0.5;0\n2,5;0.25;1\n");
  ASSERT_FALSE(rows.ok());
  EXPECT_EQ(rows.status().message(),
            "train.csv: row 1 (line 2), column 'x': '1,5' has a decimal comma; numbers need a "
            "decimal point");
}

}  // namespace
}  // namespace traind
