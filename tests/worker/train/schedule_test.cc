#include "worker/train/schedule.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "worker/checkpoint/safetensors.h"

namespace traind {
namespace {

constexpr double kPeak = 3e-3;
constexpr int64_t kSteps = 100;

struct Case {
  std::string name;  // in tests/golden/schedules.safetensors
  Schedule schedule;
};

Schedule Of(ScheduleKind kind, int64_t warmup = 0) {
  Schedule schedule{kPeak, warmup, kSteps, kind};
  const plain::ScheduleSpec defaults;
  schedule.rise = defaults.rise;
  schedule.start_divisor = defaults.start_divisor;
  schedule.end_divisor = defaults.end_divisor;
  schedule.least = 1e-4;
  return schedule;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  const auto add = [&cases](const char* name, Schedule schedule) -> Schedule& {
    return cases.emplace_back(Case{name, schedule}).schedule;
  };
  add("constant", Of(ScheduleKind::kConstant));
  add("constant_warm", Of(ScheduleKind::kConstant, 10));
  for (const bool warm : {false, true}) {
    Schedule& step = add(warm ? "step_warm" : "step", Of(ScheduleKind::kStep, warm ? 10 : 0));
    step.period = 15;
    step.gamma = 0.5;
  }
  add("cosine", Of(ScheduleKind::kCosine));
  add("cosine_warm", Of(ScheduleKind::kCosine, 10));
  add("restarts", Of(ScheduleKind::kCosineRestarts)).period = 20;
  Schedule& doubling = add("restarts_doubling", Of(ScheduleKind::kCosineRestarts));
  doubling.period = 10;
  doubling.period_growth = 2;
  Schedule& restarts = add("restarts_warm", Of(ScheduleKind::kCosineRestarts, 7));
  restarts.period = 10;
  restarts.period_growth = 3;
  add("one_cycle", Of(ScheduleKind::kOneCycle));
  Schedule& cycle = add("one_cycle_other", Of(ScheduleKind::kOneCycle));
  cycle.rise = 0.5;
  cycle.start_divisor = 10;
  cycle.end_divisor = 100;
  for (const bool warm : {false, true}) {
    Schedule& polynomial =
        add(warm ? "polynomial_warm" : "polynomial", Of(ScheduleKind::kPolynomial, warm ? 10 : 0));
    polynomial.least = 0;
    polynomial.power = warm ? 1 : 2;
  }
  return cases;
}

TEST(ScheduleTest, RatesAreThoseOfPyTorchsSchedulers) {
  const auto bytes = ReadFile("tests/golden/schedules.safetensors");
  ASSERT_TRUE(bytes.ok());
  const auto file = ParseSafetensors(*bytes);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->tensors.size(), Cases().size());
  for (const Case& c : Cases()) {
    const auto rates = FloatsOf(*file, c.name, kSteps);
    ASSERT_TRUE(rates.ok()) << c.name;
    for (int64_t step = 0; step < kSteps; ++step) {
      const double expected = (*rates)[static_cast<size_t>(step)];
      EXPECT_NEAR(c.schedule.LearningRate(step), expected, 1e-6 * expected + 1e-12)
          << c.name << " at step " << step;
    }
  }
}

TEST(ScheduleTest, PastTheEndTheRateStaysWhereItEnded) {
  EXPECT_EQ(Of(ScheduleKind::kCosine).LearningRate(5000), 1e-4);
  EXPECT_NEAR(Of(ScheduleKind::kPolynomial).LearningRate(5000), 1e-4, 1e-15);
  EXPECT_EQ(Of(ScheduleKind::kConstant).LearningRate(5000), kPeak);
  const Schedule cycle = Of(ScheduleKind::kOneCycle);
  EXPECT_EQ(cycle.LearningRate(5000), cycle.LearningRate(kSteps - 1));
}

TEST(ScheduleTest, NoScheduleFailsOnARunOfAFewSteps) {
  for (const ScheduleKind kind :
       {ScheduleKind::kCosine, ScheduleKind::kConstant, ScheduleKind::kStep,
        ScheduleKind::kCosineRestarts, ScheduleKind::kOneCycle, ScheduleKind::kPolynomial}) {
    for (const int64_t total : {1, 2, 3}) {
      for (const int64_t warmup : {0, 1, 5}) {
        Schedule schedule{kPeak, warmup, total, kind};
        for (int64_t step = 0; step < 8; ++step) {
          const double rate = schedule.LearningRate(step);
          EXPECT_GE(rate, 0);
          EXPECT_LE(rate, kPeak * (1 + 1e-12));
        }
      }
    }
  }
}

TEST(ScheduleTest, TheSpecCountsInEpochsAndTheScheduleInSteps) {
  plain::ScheduleSpec spec;
  spec.kind = "cosine_restarts";
  spec.least = 0.1;
  spec.period = 2.5;
  spec.warmup_epochs = 0.5;
  Schedule schedule = MakeSchedule(spec, 0.01, /*steps_per_epoch=*/40, /*epochs=*/10);
  EXPECT_EQ(schedule.total_steps, 400);
  EXPECT_EQ(schedule.period, 100);
  EXPECT_EQ(schedule.warmup_steps, 20);
  EXPECT_DOUBLE_EQ(schedule.least, 0.001);
  spec.warmup_epochs.reset();
  EXPECT_EQ(MakeSchedule(spec, 0.01, 40, 10).warmup_steps, 40);  // an epoch
  EXPECT_EQ(MakeSchedule(spec, 0.01, 400, 10).warmup_steps, 100);
  spec.warmup_share = 0.05;
  EXPECT_EQ(MakeSchedule(spec, 0.01, 40, 10).warmup_steps, 20);
  spec.warmup_share.reset();
  spec.warmup_steps = 0;
  EXPECT_EQ(MakeSchedule(spec, 0.01, 40, 10).warmup_steps, 0);
  spec.warmup_steps.reset();
  spec.kind = "one_cycle";  // rises by itself
  EXPECT_EQ(MakeSchedule(spec, 0.01, 40, 10).warmup_steps, 0);
}

}  // namespace
}  // namespace traind
