#include "common/data/table/table_reader.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "common/data/table/feature_reader.h"
#include "tests/common/data/table/table_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;
using ::testing::Not;
using testing_table::Read;

std::string Message(const absl::StatusOr<TableRows>& rows) {
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kInvalidArgument) << rows.status();
  return std::string(rows.status().message());
}

constexpr auto kValue = TargetKind::kValue;

TEST(TableReaderTest, ColumnsAreWhatTheirValuesAre) {
  const auto rows = Read("a,b,y\n1,x,no\n2.5,z,yes\n,x,no\nNA,?,yes\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  const TableSchema& schema = rows->schema;
  ASSERT_EQ(schema.features.size(), 2u);
  EXPECT_EQ(schema.features[0].kind, ColumnKind::kNumeric);
  EXPECT_EQ(schema.features[1].kind, ColumnKind::kCategorical);
  EXPECT_THAT(schema.features[1].categories, ElementsAre("x", "z"));
  EXPECT_THAT(rows->train[0].numbers, ElementsAre(1, 2.5f, IsNan(), IsNan()));
  EXPECT_THAT(rows->train[1].codes, ElementsAre(0, 1, 0, kMissingCode));
  EXPECT_THAT(schema.classes, ElementsAre("no", "yes"));
  EXPECT_THAT(rows->train_target.codes, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(schema.train_rows, 4);
  EXPECT_THAT(schema.warnings, IsEmpty());
}

TEST(TableReaderTest, CategoriesAreOrderedByFrequencyThenByText) {
  const auto rows = Read("c,y\nb,0\na,1\nq,0\nq,1\na,0\nb,1\nq,1\nz,0\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->schema.features[0].categories, ElementsAre("q", "a", "b", "z"));
  EXPECT_THAT(rows->train[0].codes, ElementsAre(2, 1, 0, 0, 1, 2, 0, 3));
}

TEST(TableReaderTest, AllWordsForMissingCount) {
  const auto rows = Read(
      "a,b,y\n1,x,0\n2,y,1\n ,  ,0\n?,?,1\nNA,NA,0\nN/A,N/A,1\nNaN,NaN,0\n"
      "nan,nan,1\nnull,null,0\nNULL,NULL,1\nNone,None,0\n\"\",\"\",1\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (size_t row = 2; row < 12; ++row) {
    EXPECT_TRUE(std::isnan(rows->train[0].numbers[row])) << row;
    EXPECT_EQ(rows->train[1].codes[row], kMissingCode) << row;
  }
}

TEST(TableReaderTest, TextFarDownMakesTheWholeColumnCategorical) {
  std::string train = "a,b,y\n";
  for (int i = 0; i < 1000; ++i) absl::StrAppend(&train, i % 7, ",", i % 3, ",", i % 2, "\n");
  for (int i = 0; i < 60; ++i) train += "six,1,0\n";
  const auto rows = Read(train);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const Column& column = rows->schema.features[0];
  EXPECT_EQ(column.kind, ColumnKind::kCategorical);
  ASSERT_EQ(column.categories.size(), 8u);
  ASSERT_EQ(rows->train[0].codes.size(), 1060u);
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(column.categories[static_cast<size_t>(rows->train[0].codes[i])],
              std::to_string(i % 7));
  }
  EXPECT_EQ(rows->schema.features[1].kind, ColumnKind::kNumeric);
}

TEST(TableReaderTest, NumericClassesAreSortedByValueAndSpelledOnce) {
  const auto rows = Read("a,y\n1,10\n2,9\n3,2\n4,2.0\n5,10\n", "a,y\n1,9.0\n2,10\n3,3\n4,\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->schema.classes, ElementsAre("2", "9", "10"));
  EXPECT_THAT(rows->train_target.codes, ElementsAre(2, 1, 0, 0, 2));
  EXPECT_THAT(rows->test_target.codes, ElementsAre(1, 2, kUnseenCode, kMissingCode));
  EXPECT_THAT(
      rows->schema.warnings,
      ElementsAre("test.csv: row 3 (line 4), column 'y': '3' is not a class of the training "
                  "file; 1 row is not scored"));
}

TEST(TableReaderTest, RowsWithoutATargetAreLeftOutAndCounted) {
  const auto rows = Read("a,c,y\n1,u,2.5\n2,v,NA\n3,u,4\n4,w,?\n5,u,1\n6,v,2\n", "", kValue);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->schema.train_rows, 4);
  EXPECT_THAT(rows->train[0].numbers, ElementsAre(1, 3, 5, 6));
  // The value w only occurs in a row that is left out.
  EXPECT_THAT(rows->schema.features[1].categories, ElementsAre("u", "v"));
  EXPECT_THAT(rows->train[1].codes, ElementsAre(0, 0, 0, 1));
  EXPECT_THAT(rows->train_target.numbers, ElementsAre(2.5f, 4, 1, 2));
  EXPECT_THAT(rows->schema.warnings,
              ElementsAre("train.csv: 2 of 6 rows left out: target 'y' is missing"));
}

TEST(TableReaderTest, UselessColumnsAreLeftOutWithAWarning) {
  std::string train = "good,empty,constant,constant_text,text,gaps,y\n";
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&train, i, ",,7,same,name", i, ",", i % 2 ? "3" : "", ",", i % 2, "\n");
  }
  const auto rows = Read(train);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->schema.features.size(), 2u);
  EXPECT_EQ(rows->schema.features[0].name, "good");
  EXPECT_EQ(rows->schema.features[1].name, "gaps");
  EXPECT_THAT(
      rows->schema.warnings,
      ElementsAre("train.csv: column 'empty' ignored: no value",
                  "train.csv: columns 'constant', 'constant_text' ignored: the same value in every "
                  "row",
                  "train.csv: column 'text' ignored: nearly every row has a value of its own"));
}

TEST(TableReaderTest, ASecondSurvivesInUnixSeconds) {
  std::string train = "t,price,y\n", test = "t,price,y\n";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(i < 30 ? &train : &test, 1'700'000'000 + i, ",", 100 * i, ".5,", i % 2, "\n");
  }
  absl::StrAppend(&test, "nan,,1\n1900000000,1,0\n");
  const auto rows = Read(train, test);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const std::vector<float>& seconds = rows->train[0].numbers;
  for (size_t i = 1; i < seconds.size(); ++i) EXPECT_EQ(seconds[i] - seconds[i - 1], 1) << i;
  EXPECT_EQ(rows->schema.features[0].offset, 1'700'000'014);
  EXPECT_EQ(rows->schema.features[1].offset, 0);
  EXPECT_EQ(rows->test[0].numbers[0] - seconds[29], 1);
  EXPECT_THAT(rows->test[0].numbers[10], IsNan());
  EXPECT_EQ(rows->test[0].numbers[11], 199'999'986);
  // The offset stands in the file, too.
  const auto table = testing_table::OpenTable(rows);
  EXPECT_EQ(table->schema().features[0].offset, 1'700'000'014);
  EXPECT_EQ(table->Numeric(0, Split::kTrain)[0], -14);
}

TEST(TableReaderTest, LargeNumbersThatFloatsHoldStayAsTheyAre) {
  std::string train = "year,wide,exact,y\n";
  for (int i = 0; i < 30; ++i) {
    absl::StrAppend(&train, 2000 + i, ",", i * 123'456'789LL, ",", 65536 * (1000 + i), ",", i % 2,
                    "\n");
  }
  const auto rows = Read(train);
  ASSERT_TRUE(rows.ok()) << rows.status();
  for (const Column& column : rows->schema.features) EXPECT_EQ(column.offset, 0) << column.name;
  EXPECT_EQ(rows->train[0].numbers[5], 2005);
}

TEST(TableReaderTest, OfMoreThanTenThousandCategoriesTheMostFrequentAreKept) {
  // Each value has two rows, and 10,000 of them have three.
  std::string train = "c,y\n";
  const auto add = [&](int value) { absl::StrAppend(&train, "v", value, ",", value % 2, "\n"); };
  for (int i = 0; i < 24'000; ++i) add(i % 12'000);
  for (int i = 2'000; i < 12'000; ++i) add(i);
  const auto rows = Read(train, "c\nv2000\nv1999\nnew\n\"\"\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->schema.features.size(), 1u);
  const std::vector<std::string>& kept = rows->schema.features[0].categories;
  ASSERT_EQ(kept.size(), 10'000u);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), "v1999"), 0);
  ASSERT_EQ(rows->train[0].codes.size(), 34'000u);
  EXPECT_EQ(rows->train[0].codes[1'999], kUnseenCode);
  EXPECT_EQ(kept[static_cast<size_t>(rows->train[0].codes[2'000])], "v2000");
  EXPECT_EQ(kept[static_cast<size_t>(rows->train[0].codes[33'999])], "v11999");
  // A rare value is what a new one is.
  EXPECT_THAT(rows->test[0].codes,
              ElementsAre(rows->train[0].codes[2'000], kUnseenCode, kUnseenCode, kMissingCode));
  EXPECT_THAT(
      rows->schema.warnings,
      ElementsAre("train.csv: column 'c' has 12000 distinct values: the 10000 most frequent "
                  "are its categories, and the others, of 4000 of 34000 rows, count as "
                  "unknown"));
  const auto table = testing_table::OpenTable(rows);
  EXPECT_EQ(table->Codes(0, Split::kTrain)[1'999], kUnseenCode);
  // A later file is read alike.
  const InputSchema schema = InputSchemaOf(table->schema());
  const auto reader = FeatureReader::Match(schema, {"c"}, "later.csv");
  ASSERT_TRUE(reader.ok()) << reader.status();
  CsvRows later;
  later.Append("v1999v2000", {5, 10}, 1, 2);
  std::vector<ColumnRows> cells;
  ASSERT_TRUE((*reader)->Read(later, 0, cells).ok());
  EXPECT_THAT(cells[0].codes, ElementsAre(kUnseenCode, rows->train[0].codes[2'000]));
}

TEST(TableReaderTest, ValuesBeyondThoseThatAreCountedAreRareOnes) {
  // "often" stands in every second row, the other values once.
  std::string train = "c,y\n";
  for (int i = 0; i < 102'000; ++i) absl::StrAppend(&train, "often,0\nv", i, ",1\n");
  TableSource source;
  source.train = {"train.csv", train};
  source.target = "y";
  for (const int threads : {1, 3}) {
    source.threads = threads;
    const auto rows = ReadTable(source);
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(rows->schema.features.size(), 2u);
    EXPECT_EQ(rows->schema.features[1].name, "c.word.v");
    EXPECT_TRUE(std::isnan(rows->train[1].numbers[203'999]));
    EXPECT_EQ(rows->schema.features[0].categories.size(), 10'000u);
    EXPECT_EQ(rows->schema.features[0].categories[0], "often");
    EXPECT_EQ(rows->train[0].codes[203'999], kUnseenCode);
    EXPECT_THAT(
        rows->schema.warnings,
        ElementsAre("train.csv: column 'c' has more than 100000 distinct values: the 10000 most "
                    "frequent are its categories, and the others, of 92001 of 204000 rows, count "
                    "as unknown",
                    "train.csv: column 'c' holds texts: its numbers, lengths and frequent words "
                    "are features, too"));
  }
}

TEST(TableReaderTest, WhetherUncountedValuesRepeatIsToldByTheCountedOnes) {
  std::string train = "c,d,y\n";
  for (int i = 0; i < 330'000; ++i) {
    // c: each value three times. d: one row of 20 is "often", the others have values of their own.
    absl::StrAppend(&train, "c", i % 110'000, ",", i % 20 == 0 ? "often" : absl::StrCat("d", i),
                    ",", i % 2, "\n");
  }
  const auto rows = Read(train);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->schema.features.size(), 2u);
  EXPECT_EQ(rows->schema.features[0].name, "c");
  EXPECT_EQ(rows->schema.features[1].name, "d.word.d");  // or "often"
  EXPECT_THAT(
      rows->schema.warnings,
      ElementsAre(HasSubstr("column 'c' has more than 100000 distinct values"),
                  HasSubstr("column 'd' holds texts: its numbers, lengths and frequent words are "
                            "features, not the texts themselves")));
}

TEST(TableReaderTest, AColumnOfAValueForEachRowIsFreeTextHoweverManyThereAre) {
  for (const int count : {12'000, 120'000}) {
    std::string train = "a,c,y\n";
    for (int i = 0; i < count; ++i) absl::StrAppend(&train, i, ",v", i, ",", i % 2, "\n");
    const auto rows = Read(train);
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(rows->schema.features.size(), 1u);
    EXPECT_THAT(rows->schema.warnings,
                ElementsAre("train.csv: column 'c' ignored: nearly every row has a value of its "
                            "own"));
  }
}

TEST(TableReaderTest, TestColumnsAreMatchedByNameInAnyOrder) {
  const auto rows =
      Read("a,c,id,y\n1,u,10,0\n2,v,11,1\n3,u,12,1\n",
           "id,extra,c,a\nr-1,9,v,5\n\"r,2\",9,new,6\nr 3,9,NA,\n", TargetKind::kClasses, "id");
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->schema.features.size(), 2u) << "the id is no feature";
  EXPECT_THAT(rows->test[0].numbers, ElementsAre(5, 6, IsNan()));
  EXPECT_THAT(rows->test[1].codes, ElementsAre(1, kUnseenCode, kMissingCode));
  EXPECT_EQ(rows->schema.test_rows, 3);
  EXPECT_FALSE(rows->schema.test_has_target);
  EXPECT_EQ(rows->test_ids.text, "r-1r,2r 3");
  EXPECT_THAT(rows->test_ids.ends, ElementsAre(3u, 6u, 9u));
  EXPECT_THAT(rows->schema.warnings,
              ElementsAre("test.csv: column 'extra' ignored: not in train.csv"));
}

TEST(TableReaderTest, WhatTheTestTargetHoldsIsNoError) {
  const auto rows = Read("a,y\n1,0.5\n2,1.5\n3,2\n", "a,y\n1,unknown\n2,\n3,7\n", kValue);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(rows->schema.test_has_target);
  EXPECT_THAT(rows->test_target.numbers, ElementsAre(IsNan(), IsNan(), 7));
  ASSERT_EQ(rows->schema.warnings.size(), 1u);
  EXPECT_THAT(rows->schema.warnings[0], HasSubstr("'unknown' is not a finite number; 1 row is"));
}

TEST(TableReaderTest, TestValuesDoNotReachTheSchema) {
  const std::string train = "a,c,y\n1,u,0\n2,v,1\n3,u,1\n";
  const auto one = Read(train, "a,c\n1,u\n");
  const auto other = Read(train, "a,c,y\n-100,planted,1\n1e30,planted,0\n");
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_EQ(one->schema.features[1].categories, other->schema.features[1].categories);
  EXPECT_EQ(one->train[0].numbers, other->train[0].numbers);
  EXPECT_EQ(one->train[1].codes, other->train[1].codes);
  EXPECT_EQ(one->schema.classes, other->schema.classes);
}

// ---- bad input ----------------------------------------------------------------

TEST(TableReaderTest, EmptyFileAndHeaderOnlyAreNamed) {
  EXPECT_THAT(Message(Read("")), HasSubstr("train.csv: the file is empty"));
  EXPECT_THAT(Message(Read("a,y\n")), HasSubstr("train.csv: there is no row"));
  EXPECT_THAT(Message(Read("a,y\n1,0\n2,1\n", "a\n")), HasSubstr("test.csv: there is no row"));
}

TEST(TableReaderTest, RaggedRowIsNamedByRowLineAndColumn) {
  EXPECT_THAT(
      Message(Read("a,b,y\n1,\"x\n\",0\n1,x\n")),
      HasSubstr("train.csv: row 2 (line 4) has 2 fields, the header has 3: column 3 ('y')"));
  EXPECT_THAT(Message(Read("a,b,y\n1,x,0\n1,x,1,9\n")), HasSubstr("row 2 (line 3) has 4 fields"));
}

TEST(TableReaderTest, MissingTargetColumnComesWithASuggestion) {
  EXPECT_THAT(
      Message(Read("a,incme\n1,0\n", "", TargetKind::kClasses, "", "income")),
      HasSubstr("train.csv: there is no column 'income' (the target); did you mean 'incme'"));
  EXPECT_THAT(Message(Read("a:b:y\n1:2:0\n")),
              HasSubstr("its one column is 'a:b:y': commas, tabs, semicolons or bars separate"));
}

TEST(TableReaderTest, TargetsThatNothingCanBeLearntFromAreErrors) {
  EXPECT_THAT(Message(Read("a,y\n1,k\n2,k\n")), HasSubstr("target 'y' is constant: 'k'"));
  EXPECT_THAT(Message(Read("a,y\n1,3\n2,3.0\n")), HasSubstr("target 'y' is constant"));
  EXPECT_THAT(Message(Read("a,y\n1,5\n2,5\n", "", kValue)), HasSubstr("target 'y' is constant"));
  EXPECT_THAT(Message(Read("a,y\n1,?\n2,\n")), HasSubstr("target 'y' is missing in every row"));
  EXPECT_THAT(Message(Read("a,y\n1,NA\n2,\n", "", kValue)), HasSubstr("is missing in every row"));
}

TEST(TableReaderTest, RegressionNeedsFiniteNumbersInItsTarget) {
  EXPECT_THAT(Message(Read("a,y\n1,2\n2,many\n", "", kValue)),
              HasSubstr("train.csv: row 2 (line 3), column 'y': 'many' is not a number"));
  EXPECT_THAT(Message(Read("a,y\n1,2\n2,1e9999\n", "", kValue)),
              HasSubstr("row 2 (line 3), column 'y': '1e9999' is not a finite number"));
}

TEST(TableReaderTest, ValuesThatAreNotFiniteAreNamedByTheirPlace) {
  for (const char* bad : {"inf", "-Infinity", "1e9999", "1e39"}) {
    EXPECT_THAT(Message(Read(absl::StrCat("a,b,y\n1,2,0\n3,", bad, ",1\n"))),
                HasSubstr(absl::StrCat("train.csv: row 2 (line 3), column 'b': '", bad,
                                       "' is not a finite number")));
    EXPECT_THAT(Message(Read("a,b,y\n1,2,0\n3,4,1\n", absl::StrCat("b,a\n1,2\n", bad, ",2\n"))),
                HasSubstr(absl::StrCat("test.csv: row 2 (line 3), column 'b': '", bad, "'")));
  }
  // In a column of text, inf is text.
  EXPECT_TRUE(Read("a,b,y\n1,inf,0\n3,word,1\n4,inf,1\n").ok());
}

TEST(TableReaderTest, TooManyClassesAreNoClassification) {
  std::string train = "a,y\n";
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&train, i, ",", i * 0.5, "\n");
  EXPECT_THAT(Message(Read(train)), HasSubstr("should task.type be regression?"));
  EXPECT_TRUE(Read(train, "", kValue).ok());
  train = "a,y\n";
  for (int i = 0; i < 2000; ++i) absl::StrAppend(&train, i, ",name", i, "\n");
  EXPECT_THAT(Message(Read(train)),
              HasSubstr("(row 1001 brings 'name1000'); name another column by data.target"));
}

TEST(TableReaderTest, TestFileWithOtherColumnsIsNamed) {
  const std::string train = "age,size,y\n1,2,0\n2,3,1\n";
  EXPECT_THAT(Message(Read(train, "size,ages\n1,2\n")),
              HasSubstr("test.csv: column 'age' of train.csv is missing; did you mean 'ages'"));
  EXPECT_THAT(Message(Read(train, "other\n1\n")),
              HasSubstr("columns 'age', 'size' of train.csv are missing"));
  EXPECT_THAT(Message(Read(train, "age,size\n1,big\n")),
              HasSubstr("test.csv: row 1 (line 2), column 'size': 'big' is not a number"));
  EXPECT_THAT(Message(Read(train, "age,size\n1,2\n", TargetKind::kClasses, "key")),
              HasSubstr("test.csv: there is no column 'key' (the id)"));
}

TEST(TableReaderTest, BinaryGarbageIsRefused) {
  std::string garbage;
  for (int i = 0; i < 5000; ++i) garbage += static_cast<char>((i * 7919) >> 3);
  EXPECT_THAT(Message(Read(garbage)), HasSubstr("train.csv"));
  EXPECT_THAT(Message(Read(std::string("a,y\n1,0\n2,\0\n", 12))), HasSubstr("a zero byte"));
  EXPECT_THAT(Message(Read(std::string("a,y\n1,\0\n", 8))),
              HasSubstr("train.csv: line 2: a zero byte"));
  EXPECT_THAT(Message(Read("\xff\xfe"
                           "a")),
              HasSubstr("UTF-16"));
  EXPECT_THAT(Message(Read("a,y\n1,\"0\n2,1\n")), HasSubstr("never closed"));
}

TEST(TableReaderTest, BytesThatAreNoTextAreNamedByRowAndColumn) {
  EXPECT_THAT(Message(Read("a,y\n1,0\n\xe9t\xe9,1\n")),
              HasSubstr("train.csv: row 2 (line 3), column 'a': byte 0xe9 is not UTF-8"));
  // The bad byte stands among quoted fields with line ends, doubled quotes and other languages.
  EXPECT_THAT(Message(Read("a,b,y\n\"x\ny\",\u6771,0\n2,\"so \"\"caf\xe9\"\"\",1\n")),
              HasSubstr("train.csv: row 2 (line 4), column 'b': byte 0xe9 is not UTF-8"));
  EXPECT_THAT(Message(Read("a\tb\ty\n1\t\xc3\t0\n")), HasSubstr("row 1 (line 2), column 'b'"));
  EXPECT_THAT(Message(Read("a,b\xff,y\n1,2,0\n")),
              HasSubstr("train.csv: the header (line 1), column 2: byte 0xff"));
  EXPECT_THAT(Message(Read("a,y\n1,0\n2,\"\xff\n")), HasSubstr("train.csv: line 3: byte 0xff"));
  EXPECT_THAT(Message(Read("a,y\n1,0\n2,1\n", "a\n\xf0\x28\n")),
              HasSubstr("test.csv: row 1 (line 2), column 'a': byte 0xf0"));
}

TEST(TableReaderTest, TenThousandColumnsAreRead) {
  std::string header = "y", row0 = "0", row1 = "1";
  for (int i = 0; i < 10'000; ++i) {
    absl::StrAppend(&header, ",c", i);
    absl::StrAppend(&row0, ",", i);
    absl::StrAppend(&row1, ",", i % 2 ? "x" : "2");
  }
  const std::string text = absl::StrCat(header, "\n", row0, "\n", row1, "\n", row0, "\n");
  const auto rows = Read(text, text);
  ASSERT_TRUE(rows.ok()) << rows.status();
  // Column c2 is 2 in every row.
  EXPECT_EQ(rows->schema.features.size(), 9'999u);
  EXPECT_EQ(rows->test[9'998].codes.size(), 3u);
}

TEST(TableReaderTest, NoFeatureIsAnError) {
  EXPECT_THAT(Message(Read("y\n0\n1\n")), HasSubstr("no column is left to learn from"));
  EXPECT_THAT(Message(Read("a,y\n1,0\n1,1\n")), HasSubstr("column 'a' ignored"));
}

bool Same(const ColumnRows& a, const ColumnRows& b) {
  // Values are compared bit by bit, because NaN means missing.
  return a.codes == b.codes && a.numbers.size() == b.numbers.size() &&
         std::equal(a.numbers.begin(), a.numbers.end(), b.numbers.begin(),
                    [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

TEST(TableReaderTest, TheTableDoesNotDependOnThreads) {
  // The text makes several parts, with values that first occur late, text after numbers, and line
  // ends in quotes.
  std::string text = "a,b,c,d,y\n";
  for (int row = 0; text.size() < (5 << 20); ++row) {
    absl::StrAppend(&text, row % 7 == 0 ? "" : absl::StrCat(row * 0.37), ",w",
                    row % 901 + row / 9000, ",", row > 90'000 ? "late" : absl::StrCat(row % 13),
                    ",\"quoted\n", row % 3, "\",", row % 2, "\n");
  }
  TableSource source;
  source.train = {"train.csv", text};
  source.target = "y";
  const auto one = ReadTable(source);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->schema.features[2].kind, ColumnKind::kCategorical);
  source.threads = 3;
  const auto three = ReadTable(source);
  ASSERT_TRUE(three.ok()) << three.status();
  ASSERT_EQ(one->train.size(), three->train.size());
  for (size_t f = 0; f < one->train.size(); ++f) {
    EXPECT_TRUE(Same(one->train[f], three->train[f])) << f;
    EXPECT_EQ(one->schema.features[f].categories, three->schema.features[f].categories);
  }
  EXPECT_TRUE(Same(one->train_target, three->train_target));

  const std::string bad = text + "1,x,2,z,\n1,x,inf,z,1\n1,2\n";
  source.train.bytes = bad;
  source.threads = 1;
  const std::string first = Message(ReadTable(source));
  source.threads = 3;
  EXPECT_EQ(Message(ReadTable(source)), first);
}

}  // namespace
}  // namespace traind
