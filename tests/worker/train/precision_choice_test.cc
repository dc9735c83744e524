// How a precision is chosen by timed steps, which here take as long as they are told to.
#include "worker/train/precision_choice.h"
#include "tests/worker/model/model_of.h"

#include <absl/strings/match.h>
#include <absl/time/clock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

namespace traind {
namespace {

constexpr int64_t kBatch = 64;

class Decisions final : public EventSink {
 public:
  void Send(const rank_protocol::FromProcess& message) override {
    if (const auto* decision = std::get_if<rank_protocol::Decision>(&message)) {
      causes.push_back(decision->cause);
    }
  }
  void SendProgress(const rank_protocol::Progress&) override {}

  std::vector<std::string> causes;
};

class PrecisionChoiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (__builtin_cpu_supports("avx512bf16") == 0) GTEST_SKIP() << "this core has no bf16";
    LearnerOptions options;
    MlpOf(options.model).hidden = {512, 512};
    options.shape.numeric = 64;
    options.objective.loss = LossKind::kMse;
    LearnerData data;
    data.rows.rows = kBatch;
    data.rows.numeric.assign(static_cast<size_t>(kBatch * options.shape.numeric), 0.5f);
    data.values.assign(static_cast<size_t>(kBatch), 0.5f);
    auto learner = Learner::Create(options, std::move(data));
    ASSERT_TRUE(learner.ok()) << learner.status();
    learner_ = *std::move(learner);
    rows_.resize(static_cast<size_t>(kBatch));
    std::iota(rows_.begin(), rows_.end(), 0);
  }

  // A whole step takes 160 ms in fp32, and 160 ms / gain in bf16.
  Precision Choose(absl::Duration remaining, double gain, int compute_capability = 0) {
    PrecisionRequest request;
    request.compute_capability = compute_capability;
    request.batch = kBatch;
    request.training_rows = rows_;
    request.planned_steps = 1000;
    request.remaining = remaining;
    request.step = [&](const StepInput& input) {
      taken_.push_back(input.rows);
      const bool fast = learner_->precision() != Precision::kFp32;
      absl::SleepFor(absl::Milliseconds(160) * static_cast<double>(input.rows) /
                     static_cast<double>(kBatch) / (fast ? gain : 1));
      return absl::OkStatus();
    };
    Gang alone(nullptr);
    const auto chosen = ChoosePrecision(request, *learner_, alone, sink_);
    EXPECT_TRUE(chosen.ok()) << chosen.status();
    return chosen.value_or(Precision::kFp16);
  }

  std::unique_ptr<Learner> learner_;
  std::vector<int32_t> rows_;
  std::vector<int64_t> taken_;  // rows of each timed step
  Decisions sink_;
};

TEST_F(PrecisionChoiceTest, WithTimeForThemWholeStepsDecide) {
  EXPECT_EQ(Choose(absl::Seconds(60), 2), Precision::kBf16);
  EXPECT_EQ(taken_, (std::vector<int64_t>{64, 64, 64, 64, 64, 64}));
  ASSERT_EQ(sink_.causes.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(sink_.causes[0], "a step of 64 rows takes 8")) << sink_.causes[0];
}

TEST_F(PrecisionChoiceTest, WithoutItAPartOfAStepDecides) {
  // Six whole steps take 960 ms, six parts 120.
  EXPECT_EQ(Choose(absl::Seconds(6), 2), Precision::kBf16);
  EXPECT_EQ(taken_, (std::vector<int64_t>{64, 8, 8, 8, 8, 8, 8}));
  ASSERT_EQ(sink_.causes.size(), 1u);
  EXPECT_TRUE(absl::StartsWith(sink_.causes[0], "a step of 8 rows takes")) << sink_.causes[0];
}

TEST_F(PrecisionChoiceTest, WithLittleTimeAPartOfOneStepEachDecides) {
  EXPECT_EQ(Choose(absl::Seconds(2), 2), Precision::kBf16);  // four parts take 80 ms
  EXPECT_EQ(taken_, (std::vector<int64_t>{64, 8, 8, 8, 8}));
}

TEST_F(PrecisionChoiceTest, WhatGainsNothingIsNotTaken) {
  EXPECT_EQ(Choose(absl::Seconds(6), 0.7), Precision::kFp32);
  EXPECT_EQ(taken_.size(), 7u);
  EXPECT_TRUE(sink_.causes.empty());
}

TEST_F(PrecisionChoiceTest, WhereNotEvenPartsHaveTimeNothingIsTried) {
  EXPECT_EQ(Choose(absl::Milliseconds(800), 2), Precision::kFp32);
  EXPECT_LE(taken_.size(), 3u);
}

// A GPU of that capability stands in.
TEST_F(PrecisionChoiceTest, OnAGpuStepsDecideAsWell) {
  EXPECT_EQ(Choose(absl::Seconds(60), 2, 90), Precision::kBf16);
  EXPECT_TRUE(sink_.causes.empty());
  EXPECT_EQ(taken_.size(), 6u);
  EXPECT_EQ(Choose(absl::Seconds(60), 0.7, 90), Precision::kFp32);
  ASSERT_EQ(sink_.causes.size(), 1u);
  EXPECT_TRUE(absl::StrContains(sink_.causes[0], " ms in bf16, ")) << sink_.causes[0];
}

TEST_F(PrecisionChoiceTest, OnAGpuWithoutTimeForThemItsHalfPrecisionIsTaken) {
  EXPECT_EQ(Choose(absl::Milliseconds(800), 0.7, 90), Precision::kBf16);
  EXPECT_LE(taken_.size(), 3u);
}

TEST(PathsTest, AlgorithmsAreTriedOnlyWhereThereIsTimeForThem) {
  SpeedPaths wanted;
  EXPECT_TRUE(PathsWorthTheirStart(wanted, absl::InfiniteDuration()).cudnn_benchmark);
  EXPECT_TRUE(PathsWorthTheirStart(wanted, absl::Minutes(10)).cudnn_benchmark);
  EXPECT_FALSE(PathsWorthTheirStart(wanted, absl::Minutes(9)).cudnn_benchmark);
  wanted.cudnn_benchmark = false;
  EXPECT_FALSE(PathsWorthTheirStart(wanted, absl::InfiniteDuration()).cudnn_benchmark);
}

TEST(AnswersInHalfTest, WhatSavesTimeAndCostsNoScoreIsTaken) {
  const auto will_do = [](const char* metric, double full, double half, double gain, int64_t rows) {
    const absl::Duration time = absl::Seconds(1);
    return HalfWillDo(*MetricByName(metric), {full, time}, {half, time / gain}, rows);
  };
  EXPECT_TRUE(will_do("accuracy", 0.9, 0.9, 2, 1000));
  EXPECT_TRUE(will_do("accuracy", 0.9, 0.895, 2, 1000));   // five rows of a thousand
  EXPECT_FALSE(will_do("accuracy", 0.9, 0.893, 2, 1000));  // seven
  EXPECT_FALSE(will_do("accuracy", 0.9, 0.895, 2, 100000));
  EXPECT_FALSE(will_do("accuracy", 0.9, 0.907, 2, 1000));  // better by chance
  EXPECT_FALSE(will_do("accuracy", 0.9, 0.9, 1.05, 1000));
  EXPECT_TRUE(will_do("accuracy", 1, 1, 2, 10));
  EXPECT_FALSE(will_do("accuracy", 1, 0.9, 2, 10));
  EXPECT_TRUE(will_do("r2", -0.5, -0.5001, 2, 1000));
  EXPECT_TRUE(will_do("rmse", 12, 12.1, 2, 1000));
  EXPECT_FALSE(will_do("rmse", 12, 12.2, 2, 1000));
  EXPECT_FALSE(will_do("rmse", 12, std::numeric_limits<double>::quiet_NaN(), 2, 1000));
}

TEST(AnswersInHalfTest, ItIsTriedWhereItMayGainAndHasTime) {
  EXPECT_TRUE(IsWorthHalf(absl::Seconds(1), absl::Seconds(60)));
  EXPECT_FALSE(IsWorthHalf(absl::Seconds(4), absl::Seconds(60)));
  EXPECT_FALSE(IsWorthHalf(absl::Milliseconds(5), absl::Seconds(60)));
  EXPECT_TRUE(IsWorthHalf(absl::Seconds(1), absl::InfiniteDuration()));
}

}  // namespace
}  // namespace traind
