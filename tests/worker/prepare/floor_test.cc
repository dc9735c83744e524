// The floors: their values are right, and they use nothing that a fold must not see.
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "common/base/clock.h"
#include "common/data/table/folds.h"
#include "tests/common/data/table/table_fixture.h"
#include "worker/floor/linear_model.h"
#include "worker/prepare/linear_floor.h"
#include "worker/prepare/prior_floor.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;
using testing_table::Read;

constexpr int kFolds = 4;
constexpr int kRows = 240;
constexpr int kTestRows = 30;

std::shared_ptr<const Table> MakeTable(const std::string& train, const std::string& test,
                                       TargetKind kind) {
  return testing_table::OpenTable(Read(train, test, kind));
}

TEST(FloorEncoderTest, WordsOfTextsAreNotScaled) {
  std::vector<Column> features(2);
  features[1].source = "text";
  features[1].text_feature = {TextFeature::Kind::kWord, 0, "rare"};
  const std::vector<float> values = {0, 0, 0, 1};
  FloorRows rows;
  rows.numbers = {values.data(), values.data()};
  rows.codes.resize(2);
  const FloorEncoder encoder(FloorLayout(features), rows, {0, 1, 2, 3}, /*most_words=*/0);
  EXPECT_THAT(encoder.state().mean, ElementsAre(0.25, 0.25));
  EXPECT_THAT(encoder.state().scale, ElementsAre(1 / std::sqrt(0.1875), 1));
}

FloorFolds FoldsOf(const std::vector<int16_t>& fold_of, int folds) {
  SplitSpec split;
  split.kind = SplitKind::kStratified;
  split.folds = folds;
  return {fold_of, split};
}

FloorFolds InTurn() {
  static const auto& fold_of = *[] {
    auto* folds = new std::vector<int16_t>();
    for (int i = 0; i < kRows; ++i) folds->push_back(static_cast<int16_t>(i % kFolds));
    return folds;
  }();
  return FoldsOf(fold_of, kFolds);
}

// Rows as text, so that a test can plant a marker in one of them.
struct Lines {
  std::vector<std::string> train, test;

  std::shared_ptr<const Table> Make(TargetKind kind) const {
    std::string train_text = "a,b,c,y\n", test_text = "a,b,c,y\n";
    for (const std::string& line : train) absl::StrAppend(&train_text, line, "\n");
    for (const std::string& line : test) absl::StrAppend(&test_text, line, "\n");
    return MakeTable(train_text, test_text, kind);
  }
};

Lines LearnableLines(TargetKind kind) {
  SeededRandom random(3);
  Lines lines;
  for (int i = 0; i < kRows + kTestRows; ++i) {
    const double a = static_cast<double>(random.Below(1000)) / 100 - 5;
    const double b = static_cast<double>(random.Below(1000)) / 10 + 300;
    const bool c = random.Below(2) == 1;
    const double y = 2 * a + (c ? 3 : -3) + static_cast<double>(random.Below(100)) / 100;
    const std::string target =
        kind == TargetKind::kValue ? absl::StrCat(y) : (y > 0 ? "up" : "down");
    std::string line =
        absl::StrCat(a, ",", i % 10 == 9 ? "" : absl::StrCat(b), ",", c ? "p" : "q", ",", target);
    (i < kRows ? lines.train : lines.test).push_back(std::move(line));
  }
  return lines;
}

Floor Linear(const Table& table, Metric metric) {
  LinearFloorOptions options;
  options.time = absl::Seconds(60);
  options.seed = 5;
  auto floor = LinearFloor(table, InTurn(), metric, options, SystemClock());
  EXPECT_TRUE(floor.has_value());
  return floor ? std::move(floor->floor) : Floor();
}

TEST(PriorFloorTest, OutOfFoldValuesComeFromTheOtherFolds) {
  const auto table =
      MakeTable("a,y\n1,n\n2,n\n3,y\n4,y\n5,y\n6,y\n", "a\n7\n", TargetKind::kClasses);
  const std::vector<int16_t> fold_of = {0, 1, 0, 1, 2, 2};
  const Floor floor = PriorFloor(*table, FoldsOf(fold_of, 3), *MetricByName("logloss"));
  EXPECT_EQ(floor.model, "prior");
  EXPECT_THAT(floor.oof.shape, ElementsAre(6, 2));
  EXPECT_THAT(floor.oof.values,
              Pointwise(FloatNear(1e-6f), std::vector<float>{.25f, .75f, .25f, .75f, .25f, .75f,
                                                             .25f, .75f, .5f, .5f, .5f, .5f}));
  EXPECT_THAT(floor.test.values, Pointwise(FloatNear(1e-6f), std::vector<float>{1 / 3.f, 2 / 3.f}));
}

TEST(PriorFloorTest, RegressionTakesTheMean) {
  const auto table = MakeTable("a,y\n1,2\n2,4\n3,9\n4,1\n", "a\n7\n8\n", TargetKind::kValue);
  const std::vector<int16_t> fold_of = {0, 1, 0, 1};
  const Floor floor = PriorFloor(*table, FoldsOf(fold_of, 2), *MetricByName("rmse"));
  EXPECT_EQ(floor.model, "mean");
  EXPECT_THAT(floor.oof.values, ElementsAre(2.5f, 5.5f, 2.5f, 5.5f));
  EXPECT_THAT(floor.test.values, ElementsAre(4, 4));
  EXPECT_NEAR(floor.score, std::sqrt((0.25 + 2.25 + 42.25 + 20.25) / 4), 1e-6);
}

TEST(PriorFloorTest, WhereQuantilesAreWantedItIsThatOfTheOtherFolds) {
  std::string train = "a,y\n";
  std::vector<int16_t> fold_of;
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&train, i, ",", i % 2 == 0 ? i / 2 : 100 + i / 2, "\n");
    fold_of.push_back(static_cast<int16_t>(i % 2));
  }
  const auto table = MakeTable(train, "a\n7\n", TargetKind::kValue);
  const Metric metric = *MetricByName("pinball_q0.9");
  const Floor floor = PriorFloor(*table, FoldsOf(fold_of, 2), metric);
  EXPECT_EQ(floor.model, "quantile");
  EXPECT_EQ(floor.oof.values[0], 109);
  EXPECT_EQ(floor.oof.values[1], 9);
  EXPECT_THAT(floor.test.values, ElementsAre(108));
  EXPECT_THAT(PriorOfAllRows(*table, FoldsOf(fold_of, 2), metric), ElementsAre(108));
}

TEST(PriorFloorTest, TheMeanAbsoluteErrorWantsTheMedian) {
  const auto table = MakeTable("a,y\n0,1\n1,2\n2,90\n3,3\n4,80\n", "a\n7\n", TargetKind::kValue);
  const Floor floor = PriorFloor(*table, FoldsOf({0, 0, 1, 1, 1}, 2), *MetricByName("mae"));
  EXPECT_THAT(floor.oof.values, ElementsAre(80, 80, 2, 2, 2));
  EXPECT_THAT(floor.test.values, ElementsAre(3));
}

// Targets of 2 a + noise, where nine of ten rows have noise 0 and one has 30.
TEST(LinearFloorTest, WhereAQuantileIsWantedValuesAreMovedToIt) {
  std::string train = "a,y\n";
  for (int i = 0; i < kRows; ++i) {
    const int a = i * 7 % 100;
    absl::StrAppend(&train, a, ",", 2 * a + (i % 10 == 3 ? 30 : 0), "\n");
  }
  const auto table = MakeTable(train, "a\n50\n", TargetKind::kValue);
  const auto test_value = [&](const char* metric) {
    const Floor floor = Linear(*table, *MetricByName(metric));
    EXPECT_EQ(floor.model, "ridge");
    return floor.test.values[0];
  };
  EXPECT_NEAR(test_value("rmse"), 103, 0.5);
  EXPECT_NEAR(test_value("mae"), 100, 0.5);
  EXPECT_NEAR(test_value("pinball_q0.5"), 100, 0.5);
  EXPECT_NEAR(test_value("pinball_q0.95"), 130, 1);
}

TEST(LinearFloorTest, LearnsWhatIsLinear) {
  const auto classes = LearnableLines(TargetKind::kClasses).Make(TargetKind::kClasses);
  const Floor logistic = Linear(*classes, *MetricByName("accuracy"));
  EXPECT_EQ(logistic.model, "logistic");
  EXPECT_GT(logistic.score, 0.93);
  EXPECT_GT(
      Score(*MetricByName("accuracy"), logistic.test.values, 2, classes->TargetClass(Split::kTest)),
      0.85);
  for (size_t i = 0; i < logistic.test.values.size(); i += 2) {
    EXPECT_NEAR(logistic.test.values[i] + logistic.test.values[i + 1], 1, 1e-5);
  }
  const auto values = LearnableLines(TargetKind::kValue).Make(TargetKind::kValue);
  const Floor ridge = Linear(*values, *MetricByName("r2"));
  EXPECT_EQ(ridge.model, "ridge");
  EXPECT_GT(ridge.score, 0.99);
}

TEST(LinearFloorTest, MoreThanTwoClassesAreLearntToo) {
  std::string train = "a,b,y\n";
  for (int i = 0; i < kRows; ++i) {
    const int c = i % 3;
    absl::StrAppend(&train, c == 0 ? 5 + i % 7 : i % 5, ",", c == 1 ? 6 + i % 4 : i % 5, ",k", c,
                    "\n");
  }
  const auto table = MakeTable(train, "a,b\n9,0\n0,8\n1,1\n", TargetKind::kClasses);
  const Floor floor = Linear(*table, *MetricByName("accuracy"));
  EXPECT_GT(floor.score, 0.95);
  ASSERT_THAT(floor.test.shape, ElementsAre(3, 3));
  EXPECT_GT(floor.test.values[0], 0.8f);
  EXPECT_GT(floor.test.values[4], 0.8f);
  EXPECT_GT(floor.test.values[8], 0.8f);
}

// A line without noise wants a weak penalty, and many columns of noise want a strong one.
TEST(LinearFloorTest, ThePenaltyIsTheOneThatAnswersBest) {
  std::string line = "a,b,y\n", wide = "y";
  SeededRandom random(1);
  for (int i = 0; i < kRows; ++i) {
    const int a = static_cast<int>(random.Below(4)), b = static_cast<int>(random.Below(4));
    absl::StrAppend(&line, a, ",", b, ",", 3 * a - 2 * b, "\n");
  }
  const auto exact = MakeTable(line, "a,b\n1,2\n", TargetKind::kValue);
  EXPECT_LT(Linear(*exact, *MetricByName("rmse")).score, 0.005);  // a penalty of 1: 0.02

  constexpr int kColumns = 60;
  for (int k = 0; k < kColumns; ++k) absl::StrAppend(&wide, ",c", k);
  for (int i = 0; i < kRows; ++i) {
    const int signal = static_cast<int>(random.Below(10));
    absl::StrAppend(&wide, "\n", signal + static_cast<int>(random.Below(30)), ",", signal);
    for (int k = 1; k < kColumns; ++k) absl::StrAppend(&wide, ",", random.Below(100));
  }
  const auto noisy = MakeTable(wide + "\n", "", TargetKind::kValue);
  EXPECT_LT(Linear(*noisy, *MetricByName("rmse")).score, 9.4);  // a penalty of 1: 10.8
}

// Each look at it takes a millisecond.
class TickingClock final : public Clock {
 public:
  absl::Time WallNow() const override { return absl::UnixEpoch() + MonotonicNow(); }
  absl::Duration MonotonicNow() const override { return absl::Milliseconds(++looks_); }

 private:
  mutable int looks_ = 0;
};

TEST(LinearFloorTest, TheChoiceOfAPenaltyLeavesTimeForTheFits) {
  LinearFloorOptions options;
  options.time = absl::Milliseconds(400);  // the fits look at the clock less often
  const auto table = LearnableLines(TargetKind::kClasses).Make(TargetKind::kClasses);
  const Metric accuracy = *MetricByName("accuracy");
  const auto floor = LinearFloor(*table, InTurn(), accuracy, options, TickingClock());
  ASSERT_TRUE(floor.has_value());
  EXPECT_GT(floor->floor.score, 0.8);
}

// Plants a marker in one row of fold 0 and checks which values change.
void ExpectNoLeak(TargetKind kind, Metric metric, const std::string& planted) {
  const Lines clean = LearnableLines(kind);
  Lines marked = clean;
  constexpr size_t kMarked = 8;
  static_assert(kMarked % kFolds == 0, "of fold 0");
  marked.train[kMarked] = planted;
  const Floor before = Linear(*clean.Make(kind), metric);
  const Floor after = Linear(*marked.Make(kind), metric);
  const size_t columns = before.oof.values.size() / kRows;
  bool others_changed = false;
  for (size_t i = 0; i < before.oof.values.size(); ++i) {
    const size_t row = i / columns;
    if (row % kFolds == 0 && row != kMarked) {
      // Fold 0's own model does not see the row, so its other rows keep their values.
      EXPECT_EQ(before.oof.values[i], after.oof.values[i]) << "row " << row;
    } else if (row != kMarked) {
      others_changed |= before.oof.values[i] != after.oof.values[i];
    }
  }
  EXPECT_TRUE(others_changed) << "the marker is strong enough to show";
}

TEST(LinearFloorTest, AFoldsOwnRowsDoNotReachItsModel) {
  ExpectNoLeak(TargetKind::kClasses, *MetricByName("accuracy"), "100000,-5000,p,down");
  ExpectNoLeak(TargetKind::kValue, *MetricByName("rmse"), "100000,-5000,q,-99999");
}

TEST(LinearFloorTest, TestRowsReachNothingButTheirOwnPrediction) {
  for (const TargetKind kind : {TargetKind::kClasses, TargetKind::kValue}) {
    const Metric metric =
        kind == TargetKind::kClasses ? *MetricByName("accuracy") : *MetricByName("rmse");
    const Lines clean = LearnableLines(kind);
    Lines marked = clean;
    marked.test[0] =
        "1e30,-1e30,planted," + std::string(kind == TargetKind::kValue ? "1e30" : "up");
    const Floor before = Linear(*clean.Make(kind), metric);
    const Floor after = Linear(*marked.Make(kind), metric);
    EXPECT_EQ(before.oof.values, after.oof.values);
    const size_t columns = before.test.values.size() / kTestRows;
    for (size_t i = columns; i < before.test.values.size(); ++i) {
      EXPECT_EQ(before.test.values[i], after.test.values[i]);
    }
    for (size_t i = 0; i < columns; ++i) EXPECT_TRUE(std::isfinite(after.test.values[i]));
  }
}

TEST(LinearFloorTest, WithoutTimeThereIsNone) {
  const auto table = LearnableLines(TargetKind::kClasses).Make(TargetKind::kClasses);
  LinearFloorOptions options;
  options.time = absl::Nanoseconds(1);
  EXPECT_FALSE(
      LinearFloor(*table, InTurn(), *MetricByName("accuracy"), options, SystemClock()).has_value());
}

TEST(LinearFloorTest, SamplesRowsTheSameWayEveryTime) {
  const auto table = LearnableLines(TargetKind::kClasses).Make(TargetKind::kClasses);
  LinearFloorOptions options;
  options.time = absl::Seconds(60);
  options.rows_per_fold = 50;
  const auto one = LinearFloor(*table, InTurn(), *MetricByName("accuracy"), options, SystemClock());
  const auto two = LinearFloor(*table, InTurn(), *MetricByName("accuracy"), options, SystemClock());
  options.seed = 1;
  const auto other =
      LinearFloor(*table, InTurn(), *MetricByName("accuracy"), options, SystemClock());
  ASSERT_TRUE(one && two && other);
  EXPECT_EQ(one->floor.oof.values, two->floor.oof.values);
  EXPECT_NE(one->floor.oof.values, other->floor.oof.values);
}

// Texts of 30 random words; those of class 1 praise, and those of class 0 blame, in words of
// their own or in words that mean the contrary after "not".
std::shared_ptr<const Table> MakeReviews(const std::string& marker = "") {
  SeededRandom random(9);
  const auto text = [&](bool good) {
    std::string words;
    for (int i = 0; i < 30; ++i) absl::StrAppend(&words, "w", random.Below(200), " ");
    return absl::StrCat(words, random.Below(2) == 0 ? (good ? "splendid" : "dreadful")
                                                    : (good ? "not bad" : "not good"));
  };
  TableSource source;
  std::string train = "n,body,y\n", test = "n,body,y\n";
  for (int i = 0; i < kRows + kTestRows; ++i) {
    const bool good = random.Below(2) == 0;
    std::string body = text(good);
    if (i == 8 && !marker.empty()) body = marker;
    absl::StrAppend(i < kRows ? &train : &test, i % 7, ",", body, ",", good ? "up" : "down", "\n");
  }
  source.train = {"train.csv", train};
  source.test = {"test.csv", test};
  source.target = "y";
  source.text_columns = {"body"};
  return testing_table::OpenTable(ReadTable(source));
}

std::optional<LinearFloorResult> OfTexts(const Table& table, absl::Duration time) {
  LinearFloorOptions options;
  options.time = time;
  options.texts = true;
  return LinearFloor(table, InTurn(), *MetricByName("accuracy"), options, SystemClock());
}

TEST(LinearFloorTest, TextsAreWordsAndPairsOfWords) {
  const auto table = MakeReviews();
  const auto floor = OfTexts(*table, absl::Seconds(60));
  ASSERT_TRUE(floor.has_value());
  EXPECT_GT(floor->floor.score, 0.9);
  EXPECT_GT(Score(*MetricByName("accuracy"), floor->floor.test.values, 2,
                  table->TargetClass(Split::kTest)),
            0.9);
  EXPECT_EQ(floor->model.folds.size(), size_t{kFolds});
}

TEST(LinearFloorTest, TheTextsOfAFoldsOwnRowsDoNotReachItsModel) {
  const auto clean = OfTexts(*MakeReviews(), absl::Seconds(60));
  const auto marked = OfTexts(*MakeReviews("splendid splendid w1 w2 w3"), absl::Seconds(60));
  ASSERT_TRUE(clean && marked);
  bool others_changed = false;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    const FloorEncoder::State& one = clean->model.folds[fold].encoder.state();
    const FloorEncoder::State& other = marked->model.folds[fold].encoder.state();
    if (fold == 0) {
      EXPECT_EQ(one.buckets, other.buckets);
      EXPECT_EQ(one.idf, other.idf);
    } else {
      others_changed |= one.idf != other.idf;
    }
  }
  EXPECT_TRUE(others_changed);
}

TEST(LinearFloorTest, OfLongTextsAsMuchIsReadAsTheTimeAllows) {
  const auto table = MakeReviews();
  const auto patient = OfTexts(*table, absl::Seconds(60));
  ASSERT_TRUE(patient.has_value());
  EXPECT_LT(patient->model.most_text_bytes, 1000u) << "as long as the longest text";
  // 270 texts of some 150 bytes are read in 5 ms; of longer ones both ends would be.
  std::string train = "body,y\n";
  for (int i = 0; i < kRows; ++i) {
    std::string body = i % 2 == 0 ? "splendid " : "dreadful ";
    for (int k = 0; k < 20000; ++k) absl::StrAppend(&body, "w", k % 200, " ");
    absl::StrAppend(&train, body, ",", i % 2, "\n");
  }
  TableSource source;
  source.train = {"train.csv", train};
  source.target = "y";
  source.text_columns = {"body"};
  const auto cut = OfTexts(*testing_table::OpenTable(ReadTable(source)), absl::Seconds(1));
  ASSERT_TRUE(cut.has_value());
  EXPECT_LT(cut->model.most_text_bytes * kRows, 8e6);
  EXPECT_GT(cut->model.most_text_bytes, 1000u);
  EXPECT_GT(cut->floor.score, 0.99);
}

TEST(LinearModelTest, RidgeReachesTheExactSolution) {
  // y = 2 x + 1 on x = -1, 0, 1, with l2 = 1 on the slope: slope = 2 * 2 / (2 + 1).
  DesignRows rows;
  rows.rows = 3;
  rows.numbers = 1;
  rows.values = {-1, 0, 1};
  LinearModel model(Link::kIdentity, 1, 0, 0, 1);
  FitOptions options;
  options.l2 = 1;
  model.Fit(rows, std::vector<float>{-1, 1, 3}, options);
  std::vector<float> out(3);
  model.Predict(rows, absl::MakeSpan(out));
  EXPECT_THAT(out, Pointwise(FloatNear(1e-3f), std::vector<float>{1 - 4 / 3.f, 1, 1 + 4 / 3.f}));
}

TEST(LinearModelTest, WordsAreInputsLikeNumbers) {
  DesignRows numbers, words;
  numbers.rows = words.rows = 4;
  numbers.numbers = 2;
  numbers.values = {0.5f, 0, 0, 2, -1, 1, 3, 0};
  words.word_ends = {1, 2, 4, 5};
  words.words = {0, 1, 0, 1, 0};
  words.word_values = {0.5f, 2, -1, 1, 3};
  LinearModel by_number(Link::kLogistic, 2, 0, 0, 1), by_word(Link::kLogistic, 0, 0, 2, 1);
  const std::vector<float> targets = {0, 1, 1, 0};
  by_number.Fit(numbers, targets, {});
  by_word.Fit(words, targets, {});
  ASSERT_EQ(by_number.weights().size(), by_word.weights().size());
  for (size_t i = 0; i < by_word.weights().size(); ++i) {
    EXPECT_NEAR(by_number.weights()[i], by_word.weights()[i], 1e-4) << i;
  }
  EXPECT_GT(std::abs(by_word.weights()[1]), 0.1f);
  std::vector<float> a(8), b(8);
  by_number.Predict(numbers, absl::MakeSpan(a));
  by_word.Predict(words, absl::MakeSpan(b));
  EXPECT_THAT(a, Pointwise(FloatNear(1e-4f), b));
}

TEST(LinearModelTest, WithABiasAloneProbabilitiesAreFrequencies) {
  DesignRows rows;
  rows.rows = 10;
  LinearModel two(Link::kLogistic, 0, 0, 0, 1), three(Link::kSoftmax, 0, 0, 0, 3);
  two.Fit(rows, std::vector<float>{1, 0, 0, 0, 0, 1, 0, 0, 1, 0}, {});
  three.Fit(rows, std::vector<float>{0, 1, 2, 2, 2, 2, 2, 1, 1, 1}, {});
  std::vector<float> out(20), out3(30);
  two.Predict(rows, absl::MakeSpan(out));
  three.Predict(rows, absl::MakeSpan(out3));
  EXPECT_NEAR(out[1], 0.3, 1e-3);
  EXPECT_NEAR(out3[0], 0.1, 1e-3);
  EXPECT_NEAR(out3[1], 0.4, 1e-3);
  EXPECT_NEAR(out3[2], 0.5, 1e-3);
}

}  // namespace
}  // namespace traind
