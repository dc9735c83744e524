// A dry run: what a Job would do.
#include <gtest/gtest.h>

#include "server/plan/planner.h"

namespace traind {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

TEST(PreviewTest, SaysWhatWouldFitAndWhatWouldBeCut) {
  Spec spec;
  spec.budget = absl::Seconds(60);
  Assumptions assumed;
  assumed.measured.step_s = 0.01;
  assumed.measured.step_p90_s = 0.015;
  assumed.measured.steps_per_epoch = 50;
  assumed.measured.predict_s = 0.2;
  assumed.gangs = 2;
  const Preview fits = PreviewPlan(spec, assumed, kStart);
  EXPECT_TRUE(fits.cuts.empty());
  EXPECT_EQ(fits.plan.epochs, 20);
  EXPECT_GT(fits.estimate_p50, absl::Seconds(30));
  EXPECT_GT(fits.estimate_p90, fits.estimate_p50);
  EXPECT_LE(fits.estimate_p90, absl::Seconds(60));
  EXPECT_EQ(fits.estimated_finish, kStart + fits.estimate_p50);

  spec.budget = absl::Seconds(10);
  const Preview cut = PreviewPlan(spec, assumed, kStart);
  ASSERT_FALSE(cut.cuts.empty());
  EXPECT_EQ(cut.plan.folds, 3);
  EXPECT_LT(cut.plan.epochs, 20);
  EXPECT_LE(cut.estimate_p50, absl::Seconds(10));
}

TEST(PreviewTest, TellsTheSlotsSecondsAndTheBudgetInWhichNothingIsCut) {
  Spec spec;
  spec.budget = absl::Seconds(10);
  spec.slots = 2;
  Assumptions assumed;
  assumed.measured.step_s = 0.01;
  assumed.measured.step_p90_s = 0.02;
  assumed.measured.steps_per_epoch = 50;
  assumed.overhead_s = 0.5;
  assumed.measured.predict_s = 0.5;
  const Preview cut = PreviewPlan(spec, assumed, kStart);
  ASSERT_FALSE(cut.cuts.empty());
  const double folds = cut.plan.folds, epochs = cut.plan.epochs;
  EXPECT_NEAR(cut.device_s_p50, 2 * folds * (1 + epochs * 0.5), 1e-6);
  EXPECT_NEAR(cut.device_s_p90, 2 * folds * (1 + epochs * 1.0), 1e-6);
  spec.budget = cut.full_budget;
  EXPECT_TRUE(PreviewPlan(spec, assumed, kStart).cuts.empty());
  assumed.measured.step_s = 0.02;  // as slow as 9 times in 10 at worst
  EXPECT_TRUE(PreviewPlan(spec, assumed, kStart).cuts.empty());
}

}  // namespace
}  // namespace traind
