// Tables whose columns have roles (times, series, groups, folds, several targets), and dates, tabs
// and missing names.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <string>

#include "common/data/table/folds.h"
#include "common/data/table/table_reader.h"
#include "common/data/table/table_writer.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsNan;

TableSource Forecast(const std::string& train, const std::string& test = "") {
  TableSource source;
  source.train = {"train.csv", train};
  if (!test.empty()) source.test = {"test.csv", test};
  source.target = "y";
  source.target_kind = TargetKind::kValue;
  source.time = "t";
  source.history = true;
  return source;
}

std::string Message(const absl::StatusOr<TableRows>& rows) {
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kInvalidArgument) << rows.status();
  return std::string(rows.status().message());
}

std::shared_ptr<const Table> Open(const TableRows& rows) {
  std::string pattern = ::testing::TempDir() + "/series.XXXXXX";
  const std::string dir = mkdtemp(pattern.data());
  EXPECT_TRUE(WriteTable(rows, dir + "/t").ok());
  auto table = Table::Open(dir + "/t");
  std::filesystem::remove_all(dir);  // the mapping stays valid
  EXPECT_TRUE(table.ok()) << table.status();
  return *table;
}

std::vector<std::string> Names(const TableSchema& schema) {
  std::vector<std::string> names;
  for (const Column& column : schema.features) names.push_back(column.name);
  return names;
}

TEST(SeriesTableTest, RowsAreInTheOrderOfSeriesAndTimeAndThoseWithoutATargetStay) {
  const std::string train = "s,t,y\nb,1,10\na,1,1\nb,2,\na,3,3\nb,3,30\na,2,2\n";
  const std::string test = "s,t\na,5\nb,4\na,4\nc,1\n";
  TableSource source = Forecast(train, test);
  source.series = "s";
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto table = Open(*rows);
  const TableSchema& schema = table->schema();
  EXPECT_TRUE(schema.ordered);
  EXPECT_THAT(schema.series, ElementsAre("b", "a", "c"));
  EXPECT_THAT(table->TargetValue(Split::kTrain), ElementsAre(10, IsNan(), 30, 1, 2, 3));
  EXPECT_THAT(table->Times(), ElementsAre(1, 2, 3, 1, 2, 3));
  EXPECT_THAT(table->SeriesEnds(Split::kTrain), ElementsAre(3, 6, 6));
  EXPECT_THAT(table->SeriesEnds(Split::kTest), ElementsAre(1, 3, 4));
  EXPECT_THAT(table->TestOrder(), ElementsAre(1, 2, 0, 3));
  // The series is itself a feature; the times, which are numbers, are not.
  EXPECT_THAT(Names(schema), ElementsAre("s"));
  EXPECT_THAT(schema.warnings,
              ElementsAre(HasSubstr("1 of 6 rows are history alone"),
                          HasSubstr("train.csv: row 6, column 't': this row of series 'a' is "
                                    "earlier than one before it"),
                          HasSubstr("test.csv: row 3, column 't'")));
}

TEST(SeriesTableTest, ATimeThatIsThereTwiceNamesBothRows) {
  EXPECT_THAT(Message(ReadTable(Forecast("t,y\n1,1\n2,2\n2,3\n"))),
              HasSubstr("train.csv: row 3, column 't': row 2 has the same time"));
  const std::string train = "s,t,y\na,1,1\nb,1,2\na,1.0,3\n";
  TableSource source = Forecast(train);
  source.series = "s";
  EXPECT_THAT(Message(ReadTable(source)),
              HasSubstr("row 3, column 't': row 1 of series 'a' has the same time"));
}

TEST(SeriesTableTest, TimesAreDatesOrNumbersAndNeverMissing) {
  EXPECT_THAT(Message(ReadTable(Forecast("t,y\n1,1\nsoon,2\n"))),
              HasSubstr("row 2 (line 3), column 't': 'soon' is neither a date"));
  EXPECT_THAT(Message(ReadTable(Forecast("t,y\n2020-01-01,1\n7,2\n"))),
              HasSubstr("row 2 (line 3), column 't': '7': the rows above have dates there"));
  EXPECT_THAT(Message(ReadTable(Forecast("t,y\n1,1\n,2\n"))),
              HasSubstr("row 2, column 't': the time is missing"));
  EXPECT_THAT(Message(ReadTable(Forecast("t,y\n1,1\n2,2\n", "t\n2020-01-01\n"))),
              HasSubstr("test.csv: row 1 (line 2), column 't': '2020-01-01' is not a number"));
}

TEST(SeriesTableTest, TestRowsComeAfterTheTrainingRowsOfTheirSeries) {
  EXPECT_THAT(Message(ReadTable(Forecast("t,y\n1,1\n2,2\n", "t\n3\n2\n"))),
              HasSubstr("test.csv: row 2, column 't': not later than the last row of train.csv"));
}

TEST(SeriesTableTest, DatesOfTheTimeBecomeWhatComesAgain) {
  const auto rows =
      ReadTable(Forecast("t,y\n2020-01-31,1\n2020-02-01,2\n2021-02-02,3\n", "t\n2022-03-07\n"));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(Names(rows->schema), ElementsAre("t.month", "t.day", "t.day_of_year", "t.weekday"));
  EXPECT_THAT(rows->train[3].numbers, ElementsAre(4, 5, 1));
  EXPECT_THAT(rows->test[3].numbers, ElementsAre(0));
}

// The warnings of steps and zones; other warnings are left out.
std::vector<std::string> TimeWarnings(const TableSource& source) {
  const auto rows = ReadTable(source);
  EXPECT_TRUE(rows.ok()) << rows.status();
  std::vector<std::string> warnings;
  if (!rows.ok()) return warnings;
  for (const std::string& text : rows->schema.warnings) {
    if (absl::StrContains(text, "zone") || absl::StrContains(text, "step")) {
      warnings.push_back(text);
    }
  }
  return warnings;
}

std::string Rows(const std::vector<std::string>& times) {
  std::string file = "t,y\n";
  for (size_t i = 0; i < times.size(); ++i) absl::StrAppend(&file, times[i], ",", i * i, "\n");
  return file;
}

TEST(SeriesTableTest, EvenStepsGetNoWarning) {
  std::vector<std::vector<std::string>> regular(4);
  for (int i = 0; i < 48; ++i) {
    regular[0].push_back(absl::StrFormat("2024-01-%02dT%02d:00", 1 + i / 24, i % 24));
    regular[1].push_back(absl::StrFormat("%d-%02d", 2020 + i / 12, 1 + i % 12));
    regular[2].push_back(absl::StrFormat(
        "%d-%02d-%02d", 2021 + i / 12, 1 + i % 12,
        std::array{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[static_cast<size_t>(i % 12)] +
            (i == 37)));
    regular[3].push_back(absl::StrCat(0.1 * i));
  }
  regular.push_back({"2020Q1", "2020Q2", "2020Q3", "2020Q4", "2021Q1"});
  regular.push_back({"2001", "2002", "2003"});
  regular.push_back({"2024-01-01", "2024-01-09"});  // a single step
  for (const auto& times : regular) {
    EXPECT_THAT(TimeWarnings(Forecast(Rows(times))), IsEmpty()) << times[1];
  }
}

TEST(SeriesTableTest, StepsThatDifferFromTheUsualOneAreCounted) {
  std::vector<std::string> days;
  for (int day = 1; day <= 31; ++day) {
    if (day != 7 && day != 8 && day != 20) days.push_back(absl::StrFormat("2024-01-%02d", day));
  }
  EXPECT_THAT(
      TimeWarnings(Forecast(Rows(days))),
      ElementsAre("train.csv: column 't': 2 of 27 steps differ from the usual one of 1 day, "
                  "first that to row 7; forecasts count rows, not time"));
  const std::vector<std::string> months = {"2024-01", "2024-02", "2024-03", "2024-06", "2024-07"};
  EXPECT_THAT(
      TimeWarnings(Forecast(Rows(months))),
      ElementsAre(HasSubstr("1 of 4 steps differs from the usual one of 1 month, first that "
                            "to row 4")));
  EXPECT_THAT(TimeWarnings(Forecast(Rows({"1", "4", "10", "40"}))),
              ElementsAre("train.csv: column 't': its steps are not alike, from 3 to 30; forecasts "
                          "count rows, not time"));
  // Rows are counted as they stand in the file, and steps never cross series.
  const std::string two = "s,t,y\nb,9,1\na,1,2\na,2,3\na,3,4\nb,10,1\nb,12,3\n";
  TableSource source = Forecast(two);
  source.series = "s";
  EXPECT_THAT(TimeWarnings(source), ElementsAre(HasSubstr("1 of 4 steps differs from the usual one "
                                                          "of 1, first that to row 6;")));
  // Where rows are only put in order by their times, steps say nothing.
  source.history = false;
  EXPECT_THAT(TimeWarnings(source), IsEmpty());
}

TEST(SeriesTableTest, TestRowsThatDoNotFollowInTheStepOfTheTrainingRowsAreCounted) {
  const std::string train = Rows({"2024-01-01", "2024-01-02", "2024-01-03", "2024-01-04"});
  EXPECT_THAT(TimeWarnings(Forecast(train, "t\n2024-01-05\n2024-01-06\n")), IsEmpty());
  EXPECT_THAT(
      TimeWarnings(Forecast(train, "t\n2024-01-10\n2024-01-11\n")),
      ElementsAre("test.csv: column 't': 1 of 2 steps differs from the usual one of 1 day in "
                  "train.csv, first that to row 1; forecasts count rows, not time"));
}

TEST(SeriesTableTest, ZonesAreToldOfWhereSomeTimesHaveNone) {
  const std::vector<std::string> with = {"2024-01-01T00:00Z", "2024-01-01T02:00+01:00",
                                         "2024-01-01 02:00-00"};
  const std::vector<std::string> without = {"2024-01-01T00:00", "2024-01-01T01:00",
                                            "2024-01-01 02:00"};
  EXPECT_THAT(TimeWarnings(Forecast(Rows(with))), IsEmpty());
  EXPECT_THAT(TimeWarnings(Forecast(Rows(without))), IsEmpty());
  EXPECT_THAT(
      TimeWarnings(Forecast(Rows({with[0], with[1], without[2]}))),
      ElementsAre(
          "train.csv: column 't': times without a zone, such as '2024-01-01 02:00' (row 3), "
          "count as UTC; others have one, such as '2024-01-01T00:00Z' (row 1)"));
  EXPECT_THAT(TimeWarnings(Forecast(Rows(with), "t\n2024-01-01T03:00Z\n")), IsEmpty());
  EXPECT_THAT(TimeWarnings(Forecast(Rows(with), "t\n2024-01-01T03:00\n")),
              ElementsAre("test.csv: column 't': times without a zone, such as '2024-01-01T03:00', "
                          "while the training file has '2024-01-01T00:00Z'; without a zone they "
                          "count as UTC"));
  EXPECT_THAT(TimeWarnings(Forecast(Rows(without), "t\n2024-01-01T03:00Z\n")),
              ElementsAre(HasSubstr("times with a zone, such as '2024-01-01T03:00Z', while the "
                                    "training file has '2024-01-01T00:00'")));
}

TEST(DateColumnTest, ADateBecomesNumbersWithAWarning) {
  TableSource source;
  const std::string train = "when,y\n2020-01-31 06:00,a\n,b\n2021-02-02 07:30,a\n";
  source.train = {"train.csv", train};
  source.target = "y";
  auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(Names(rows->schema),
              ElementsAre("when.days", "when.year", "when.month", "when.day", "when.day_of_year",
                          "when.weekday", "when.hour", "when.minute"));
  EXPECT_THAT(rows->train[1].numbers, ElementsAre(2020, IsNan(), 2021));
  EXPECT_FLOAT_EQ(rows->train[0].numbers[0], 7335.25f);
  EXPECT_THAT(rows->schema.warnings, ElementsAre(HasSubstr("column 'when' is a date")));

  source.test = {"test.csv", "when\n2022-01-01\nyesterday\n"};
  EXPECT_THAT(Message(ReadTable(source)),
              HasSubstr("row 2 (line 3), column 'when': 'yesterday' is not a date"));
}

TEST(DateColumnTest, ManyTextsFurtherDownMakeCategoriesOfDates) {
  std::string train = "when,y\n";
  for (int i = 0; i < 300; ++i) absl::StrAppend(&train, "2020-01-0", 1 + i % 3, ",", i % 2, "\n");
  for (int i = 0; i < 16; ++i) train += "never,1\n";  // more than 5 %
  TableSource source;
  source.train = {"train.csv", train};
  source.target = "y";
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->schema.features[0].kind, ColumnKind::kCategorical);
  EXPECT_EQ(rows->schema.features[0].categories.size(), 4u);
}

TEST(HeaderTest, ColumnsWithoutANameAreCalledByTheirPlace) {
  TableSource source;
  source.train = {"train.csv", ",a,y\n0.5,5,x\n1,6,z\n"};
  source.target = "y";
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(Names(rows->schema), ElementsAre("unnamed: 0", "a"));
  EXPECT_THAT(rows->schema.warnings, ElementsAre(HasSubstr("called column 'unnamed: 0'")));
}

TEST(HeaderTest, TabsPartFieldsByNameOrByTheFirstLine) {
  for (const char* name : {"train.tsv", "train.txt"}) {
    TableSource source;
    source.train = {name, "a\tb\ty\n1\tx, y\t0\n2\t\t1\n"};
    source.target = "y";
    const auto rows = ReadTable(source);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_THAT(rows->schema.features[1].categories, ElementsAre("x, y"));
    EXPECT_THAT(rows->train[1].codes, ElementsAre(0, kMissingCode));
  }
}

TEST(TargetsTest, RowsThatLackOneOfSeveralAreLeftOut) {
  TableSource source;
  source.train = {"train.csv", "a,y,z\n1,1,10\n2,,20\n3,3,\n4,4,40\n"};
  source.test = {"test.csv", "a,z,y\n5,50,5\n"};
  source.target = "y";
  source.more_targets = {"z"};
  source.target_kind = TargetKind::kValue;
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto table = Open(*rows);
  EXPECT_THAT(table->schema().more_targets, ElementsAre("z"));
  EXPECT_THAT(table->TargetValue(Split::kTrain, 0), ElementsAre(1, 4));
  EXPECT_THAT(table->TargetValue(Split::kTrain, 1), ElementsAre(10, 40));
  EXPECT_THAT(table->TargetValue(Split::kTest, 1), ElementsAre(50));
  EXPECT_THAT(Names(table->schema()), ElementsAre("a"));
  source.more_targets = {"y"};
  EXPECT_THAT(Message(ReadTable(source)), HasSubstr("column 'y' is both the target and a target"));
}

TEST(RolesTest, GroupsAndFoldsAreNoFeatures) {
  TableSource source;
  source.train = {"train.csv", "g,f,a,y\np,2,1,u\nq,10,2,v\np,-1,3,u\nr,,4,v\n"};
  source.target = "y";
  source.group = "g";
  source.fold_column = "f";
  auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto table = Open(*rows);
  EXPECT_THAT(Names(table->schema()), ElementsAre("a"));
  EXPECT_THAT(table->Groups(), ElementsAre(0, 1, 0, 2));
  // Folds are sorted as numbers: 2 before 10.
  EXPECT_THAT(table->GivenFolds(), ElementsAre(0, 1, -1, -1));
  source.train.bytes = "g,f,a,y\np,0,1,u\n,1,2,v\n";
  EXPECT_THAT(Message(ReadTable(source)), HasSubstr("row 2, column 'g': the group is missing"));
  source.group = "h";
  EXPECT_THAT(Message(ReadTable(source)), HasSubstr("there is no column 'h' (the group)"));
}

TEST(MakeFoldsTest, AForecastGoesForwardAndLeavesOutWhatHasNoHistory) {
  std::string train = "t,y\n";
  for (int i = 0; i < 40; ++i)
    absl::StrAppend(&train, i, ",", i == 20 ? "" : absl::StrCat(i), "\n");
  const auto rows = ReadTable(Forecast(train));
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto table = Open(*rows);
  SplitSpec split;
  split.folds = 3;
  split.shape = {4, 3};
  EXPECT_EQ(split.KindFor(*table), SplitKind::kForward);
  const auto fold_of = MakeFolds(*table, split);
  ASSERT_TRUE(fold_of.ok()) << fold_of.status();
  // There are 33 usable rows (6 lack history, 1 lacks the target): blocks of 8, 8, 8, 9.
  for (int row = 0; row < 40; ++row) {
    const int usable = row < 6 || row == 20 ? -1 : row - 6 - (row > 20);
    const int expected = usable < 8 ? -1 : std::min(usable / 8, 3) - 1;
    EXPECT_EQ((*fold_of)[static_cast<size_t>(row)], usable < 0 ? -1 : expected) << row;
  }
  // Fold 1 validates from row 23 on; the two rows before it are not known at that time.
  const std::vector<int32_t> training = TrainingRows(*table, *fold_of, 1, split);
  EXPECT_EQ(training.front(), 6);
  EXPECT_EQ(training.back(), 20 - 1);
  EXPECT_EQ((*fold_of)[23], 1);

  split.shape.window = 100;
  EXPECT_THAT(std::string(MakeFolds(*table, split).status().message()),
              HasSubstr("no training row has 102 rows of its series before it and a target: "
                        "data.window is 100, data.horizon 3, of 40 rows"));
}

TEST(MakeFoldsTest, ShortSeriesWithALongHorizonHaveALongerFirstBlock) {
  std::string train = "s,t,y\n";
  for (int i = 0; i < 120; ++i) absl::StrAppend(&train, i % 2, ",", i / 2, ",", i, "\n");
  TableSource source = Forecast(train);
  source.series = "s";
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto table = Open(*rows);
  SplitSpec split;
  split.folds = 5;
  split.shape = {24, 12};
  const auto fold_of = MakeFolds(*table, split);
  ASSERT_TRUE(fold_of.ok()) << fold_of.status();
  // Each series has 25 usable rows. Blocks of 4 would leave none before the 11 rows whose targets
  // are not known yet.
  EXPECT_GE(TrainingRows(*table, *fold_of, 0, split).size(), 4u);
  for (int fold = 0; fold < 5; ++fold) {
    EXPECT_GE(std::count(fold_of->begin(), fold_of->end(), fold), 2) << fold;
  }
  // Where the horizon leaves enough, all blocks are alike.
  split.shape = {24, 2};
  const auto alike = MakeFolds(*table, split);
  ASSERT_TRUE(alike.ok()) << alike.status();
  for (int fold = 0; fold < 5; ++fold) {
    EXPECT_NEAR(std::count(alike->begin(), alike->end(), fold), 70 / 6.0, 2) << fold;
  }
}

TEST(MakeFoldsTest, WindowsNeverCrossSeries) {
  std::string train = "s,t,y\n";
  for (int i = 0; i < 20; ++i) absl::StrAppend(&train, i % 2, ",", i / 2, ",", i, "\n");
  TableSource source = Forecast(train);
  source.series = "s";
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto table = Open(*rows);
  const std::vector<bool> usable = UsableRows(*table, {3, 1});
  for (size_t row = 0; row < 20; ++row) EXPECT_EQ(usable[row], row % 10 >= 3) << row;
}

TEST(MakeFoldsTest, TheColumnOfFoldsMustHaveAsManyAsTheSpec) {
  TableSource source;
  source.train = {"train.csv", "f,a,y\n0,1,u\n1,2,v\n0,3,u\n1,4,v\n"};
  source.target = "y";
  source.fold_column = "f";
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto table = Open(*rows);
  SplitSpec split;
  split.folds = 2;
  EXPECT_THAT(*MakeFolds(*table, split), ElementsAre(0, 1, 0, 1));
  split.folds = 3;
  EXPECT_THAT(std::string(MakeFolds(*table, split).status().message()),
              HasSubstr("data.fold_column has 2 folds; data.folds says 3"));
  split.kind = SplitKind::kGrouped;
  EXPECT_THAT(std::string(MakeFolds(*table, split).status().message()),
              HasSubstr("data.split needs data.group"));
}

TEST(TextColumnTest, TextsAreKeptByRowAndAreNoFeatures) {
  TableSource source;
  const std::string train =
      "y,words,x\na,\"one, \"\"two\"\"\nthree\",1\n,left out,2\nb,,3\na,\"one, "
      "\"\"two\"\"\nthree\",4\n";
  const std::string test = "x,words\n5,?\n6,new\n";
  source.train = {"train.csv", train};
  source.test = {"test.csv", test};
  source.target = "y";
  source.text_columns = {"words"};
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto table = Open(*rows);
  EXPECT_THAT(Names(table->schema()), ElementsAre("x"));
  EXPECT_THAT(table->schema().text_columns, ElementsAre("words"));
  EXPECT_EQ(table->Text(0, Split::kTrain, 0), "one, \"two\"\nthree");
  EXPECT_EQ(table->Text(0, Split::kTrain, 1), "");
  EXPECT_EQ(table->Text(0, Split::kTrain, 2), "one, \"two\"\nthree");
  EXPECT_EQ(table->Text(0, Split::kTest, 0), "");
  EXPECT_EQ(table->Text(0, Split::kTest, 1), "new");
  EXPECT_TRUE(table->VerifyDigest().ok());
}

TEST(TextColumnTest, ThereNeedBeNoFeatureBesideATextAndTextsFollowTheOrderOfTimes) {
  const std::string train = "t,y,words\n2,1,later\n1,2,sooner\n";
  const std::string test = "t,words\n9,ninth\n8,eighth\n";
  TableSource source = Forecast(train, test);
  source.history = false;
  source.text_columns = {"words"};
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const auto table = Open(*rows);
  EXPECT_THAT(table->schema().features, IsEmpty());
  EXPECT_EQ(table->Text(0, Split::kTrain, 0), "sooner");
  EXPECT_EQ(table->Text(0, Split::kTrain, 1), "later");
  EXPECT_EQ(table->Text(0, Split::kTest, 0), "eighth");
  EXPECT_EQ(table->Text(0, Split::kTest, 1), "ninth");
}

TEST(TextColumnTest, ATextThatIsNotThereOrIsTheTargetIsRefused) {
  TableSource source;
  source.train = {"train.csv", "y,words\na,b\n"};
  source.target = "y";
  source.text_columns = {"word"};
  EXPECT_THAT(Message(ReadTable(source)),
              HasSubstr("train.csv: there is no column 'word' (the text)"));
  source.text_columns = {"y"};
  EXPECT_THAT(Message(ReadTable(source)), HasSubstr("column 'y' is both the target and a text"));
}

}  // namespace
}  // namespace traind
