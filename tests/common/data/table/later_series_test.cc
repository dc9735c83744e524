// Later rows of a forecast's series: what is history, what is predicted, and what is refused.
#include "common/data/table/later_series.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/data/table/table_reader.h"
#include "tests/common/data/table/table_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Months(int first, int count, const std::string& end = "") {
  std::string text = "month,y,n\n";
  for (int i = first; i < first + count; ++i) {
    absl::StrAppend(&text, 2020 + i / 12, "-", i % 12 < 9 ? "0" : "", i % 12 + 1, ",", i, ",",
                    2 * i, "\n");
  }
  return text + end;
}

class LaterSeriesTest : public ::testing::Test {
 protected:
  LaterSeriesTest() : LaterSeriesTest(Months(0, 24), "month", "") {}
  LaterSeriesTest(const std::string& train, const std::string& time, const std::string& series) {
    TableSource source;
    source.train = {"train.csv", train};
    source.target = "y";
    source.target_kind = TargetKind::kValue;
    source.time = time;
    source.series = series;
    source.history = true;
    const auto table = testing_table::OpenTable(ReadTable(source));
    input_ = InputSchemaOf(table->schema());
    series_ = {time, series, table->schema().series, StepOf(*table), table->schema().time_order};
  }
  absl::StatusOr<LaterSeries> Read(const std::string& text) const {
    return ReadLaterSeries({"later.csv", text}, input_, series_, shape_);
  }
  static std::vector<std::string> IdsOf(const LaterSeries& later) {
    std::vector<std::string> ids;
    for (size_t i = 0; i < later.ids.ends.size(); ++i) ids.emplace_back(later.ids[i]);
    return ids;
  }

  InputSchema input_;
  SeriesInput series_;
  SampleShape shape_ = {2, 3};
};

TEST_F(LaterSeriesTest, MonthsGoOnByTheCalendar) {
  EXPECT_EQ(series_.step.unit, TimeStep::Unit::kMonths);
  const auto later = Read(Months(30, 6));
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->id, "month");
  EXPECT_THAT(IdsOf(*later), ElementsAre("2023-01-01", "2023-02-01", "2023-03-01"));
  EXPECT_EQ(later->rows.schema.train_rows, 6);
  EXPECT_THAT(later->rows.train_target.numbers, ElementsAre(30, 31, 32, 33, 34, 35));
  EXPECT_THAT(later->rows.times.size(), 6);
  // The time of a row that is not in the file is known; its other columns are not.
  for (size_t f = 0; f < input_.features.size(); ++f) {
    const std::vector<float>& cells = later->rows.test[f].numbers;
    ASSERT_EQ(cells.size(), 3);
    EXPECT_EQ(std::isnan(cells[0]), input_.features[f].file_column() != "month");
  }
}

TEST_F(LaterSeriesTest, RowsWithoutATargetAtTheEndArePredicted) {
  const auto later = Read(Months(30, 6, "2023-01,,7\n2023-02,,8\n"));
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_THAT(IdsOf(*later), ElementsAre("2023-01-01", "2023-02-01"));
  EXPECT_EQ(later->rows.schema.train_rows, 6);
  EXPECT_EQ(later->rows.schema.test_rows, 2);
}

TEST_F(LaterSeriesTest, AFileThatDoesNotGoOnIsRefused) {
  const auto refused = [&](const std::string& text) {
    return std::string(Read(text).status().message());
  };
  EXPECT_THAT(refused(Months(0, 3)), HasSubstr("too short: 3 rows"));
  EXPECT_THAT(refused(Months(0, 3, "2020-06,5,5\n")),
              HasSubstr("2020-06-01 comes after 2020-03-01: 2 rows are missing between"));
  EXPECT_THAT(refused(Months(0, 3, "2020-04-09,5,5\n")), HasSubstr("another step"));
  EXPECT_THAT(refused(Months(0, 3, "2020-04,x,5\n")), HasSubstr("'x' is not a finite number"));
  EXPECT_THAT(refused(Months(0, 3, "4,5,5\n")), HasSubstr("'4' is not a date"));
  EXPECT_THAT(refused("month,n\n2020-01,1\n"), HasSubstr("there is no column 'y' (the target"));
}

class LaterDaysTest : public LaterSeriesTest {
 protected:
  LaterDaysTest()
      : LaterSeriesTest("t,y\n28/02/2023,1\n01/03/2023,2\n02/03/2023,3\n03/03/2023,4\n", "t", "") {}
};

TEST_F(LaterDaysTest, DayAndMonthStandAsInTheTrainingFile) {
  const auto later = Read("t,y\n01/04/2023,1\n02/04/2023,2\n03/04/2023,3\n04/04/2023,4\n");
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_THAT(IdsOf(*later), ElementsAre("2023-04-05", "2023-04-06", "2023-04-07"));
}

class LaterSeriesOfManyTest : public LaterSeriesTest {
 protected:
  LaterSeriesOfManyTest()
      : LaterSeriesTest("t,s,y\n1,a,1\n2,a,2\n4,a,3\n5,a,4\n1,b,5\n2,b,6\n4,b,7\n", "t", "s") {}
};

TEST_F(LaterSeriesOfManyTest, SeriesKeepTheirNumbersAndRowsOfUnevenTimesAreNamed) {
  EXPECT_EQ(series_.step.unit, TimeStep::Unit::kNone);
  const std::string history = "t,s,y\n7,b,1\n8,b,2\n10,b,3\n11,b,4\n";
  const auto later = Read(history + "13,b,\n");
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->id, "s t");
  EXPECT_THAT(IdsOf(*later), ElementsAre("b 13"));
  EXPECT_THAT(later->rows.series_ends, ElementsAre(0, 4));
  EXPECT_THAT(later->rows.test_series_ends, ElementsAre(0, 1));
  EXPECT_THAT(Read(history).status().message(), HasSubstr("not evenly spaced"));
  EXPECT_THAT(Read(history + "13,c,\n").status().message(),
              HasSubstr("series 'c' is unknown: the models were trained on 2 series: 'a', 'b'"));
}

}  // namespace
}  // namespace traind
