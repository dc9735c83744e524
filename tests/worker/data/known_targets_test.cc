#include "worker/data/known_targets.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "common/data/table/table_reader.h"
#include "tests/common/data/table/table_fixture.h"
#include "worker/data/row_encoder.h"

namespace traind {
namespace {

const float kMissing = std::nanf("");

TEST(KnownTargetsTest, TheLastValueThatIsThereCountsFromTheHorizonOn) {
  KnownTargets known(2, 2);
  known.Append({1, kMissing});
  known.Append({2, 20});
  known.Append({kMissing, 30});
  EXPECT_TRUE(std::isnan(known.Before(0)[0]));
  EXPECT_TRUE(std::isnan(known.Before(1)[1]));
  EXPECT_EQ(known.Before(2)[0], 1);
  EXPECT_TRUE(std::isnan(known.Before(2)[1]));
  EXPECT_EQ(known.Before(3)[0], 2);
  EXPECT_EQ(known.Before(3)[1], 20);
  EXPECT_EQ(known.Before(4)[0], 2);  // carried forward over the gap
  EXPECT_EQ(known.Before(4)[1], 30);
}

// Two series of six rows; y walks up, z is noise around 5.
std::shared_ptr<const Table> Walks() {
  std::string train = "s,t,y,z\n";
  for (const int s : {0, 1}) {
    for (int t = 0; t < 6; ++t) {
      const std::string y = t == 2 ? "" : absl::StrCat(100 * s + 10 * t);
      absl::StrAppend(&train, s == 0 ? "a," : "b,", t, ",", y, ",", 4 + 2 * (t % 2), "\n");
    }
  }
  TableSource source;
  source.train = {"train.csv", train};
  source.target = "y";
  source.more_targets = {"z"};
  source.target_kind = TargetKind::kValue;
  source.time = "t";
  source.series = "s";
  source.history = true;
  return testing_table::OpenTable(ReadTable(source));
}

RowEncoder Fit(const std::shared_ptr<const Table>& table, TargetForm form) {
  std::vector<int32_t> rows(static_cast<size_t>(table->rows(Split::kTrain)));
  std::iota(rows.begin(), rows.end(), 0);
  return RowEncoder::Fit(table, rows, {2, 1}, form);
}

TEST(KnownTargetsTest, ATargetThatVariesLessFromRowToRowIsLearntAsItsDifference) {
  const auto table = Walks();
  const RowEncoder encoder = Fit(table, TargetForm::kAuto);
  const std::vector<float> learnt = encoder.LearntTargets();
  ASSERT_EQ(learnt.size(), 24u);
  for (const size_t first : {0u, 6u}) {
    EXPECT_EQ(learnt[2 * first], first == 0 ? -76 : 24) << "only the mean, 76, is known";
    EXPECT_EQ(learnt[2 * (first + 1)], 10);
    EXPECT_TRUE(std::isnan(learnt[2 * (first + 2)])) << "no target";
    EXPECT_EQ(learnt[2 * (first + 3)], 20) << "the difference to the last known value";
    EXPECT_EQ(learnt[2 * (first + 4) + 1], 4) << "z goes up and down, so its value is learnt";
  }
  // Each series has the differences 10, 20, 10 and 10, and its first rows -76 and 24.
  EXPECT_DOUBLE_EQ(encoder.target_mean()[0], 4.8);
  EXPECT_DOUBLE_EQ(encoder.target_mean()[1], 5);
}

TEST(KnownTargetsTest, AnswersBecomeTargetsAgain) {
  const auto table = Walks();
  const RowEncoder encoder = Fit(table, TargetForm::kAuto);
  std::vector<float> answers = encoder.LearntTargets();
  std::vector<int32_t> rows(12);
  std::iota(rows.begin(), rows.end(), 0);
  encoder.RowsToTargets(rows, absl::MakeSpan(answers));
  for (size_t row = 0; row < 12; ++row) {
    const float y = table->TargetValue(Split::kTrain, 0)[row];
    if (!std::isnan(y)) {
      EXPECT_EQ(answers[2 * row], y) << row;
    }
    EXPECT_EQ(answers[2 * row + 1], table->TargetValue(Split::kTrain, 1)[row]);
  }
  // If nothing is known the mean stands in, and sums of differences stay within bounds.
  std::vector<float> answer = {0, 7};
  encoder.ToTargets({kMissing, kMissing}, absl::MakeSpan(answer));
  EXPECT_EQ(answer, (std::vector<float>{76, 7}));
  answer = {1e9f, 7};
  encoder.ToTargets({100, 5}, absl::MakeSpan(answer));
  EXPECT_EQ(answer[0], 300);  // the maximum of 150 plus the range of 150
}

TEST(KnownTargetsTest, OnRequestValuesAreLearntAsTheyAre) {
  const auto table = Walks();
  const RowEncoder encoder = Fit(table, TargetForm::kValue);
  EXPECT_EQ(encoder.LearntTargets()[2], 10);
  EXPECT_EQ(encoder.LearntTargets()[2 * 9], 130);
  std::vector<float> answers = {1, 2};
  encoder.RowsToTargets({5}, absl::MakeSpan(answers));
  EXPECT_EQ(answers, (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace traind
