// Rows of sums below the data.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/data/table/table_reader.h"
#include "tests/common/data/table/table_fixture.h"

namespace traind {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing_table::Read;

// A hundred rows; the sums are 5050, 125 and 50.
std::string Sales(const std::string& last = "") {
  std::string file = "shop,items,price,y\n";
  for (int i = 1; i <= 100; ++i) {
    absl::StrAppend(&file, "shop ", i % 7, ",", i, ",", i % 2 ? "1.25" : "1.2500", ",", i % 2,
                    "\n");
  }
  return file + last;
}

constexpr char kNotTheSums[] =
    "may hold totals, but its numbers are not the sums of the rows above; it is kept";

TEST(TotalRowTest, ALastRowOfSumsIsLeftOutAndNamed) {
  for (const char* last :
       {"Total,5050,125,50\n", "TOTAL:,5050,125.00,50", " summe ,5050,,50\r\n\n  \n",
        "Grand total,5050,,\n", "Gesamt,\"5,050\",$125,\n"}) {
    const auto rows = Read(Sales(last));
    ASSERT_TRUE(rows.ok()) << rows.status() << last;
    EXPECT_EQ(rows->schema.train_rows, 100) << last;
    EXPECT_THAT(rows->schema.classes, ElementsAre("0", "1"));
    EXPECT_THAT(rows->schema.features[0].categories, Not(Contains(HasSubstr("otal"))));
    EXPECT_EQ(rows->train[1].numbers.back(), 100);
    EXPECT_THAT(rows->schema.warnings, Contains(HasSubstr("train.csv: row 101 (line 102), '")));
    EXPECT_THAT(rows->schema.warnings,
                Contains(HasSubstr("' in column 'shop', left out: it holds sums of the rows above, "
                                   "such as that of column 'items'")));
  }
}

TEST(TotalRowTest, SumsMayBeRounded) {
  std::string file = "day,x,y\n";
  double sum = 0;
  for (int i = 1; i <= 300; ++i) {
    const double value = i / 7.0;
    sum += value;
    absl::StrAppend(&file, "2024-01-0", 1 + i % 9, ",", std::round(value * 10) / 10, ",", i % 2,
                    "\n");
  }
  // The sum of the numbers before they were rounded, in six digits: 6450.
  const auto rows = Read(absl::StrCat(file, "Sum,", sum, ",\n"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->schema.train_rows, 300);
  const auto other = Read(absl::StrCat(file, "Sum,", sum + 4, ",1\n"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->schema.train_rows, 301);
  EXPECT_THAT(other->schema.warnings, Contains(HasSubstr(kNotTheSums)));
}

TEST(TotalRowTest, WholeNumbersMustBeTheSum) {
  const auto rows = Read(Sales("Total,5051,,1\n"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->schema.train_rows, 101);
  EXPECT_THAT(rows->schema.warnings,
              Contains(absl::StrCat("train.csv: row 101 (line 102), 'Total' in column 'shop', ",
                                    kNotTheSums)));
}

TEST(TotalRowTest, ASumBesideAnotherNumberIsNotCertain) {
  const auto one = Read(Sales("Total,5050,1.25,1\n"));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->schema.train_rows, 101);
  EXPECT_THAT(one->schema.warnings, Contains(HasSubstr(kNotTheSums)));
  // Two sums are, whatever the third number is.
  const auto two = Read(Sales("Total,5050,1.25,50\n"));
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_EQ(two->schema.train_rows, 100);
}

TEST(TotalRowTest, AWordThatOtherRowsHaveIsAValue) {
  std::string file = "company,x,y\n";
  for (int i = 1; i <= 10; ++i) {
    absl::StrAppend(&file, i == 4 ? "total" : "Shell", ",", i, ",", i % 2, "\n");
  }
  const auto rows = Read(absl::StrCat(file, "Total,55,5\n"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->schema.train_rows, 11);
  EXPECT_THAT(rows->schema.warnings, Each(Not(HasSubstr("total"))));
}

TEST(TotalRowTest, AWordElsewhereIsNone) {
  const auto middle = Read(Sales("Total,5050,125,50\nshop 1,1,1.25,1\n"));
  ASSERT_TRUE(middle.ok()) << middle.status();
  EXPECT_EQ(middle->schema.train_rows, 102);
  const auto part = Read(Sales("Total Ltd,5050,125,50\n"));
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_EQ(part->schema.train_rows, 101);
  const auto quoted = Read(Sales("\"shop\nTotal,5050,125,50\n\",1,2,0\n"));
  ASSERT_TRUE(quoted.ok()) << quoted.status();
  EXPECT_EQ(quoted->schema.train_rows, 101);
  for (const auto* rows : {&middle, &part, &quoted}) {
    EXPECT_THAT((*rows)->schema.warnings, Each(Not(HasSubstr("left out"))));
  }
}

TEST(TotalRowTest, ARowWithoutNumbersIsNone) {
  std::string file = "word,y\n";
  for (int i = 0; i < 20; ++i) absl::StrAppend(&file, "word ", i % 3, ",", i % 2 ? "a" : "b", "\n");
  const auto rows = Read(file + "sum,a\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->schema.train_rows, 21);
  EXPECT_THAT(rows->schema.warnings, IsEmpty());
}

TEST(TotalRowTest, SumsThatTellNothingAreNoSums) {
  // Zeros, one number alone, two numbers, and numbers of both signs have sums that a row of data
  // may well hold.
  const std::string counts =
      "op,zero,one,two,sign,y\nmax,0,0,0,0.5,1\nmin,0,3,1,-0.5,0\nmean,0,0,2,0.5,1\n"
      "mode,0,0,0,-0.25,0\nlast,0,0,0,0.25,1\n";
  const auto rows = Read(counts + "sum,0,3,3,0.5,\n", "", TargetKind::kClasses);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->schema.warnings, Not(Contains(HasSubstr("sums of the rows above, such"))));
  const auto kept = Read(counts + "sum,0,3,3,0.5,1\n");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->schema.train_rows, 6);
}

TEST(TotalRowTest, TestRowsAreNeverLeftOut) {
  const auto rows = Read(Sales("Total,5050,125,50\n"), Sales("Total,5050,125,50\n"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->schema.train_rows, 100);
  EXPECT_EQ(rows->schema.test_rows, 101);
}

TEST(TotalRowTest, ASeriesOfTimesMayEndInOne) {
  TableSource source;
  source.train = {"train.csv", "t,y\n2024-01-01,1\n2024-01-02,3\n2024-01-03,2\nTotal,6\n"};
  source.target = "y";
  source.target_kind = TargetKind::kValue;
  source.time = "t";
  source.history = true;
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->train_target.numbers, ElementsAre(1, 3, 2));
}

}  // namespace
}  // namespace traind
