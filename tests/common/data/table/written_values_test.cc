// Amounts and dates as people write them.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "common/data/table/date_text.h"
#include "common/data/table/feature_reader.h"
#include "common/data/table/input_schema_json.h"
#include "common/data/table/number.h"
#include "common/data/table/table_reader.h"
#include "common/data/table/written_date.h"
#include "tests/common/data/table/table_fixture.h"

namespace traind {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using testing_table::OpenTable;
using testing_table::Read;

constexpr DateOrder kMonthFirst = DateOrder::kMonthFirst, kDayFirst = DateOrder::kDayFirst;

TEST(WrittenNumberTest, AmountsAreNumbers) {
  struct Case {
    const char* text;
    float value;
  };
  for (const Case& c : {Case{"1,000", 1000},
                        {"-1,234,567.5", -1234567.5},
                        {"5 %", 5},
                        {"43%", 43},
                        {"-0.5%", -0.5},
                        {"$12.50", 12.5},
                        {"$.50", 0.5},
                        {"-$1,250", -1250},
                        {"$-1,250", -1250},
                        {"+$5", 5},
                        {"$+5", 5},
                        {"$ 7", 7},
                        {"12\xe2\x82\xac", 12},
                        {"12,345.50 \xe2\x82\xac", 12345.5},
                        {"1'234", 1234},
                        {"-1'234'567.5", -1234567.5},
                        {"12\xe2\x80\x99"
                         "345",
                         12345},
                        {"1 234", 1234},
                        {"1\xc2\xa0"
                         "234\xc2\xa0"
                         "567\xc2\xa0\xe2\x82\xac",
                         1234567},
                        {"1\xe2\x80\xaf"
                         "234.5\xe2\x80\xaf%",
                         1234.5},
                        {"$1 234", 1234},
                        {"\xc2\xa3"
                         "3",
                         3},
                        {"\xc2\xa5"
                         "10,000",
                         10000}}) {
    float value = 0;
    EXPECT_EQ(ParseNumber(c.text, value), NumberKind::kNumber) << c.text;
    EXPECT_EQ(value, c.value) << c.text;
    const absl::string_view field = c.text;
    ParseNumbersLess(1, &field, 1, 1, &value);
    EXPECT_EQ(value, c.value - 1) << c.text;
  }
  float value = 0;
  for (const char* text : {"1,00",
                           "1,0000",
                           "1,000,00",
                           "0001,000",
                           ",100",
                           "1,000.5,0",
                           "%",
                           "$",
                           "$$5",
                           "--5%",
                           "-$+5",
                           "+$-5",
                           "+-5%",
                           "$5$",
                           "5%%",
                           "1.2.3%",
                           "a5%",
                           "5,",
                           "1,000e2x",
                           "1 23",
                           "1 2345",
                           "1234 567",
                           "012 345",
                           "1'234 567",
                           "1,234 567",
                           "1  234",
                           "1'",
                           "'123",
                           "1.234 567",
                           "1 234e5x",
                           "100 m",
                           "\xc2"
                           "5"}) {
    EXPECT_EQ(ParseNumber(text, value), NumberKind::kText) << text;
    EXPECT_EQ(PlainAmount(text), "") << text;
  }
  EXPECT_EQ(PlainAmount("5"), "");
  double exact = 0;
  EXPECT_TRUE(LosesDigits("$123,456,789", 123456792.0f, exact));
  EXPECT_EQ(exact, 123456789.0);
}

std::string Iso(absl::string_view text, DateOrder order) {
  double seconds = 0;
  if (!ParseTime(text, order, seconds)) return "";
  const CalendarTime t = CalendarOf(seconds);
  return absl::StrCat(t.year, "-", t.month, "-", t.day, " ", t.hour, ":", t.minute);
}

TEST(WrittenDateTest, ReadsDaysInTheOrderThatIsAskedFor) {
  EXPECT_EQ(Iso("3/4/2024", kMonthFirst), "2024-3-4 0:0");
  EXPECT_EQ(Iso("3/4/2024", kDayFirst), "2024-4-3 0:0");
  EXPECT_EQ(Iso("03-04-2024", kDayFirst), "2024-4-3 0:0");
  // Between points the day is first, and a year is first where it has four digits.
  EXPECT_EQ(Iso("03.04.2024", kMonthFirst), "2024-4-3 0:0");
  EXPECT_EQ(Iso("2024/4/3", kDayFirst), "2024-4-3 0:0");
  EXPECT_EQ(Iso("2024.12.31", kDayFirst), "2024-12-31 0:0");
  EXPECT_EQ(Iso("2024-12-31", kDayFirst), "2024-12-31 0:0");
}

TEST(WrittenDateTest, ReadsNamesOfMonths) {
  for (const char* text : {"31-Dec-2024", "31 december 2024", "Dec 31, 2024", "DEC 31 2024",
                           "December 31, 2024", "31-Dec-24"}) {
    EXPECT_EQ(Iso(text, kMonthFirst), "2024-12-31 0:0") << text;
  }
  EXPECT_EQ(Iso("1-May-69", kMonthFirst), "1969-5-1 0:0");
  EXPECT_EQ(Iso("1-May-68", kMonthFirst), "2068-5-1 0:0");
}

TEST(WrittenDateTest, ReadsTimesBehindTheDay) {
  EXPECT_EQ(Iso("31.12.2024 14:30", kMonthFirst), "2024-12-31 14:30");
  EXPECT_EQ(Iso("12/31/2024 2:30 PM", kMonthFirst), "2024-12-31 14:30");
  EXPECT_EQ(Iso("12/31/2024 12:05:59 am", kMonthFirst), "2024-12-31 0:5");
  EXPECT_EQ(Iso("12/31/2024 12:05pm", kMonthFirst), "2024-12-31 12:5");
}

TEST(WrittenDateTest, AnythingElseIsNoDate) {
  for (const char* text : {"",
                           "5",
                           "1.2.3",
                           "1/2/24",
                           "10-12-14",
                           "31/31/2024",
                           "30.02.2024",
                           "1.2/2024",
                           "1/2/20245",
                           "001/2/2024",
                           "1/2/2024x",
                           "1/2/2024 25:00",
                           "1/2/2024 13:00 PM",
                           "1/2/2024 0:30 AM",
                           "1/2/2024 10",
                           "1/2/2024 :30",
                           "1/2/2024  10:30",
                           "31-Dez-2024",
                           "31-D-2024",
                           "Dec 2024",
                           "Dec 32, 2024",
                           "32-Dec-24",
                           "1-May-2024-1",
                           "192.168.1.2024",
                           "may",
                           "2024/13/1",
                           "2024/1-2",
                           "1/2/2024 10:30x",
                           "1/2/2024 10:3"}) {
    EXPECT_EQ(Iso(text, kMonthFirst), "") << text;
    EXPECT_EQ(Iso(text, kDayFirst), "") << text;
  }
}

TEST(WrittenValuesTest, AColumnOfAmountsIsNumeric) {
  std::string train = "share,amount,y\n";
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&train, i, "%,", i % 3 == 0 ? "\"$1,000\"" : "$950", ",", i % 2, "\n");
  }
  const auto rows = Read(train, "share,amount,y\n12%,\"$2,500.50\",1\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->schema.warnings, IsEmpty());
  ASSERT_THAT(rows->train, SizeIs(2));
  EXPECT_EQ(rows->train[0].numbers[199], 199);
  EXPECT_EQ(rows->train[1].numbers[3], 1000);
  EXPECT_THAT(rows->test[0].numbers, ElementsAre(12));
  EXPECT_THAT(rows->test[1].numbers, ElementsAre(2500.5));
}

TEST(WrittenValuesTest, ColumnsOfThousandsWithApostrophesOrBlanksAreNumeric) {
  std::string train = "swiss,french,spoken,code,y\n";
  for (int i = 0; i < 200; ++i) {
    absl::StrAppend(&train, i % 9 + 1, "'", 100 + i, ".50,", i % 9 + 1, "\xe2\x80\xaf", 100 + i,
                    ",", i % 3 == 0 ? "950" : "1 250", ",0", i % 3, " 345,", i % 2, "\n");
  }
  const auto rows = Read(train,
                         "swiss,french,spoken,code,y\n"
                         "12'345.50,1\xe2\x80\xaf"
                         "234\xe2\x80\xaf"
                         "567,2 000,02 345,1\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->schema.warnings, IsEmpty());
  ASSERT_THAT(rows->train, SizeIs(4));
  EXPECT_EQ(rows->train[0].numbers[10], 2110.5);
  EXPECT_EQ(rows->train[1].numbers[10], 2110);
  EXPECT_EQ(rows->train[2].numbers[10], 1250);
  EXPECT_THAT(rows->test[0].numbers, ElementsAre(12345.5));
  EXPECT_THAT(rows->test[1].numbers, ElementsAre(1234567));
  EXPECT_THAT(rows->test[2].numbers, ElementsAre(2000));
  // Codes with a zero in front stay what they are.
  EXPECT_EQ(rows->schema.features[3].kind, ColumnKind::kCategorical);
  EXPECT_THAT(rows->schema.features[3].categories, ElementsAre("00 345", "01 345", "02 345"));
}

TEST(WrittenValuesTest, ATargetOfAmountsIsANumber) {
  const auto rows = Read("x,y\n1,\"$1,000\"\n2,$950\n3,$7.50\n", "", TargetKind::kValue);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->train_target.numbers, ElementsAre(1000, 950, 7.5));
}

TEST(WrittenValuesTest, AmountsMayHaveDecimalCommas) {
  const auto rows = Read("x;y\n1,5 \xe2\x82\xac;0\n1.002,5 \xe2\x82\xac;1\n3;1\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->train[0].numbers, ElementsAre(1.5, 1002.5, 3));
  const auto blanks = Read(
      "x;y\n1,5 \xe2\x82\xac;0\n1\xc2\xa0"
      "002,5\xc2\xa0\xe2\x82\xac;1\n3 000;1\n4'000;0\n");
  ASSERT_TRUE(blanks.ok()) << blanks.status();
  EXPECT_THAT(blanks->train[0].numbers, ElementsAre(1.5, 1002.5, 3000, 4000));
}

// A table with a column of dates.
std::string Days(const std::vector<std::string>& days) {
  std::string file = "day,y\n";
  for (size_t i = 0; i < days.size(); ++i) absl::StrAppend(&file, days[i], ",", i % 2, "\n");
  return file;
}

// The part "day" or "month" of a table's dates, of the training or the test rows.
std::vector<float> PartOf(const TableRows& rows, const std::string& part, bool test = false) {
  for (size_t f = 0; f < rows.schema.features.size(); ++f) {
    if (rows.schema.features[f].name == "day." + part) {
      return test ? rows.test[f].numbers : rows.train[f].numbers;
    }
  }
  return {};
}

TEST(WrittenValuesTest, ARowThatTellsTheOrderOfDayAndMonthTellsItForAll) {
  const auto day_first = Read(Days({"3/4/2024", "4/4/2024", "31/5/2024"}), "day\n5/6/2024\n");
  ASSERT_TRUE(day_first.ok()) << day_first.status();
  EXPECT_THAT(PartOf(*day_first, "month"), ElementsAre(4, 4, 5));
  EXPECT_THAT(PartOf(*day_first, "month", true), ElementsAre(6));
  EXPECT_THAT(day_first->schema.warnings,
              Contains("train.csv: column 'day' holds dates such as '3/4/2024', which is read as "
                       "2024-04-03"));
  const auto month_first = Read(Days({"3/4/2024", "4/4/2024", "5/31/2024"}), "day\n5/6/2024\n");
  ASSERT_TRUE(month_first.ok()) << month_first.status();
  EXPECT_THAT(PartOf(*month_first, "month"), ElementsAre(3, 4, 5));
  EXPECT_THAT(PartOf(*month_first, "month", true), ElementsAre(5));
}

TEST(WrittenValuesTest, TestRowsTellTheOrderWhereTheTrainingRowsLeaveItOpen) {
  const std::string train = Days({"3/4/2024", "4/4/2024", "5/6/2024"});
  const auto rows = Read(train, "day\n5/6/2024\n31/5/2024\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(PartOf(*rows, "month"), ElementsAre(4, 4, 6));
  EXPECT_THAT(PartOf(*rows, "month", true), ElementsAre(6, 5));
  EXPECT_THAT(rows->schema.warnings,
              Contains("train.csv: column 'day' holds dates such as '3/4/2024', which is read as "
                       "2024-04-03"));
  // Training rows that tell it are stronger, and so are more of the test rows.
  const auto told = Read(Days({"3/4/2024", "4/4/2024", "5/31/2024"}), "day\n31/5/2024\n");
  EXPECT_EQ(told.status().message(),
            "test.csv: row 1 (line 2), column 'day': '31/5/2024' is not a date, but train.csv has "
            "dates there");
  std::string most = "day\n31/5/2024\n";
  for (int i = 0; i < 20; ++i) most += "5/31/2024\n";
  const auto month_first = Read(train, most);
  ASSERT_TRUE(month_first.ok()) << month_first.status();
  EXPECT_THAT(PartOf(*month_first, "month"), ElementsAre(3, 4, 5));
}

TEST(WrittenValuesTest, AFewTestRowsThatAreNoDatesCountAsMissing) {
  const std::string train = Days({"3/4/2024", "4/4/2024", "5/31/2024"});
  std::string test = "day\n31/5/2024\n";
  for (int i = 0; i < 19; ++i) absl::StrAppend(&test, 1 + i % 12, "/4/2024\n");
  const auto rows = Read(train, test);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(std::isnan(PartOf(*rows, "month", true)[0]));
  EXPECT_TRUE(std::isnan(PartOf(*rows, "day", true)[0]));
  EXPECT_EQ(PartOf(*rows, "month", true)[2], 2);
  EXPECT_THAT(rows->schema.warnings,
              Contains("test.csv: column 'day': 1 of 20 values is not a date and counts as "
                       "missing: '31/5/2024' (row 1, line 2)"));
}

TEST(WrittenValuesTest, FilesOfModelsAndTablesKeepTheOrder) {
  const auto rows = Read(Days({"3/4/2024", "4/4/2024", "31/5/2024"}));
  const auto table = OpenTable(rows);
  ASSERT_NE(table, nullptr);
  const auto input = InputSchemaFromJson(InputSchemaJson(InputSchemaOf(table->schema())));
  ASSERT_TRUE(input.ok()) << input.status();
  const auto reader = FeatureReader::Match(*input, {"day"}, "later.csv");
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<std::string> warnings;
  const auto later = OpenDataFile({"later.csv", "day\n7/8/2024\n"}, warnings);
  ASSERT_TRUE(later.ok()) << later.status();
  std::vector<ColumnRows> values;
  ASSERT_TRUE(ForEachBlock(*later, 1, [&](const CsvRows& block) {
                return (*reader)->Read(block, 0, values);
              }).ok());
  TableRows read;
  read.schema.features = input->features;
  read.train = values;
  EXPECT_THAT(PartOf(read, "month"), ElementsAre(8));
}

TEST(WrittenValuesTest, TheTimesOfASeriesKeepTheOrderToo) {
  TableSource source;
  source.train = {"train.csv", "t,y\n1/3/2024,1\n31/3/2024,3\n2/3/2024,2\n"};
  source.test = {"test.csv", "t,y\n2/4/2024,5\n1/4/2024,4\n"};
  source.target = "y";
  source.target_kind = TargetKind::kValue;
  source.time = "t";
  source.history = true;
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->train_target.numbers, ElementsAre(1, 2, 3));
  EXPECT_THAT(rows->test_target.numbers, ElementsAre(4, 5));
  EXPECT_THAT(rows->schema.warnings,
              Contains("train.csv: column 't' holds dates such as '1/3/2024', which is read as "
                       "2024-03-01"));
  const auto table = OpenTable(rows);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(table->schema().time_order, kDayFirst);
  SeriesInput series;
  series.order = table->schema().time_order;
  EXPECT_EQ(SeriesInputFromJson(SeriesInputJson(series)).order, kDayFirst);
}

TEST(WrittenValuesTest, WhereNoRowTellsTheFirstDaysOfMonthsDo) {
  const auto firsts = Read(Days({"01/01/2024", "01/02/2024", "01/03/2024"}));
  ASSERT_TRUE(firsts.ok()) << firsts.status();
  EXPECT_THAT(PartOf(*firsts, "month"), ElementsAre(1, 2, 3));
  const auto others = Read(Days({"01/01/2024", "02/05/2024", "03/09/2024"}));
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_THAT(PartOf(*others, "month"), ElementsAre(1, 2, 3));
}

TEST(WrittenValuesTest, AFewTextsAmongDatesCountAsMissing) {
  std::vector<std::string> days;
  for (int i = 0; i < 400; ++i) days.push_back(absl::StrCat(1 + i % 28, "/", 1 + i % 11, "/2024"));
  days[3] = "unknown";
  days[390] = "tba";
  const auto rows = Read(Days(days));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_TRUE(std::isnan(PartOf(*rows, "month")[3]));
  EXPECT_EQ(PartOf(*rows, "month")[4], 5);
  EXPECT_EQ(PartOf(*rows, "day")[4], 5);
  EXPECT_THAT(rows->schema.warnings,
              Contains("train.csv: column 'day': 2 of 400 values are not dates and count as "
                       "missing: 'unknown' (row 4, line 5), 'tba' (row 391, line 392)"));
  for (int i = 0; i < 30; ++i) days[static_cast<size_t>(200 + i)] = "unknown";
  const auto many = Read(Days(days));
  ASSERT_TRUE(many.ok()) << many.status();
  EXPECT_EQ(many->schema.features[0].kind, ColumnKind::kCategorical);
}

TEST(WrittenValuesTest, ADashIsAMissingDateOrNumber) {
  std::string train = "day,x,c,y\n";
  for (int i = 0; i < 40; ++i) {
    absl::StrAppend(&train, i % 3 ? absl::StrCat(i % 28 + 1, ".5.2024") : "-", ",",
                    i % 4 ? absl::StrCat(i) : "-", ",", i % 2 ? "-" : "+", ",", i % 2, "\n");
  }
  const auto rows = Read(train, "day,x,c\n-,-,-\n");
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_THAT(rows->schema.warnings, Each(Not(HasSubstr("missing"))));
  EXPECT_TRUE(std::isnan(PartOf(*rows, "day")[0]));
  const size_t x = rows->schema.features.size() - 2;
  EXPECT_EQ(rows->schema.features[x].kind, ColumnKind::kNumeric);
  EXPECT_TRUE(std::isnan(rows->train[x].numbers[4]));
  EXPECT_TRUE(std::isnan(rows->test[x].numbers[0]));
  EXPECT_THAT(rows->schema.features[x + 1].categories, ElementsAre("+", "-"));
  EXPECT_THAT(rows->test[x + 1].codes, ElementsAre(1));
}

TEST(WrittenValuesTest, ALateRowMayTurnTheOrder) {
  std::vector<std::string> days;
  for (int i = 0; i < 400; ++i) days.push_back(absl::StrCat(1 + i % 12, "/", 1 + i % 11, "/2024"));
  days.push_back("25/3/2024");
  const auto rows = Read(Days(days));
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(PartOf(*rows, "month").back(), 3);
  EXPECT_EQ(PartOf(*rows, "month")[1], 2);
  EXPECT_EQ(PartOf(*rows, "month")[11], 1);
  // With both orders it is no column of dates.
  days.push_back("3/25/2024");
  const auto mixed = Read(Days(days));
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  EXPECT_EQ(mixed->schema.features[0].kind, ColumnKind::kCategorical);
}

}  // namespace
}  // namespace traind
