#include "worker/prepare/series_floor.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "common/data/table/series_places.h"
#include "common/data/table/table_reader.h"
#include "tests/common/data/table/table_fixture.h"
#include "worker/prepare/local_floor.h"

namespace traind {
namespace {

constexpr int kTrainRows = 400;
constexpr int kTestRows = 30;
constexpr int kFolds = 4;

// A season of twelve rows on a slow trend, and a column without information.
double Season(int row) { return 10 * std::sin(row * 6.283185307179586 / 12) + 0.01 * row; }

// In row `marked` the target and the number are huge. value: of a row's target. tested: the test
// rows have targets.
std::shared_ptr<const Table> MakeTable(int marked = -1,
                                       const std::function<double(int row)>& value = Season,
                                       bool tested = false) {
  std::string train = "t,x,y\n", test = tested ? "t,x,y\n" : "t,x\n";
  for (int row = 0; row < kTrainRows; ++row) {
    const bool mark = row == marked;
    absl::StrAppend(&train, row, ",", mark ? 1e6 : (row * 37 % 11), ",", mark ? 1e6 : value(row),
                    "\n");
  }
  for (int row = kTrainRows; row < kTrainRows + kTestRows; ++row) {
    absl::StrAppend(&test, row, ",", row * 37 % 11);
    if (tested) absl::StrAppend(&test, ",", row == marked ? 1e6 : value(row));
    absl::StrAppend(&test, "\n");
  }
  TableSource source;
  source.train = {"train.csv", train};
  source.test = {"test.csv", test};
  source.target = "y";
  source.target_kind = TargetKind::kValue;
  source.time = "t";
  source.history = true;
  return testing_table::OpenTable(ReadTable(source));
}

SplitSpec Split(int64_t window, int64_t horizon) {
  SplitSpec split;
  split.kind = SplitKind::kForward;
  split.folds = kFolds;
  split.shape = {window, horizon};
  return split;
}

LinearFloorOptions Patient() {
  LinearFloorOptions options;
  options.time = absl::Seconds(60);
  return options;
}

TEST(SeriesFloorTest, NaiveFindsTheSeasonAndGoesOnBeyondTheHorizon) {
  const auto table = MakeTable();
  for (const int64_t horizon : {1, 3, 15}) {
    const SplitSpec split = Split(6, horizon);
    const auto fold_of = MakeFolds(*table, split);
    ASSERT_TRUE(fold_of.ok()) << fold_of.status();
    const auto naive = SeasonalNaiveFloor(*table, {*fold_of, split}, *MetricByName("mae"));
    ASSERT_TRUE(naive.has_value());
    EXPECT_EQ(naive->period, 12);
    EXPECT_EQ(naive->floor.model, "naive");
    // The prediction lags one season behind the trend, two in the last 3 of 15 rows ahead.
    EXPECT_NEAR(naive->floor.score, horizon <= 12 ? 0.12 : 0.144, 0.01);
    for (int row = 0; row < kTestRows; ++row) {
      EXPECT_NEAR(naive->floor.test.values[static_cast<size_t>(row)], Season(kTrainRows + row),
                  0.5);
    }
  }
}

std::optional<Floor> Local(const Table& table, const FloorFolds& folds, LocalModel kind) {
  const auto naive = SeasonalNaiveFloor(table, folds, *MetricByName("mae"));
  return LocalFloor(table, folds, *MetricByName("mae"), *naive, kind, absl::Seconds(60),
                    SystemClock());
}

TEST(SeriesFloorTest, EtsAndThetaGoOnFromWhatIsKnown) {
  const auto table = MakeTable();
  const SplitSpec split = Split(6, 3);
  const auto fold_of = MakeFolds(*table, split);
  ASSERT_TRUE(fold_of.ok()) << fold_of.status();
  const FloorFolds folds = {*fold_of, split};
  for (const LocalModel kind : {LocalModel::kEts, LocalModel::kTheta}) {
    const auto floor = Local(*table, folds, kind);
    ASSERT_TRUE(floor.has_value());
    EXPECT_EQ(floor->model, kind == LocalModel::kEts ? "ets" : "theta");
    EXPECT_LT(floor->score, 0.1);  // of the seasonal naive floor: 0.12
    for (int row = 0; row < kTestRows; ++row) {
      EXPECT_NEAR(floor->test.values[static_cast<size_t>(row)], Season(kTrainRows + row), 0.5);
    }
  }
}

// The first test row whose forecast is another.
int FirstTold(const Floor& plain, const Floor& marked) {
  const auto& a = plain.test.values;
  const auto& b = marked.test.values;
  return static_cast<int>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

TEST(SeriesFloorTest, ARollingForecastKnowsTestTargetsAHorizonLater) {
  constexpr int kMarked = 7;
  constexpr int64_t kHorizon = 3;
  const auto plain = MakeTable(-1, Season, /*tested=*/true);
  const auto marked = MakeTable(kTrainRows + kMarked, Season, /*tested=*/true);
  for (const bool rolling : {true, false}) {
    SplitSpec split = Split(6, kHorizon);
    split.shape.rolling = rolling;
    const auto fold_of = MakeFolds(*plain, split);
    ASSERT_TRUE(fold_of.ok()) << fold_of.status();
    const FloorFolds folds = {*fold_of, split};
    const auto told = [&](int rows) { return rolling ? kMarked + rows : kTestRows; };
    const Metric mae = *MetricByName("mae");
    const auto naive = SeasonalNaiveFloor(*plain, folds, mae);
    const auto after = SeasonalNaiveFloor(*marked, folds, mae);
    EXPECT_EQ(FirstTold(naive->floor, after->floor), told(12));  // a season later
    for (const LocalModel kind : {LocalModel::kEts, LocalModel::kTheta}) {
      EXPECT_EQ(FirstTold(*Local(*plain, folds, kind), *Local(*marked, folds, kind)),
                told(kHorizon));
    }
    const auto ridge = [&](const Table& table) {
      return LagFloor(table, folds, mae, 1, Patient(), SystemClock())->floor;
    };
    EXPECT_EQ(FirstTold(ridge(*plain), ridge(*marked)), told(kHorizon));
  }
}

TEST(SeriesFloorTest, EachRowOfARollingFoldIsForecastFromAHorizonBefore) {
  const auto table = MakeTable();
  SplitSpec split = Split(6, 3);
  split.shape.rolling = true;
  const auto fold_of = MakeFolds(*table, split);
  ASSERT_TRUE(fold_of.ok()) << fold_of.status();
  for (const int32_t steps : TrainSteps(*table, split, *fold_of)) {
    EXPECT_TRUE(steps == 0 || steps == 3) << steps;
  }
  const std::vector<int32_t> tested = TestSteps(*table, split.shape);
  EXPECT_EQ(tested, std::vector<int32_t>(kTestRows, 3));
}

// The last value is nearer than that of a week before, but models that know of the week are better.
TEST(SeriesFloorTest, ASeasonBehindAWalkIsFoundForModelsThatSmoothIt) {
  for (const bool seasonal : {true, false}) {
    constexpr double kWeek[] = {0, 2, -2, 1, -1, 2, -2};
    std::mt19937 random(3);
    std::normal_distribution<double> step(0, 1.5);
    std::vector<double> walk(kTrainRows);
    std::generate(walk.begin(), walk.end(), [&] { return step(random); });
    std::partial_sum(walk.begin(), walk.end(), walk.begin());
    const auto table = MakeTable(-1, [&](int row) {
      return walk[static_cast<size_t>(row)] + (seasonal ? kWeek[row % 7] : 0);
    });
    const SplitSpec split = Split(6, 1);
    const auto fold_of = MakeFolds(*table, split);
    ASSERT_TRUE(fold_of.ok()) << fold_of.status();
    const FloorFolds folds = {*fold_of, split};
    const auto naive = SeasonalNaiveFloor(*table, folds, *MetricByName("mae"));
    ASSERT_TRUE(naive.has_value());
    EXPECT_EQ(naive->period, 1);
    EXPECT_EQ(naive->season, seasonal ? 7 : 1);
    if (!seasonal) continue;
    const auto ets = Local(*table, folds, LocalModel::kEts);
    ASSERT_TRUE(ets.has_value());
    EXPECT_LT(ets->score, 0.7 * naive->floor.score);
  }
}

TEST(SeriesFloorTest, ThetaAndEtsSeeNoLaterRow) {
  const SplitSpec split = Split(6, 3);
  const auto plain = MakeTable();
  const auto marked = MakeTable(350);
  const auto fold_of = MakeFolds(*plain, split);
  ASSERT_TRUE(fold_of.ok()) << fold_of.status();
  const FloorFolds folds = {*fold_of, split};
  for (const LocalModel kind : {LocalModel::kEts, LocalModel::kTheta}) {
    const Metric mae = *MetricByName("mae");
    // Out-of-fold scores choose the season, so the same one is given to both.
    const auto naive = SeasonalNaiveFloor(*plain, folds, mae);
    const auto of = [&](const Table& table) {
      return LocalFloor(table, folds, mae, *naive, kind, absl::Seconds(60), SystemClock());
    };
    const auto a = of(*plain), b = of(*marked);
    ASSERT_TRUE(a.has_value() && b.has_value());
    bool differs = false;
    for (size_t row = 0; row < kTrainRows; ++row) {
      if (row <= 350 && (*fold_of)[row] >= 0) {
        EXPECT_EQ(a->oof.values[row], b->oof.values[row]);
      }
      differs |= row > 350 && a->oof.values[row] != b->oof.values[row];
    }
    EXPECT_TRUE(differs);  // the marker has an effect
  }
}

TEST(SeriesFloorTest, LocalModelsNeedTimeAndAForwardSplit) {
  const auto table = MakeTable();
  SplitSpec split = Split(6, 3);
  const auto fold_of = MakeFolds(*table, split);
  ASSERT_TRUE(fold_of.ok()) << fold_of.status();
  const auto naive = SeasonalNaiveFloor(*table, {*fold_of, split}, *MetricByName("mae"));
  EXPECT_FALSE(LocalFloor(*table, {*fold_of, split}, *MetricByName("mae"), *naive,
                          LocalModel::kTheta, absl::ZeroDuration(), SystemClock())
                   .has_value());
  split.kind = SplitKind::kKFold;
  EXPECT_FALSE(Local(*table, {*fold_of, split}, LocalModel::kTheta).has_value());
}

TEST(SeriesFloorTest, AMixIsNoWorseThanItsBestPart) {
  const auto table = MakeTable();
  const SplitSpec split = Split(6, 3);
  const auto fold_of = MakeFolds(*table, split);
  ASSERT_TRUE(fold_of.ok()) << fold_of.status();
  const FloorFolds folds = {*fold_of, split};
  const Metric mae = *MetricByName("mae");
  const std::vector<Floor> floors = {PriorFloor(*table, folds, mae),
                                     *Local(*table, folds, LocalModel::kTheta)};
  const FloorMix both = MixFloors(*table, folds, mae, floors);
  const Floor& mix = both.floor;
  EXPECT_EQ(both.weights, (std::vector<double>{0, 1}));
  EXPECT_EQ(mix.model, "theta");
  EXPECT_EQ(mix.score, floors[1].score);
  EXPECT_EQ(mix.test.values, floors[1].test.values);
}

TEST(SeriesFloorTest, LagsLearnTheRestOfTheSeason) {
  const auto table = MakeTable();
  const SplitSpec split = Split(24, 2);
  const auto fold_of = MakeFolds(*table, split);
  ASSERT_TRUE(fold_of.ok()) << fold_of.status();
  const FloorFolds folds = {*fold_of, split};
  const auto naive = SeasonalNaiveFloor(*table, folds, *MetricByName("mae"));
  const auto lags = LagFloor(*table, folds, *MetricByName("mae"), 12, Patient(), SystemClock());
  ASSERT_TRUE(naive.has_value() && lags.has_value());
  EXPECT_EQ(lags->floor.model, "ridge");
  EXPECT_LT(lags->floor.score, PriorFloor(*table, folds, *MetricByName("mae")).score / 5);
  for (int row = 0; row < kTestRows; ++row) {
    EXPECT_NEAR(lags->floor.test.values[static_cast<size_t>(row)], Season(kTrainRows + row), 1.5)
        << row;
  }
}

TEST(SeriesFloorTest, LaterRowsChangeNoEarlierFold) {
  const SplitSpec split = Split(6, 3);
  const auto plain = MakeTable();
  const auto marked = MakeTable(350);  // in the last fold
  const auto fold_of = MakeFolds(*plain, split);
  ASSERT_TRUE(fold_of.ok()) << fold_of.status();
  ASSERT_EQ(*MakeFolds(*marked, split), *fold_of);
  ASSERT_EQ((*fold_of)[350], kFolds - 1);
  const FloorFolds folds = {*fold_of, split};
  const auto lags = [&](const Table& table) {
    return LagFloor(table, folds, *MetricByName("mae"), 12, Patient(), SystemClock())->floor;
  };
  const Floor a = lags(*plain), b = lags(*marked);
  const Floor c = PriorFloor(*plain, folds, *MetricByName("mae"));
  const Floor d = PriorFloor(*marked, folds, *MetricByName("mae"));
  // The marked row becomes known three rows later, in its own fold. Earlier rows
  // and folds do not change.
  for (size_t row = 0; row < 353; ++row) {
    if ((*fold_of)[row] < 0) continue;
    EXPECT_EQ(a.oof.values[row], b.oof.values[row]) << row;
    EXPECT_EQ(c.oof.values[row], d.oof.values[row]) << row;
  }
  EXPECT_NE(a.oof.values[353], b.oof.values[353]);  // the marker has an effect
}

TEST(SeriesFloorTest, WithoutAHorizonThereIsNone) {
  const auto table = MakeTable();
  const SplitSpec split = Split(6, 0);
  const auto fold_of = MakeFolds(*table, split);
  ASSERT_TRUE(fold_of.ok()) << fold_of.status();
  EXPECT_FALSE(SeasonalNaiveFloor(*table, {*fold_of, split}, *MetricByName("mae")).has_value());
}

}  // namespace
}  // namespace traind
