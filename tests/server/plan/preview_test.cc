// A dry run: what a Job would do.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

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

// ---- The budget in which nothing is cut, over many Jobs --------------------------

struct RandomJob {
  Spec spec;
  Assumptions assumed;
};

RandomJob DrawJob(int seed) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  const auto whole = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  const auto log_uniform = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(random));
  };
  RandomJob job;
  job.spec.folds = whole(1, 10);
  job.spec.epochs = whole(0, 3) == 0 ? whole(1, 4) : whole(5, 200);
  job.spec.slots = whole(1, 2);
  job.spec.subsample = whole(0, 1) == 1;
  if (whole(0, 2) == 0) {
    job.spec.epochs = 10 * job.spec.epochs;
    job.spec.trials = {{"trees", "lightgbm", job.spec.epochs, whole(0, 1) * 20}};
  }
  Measured& measured = job.assumed.measured;
  measured.step_s = log_uniform(1e-4, 0.3);
  if (whole(0, 1) == 1) measured.step_p90_s = measured.step_s * log_uniform(1, 3);
  measured.steps_per_epoch = whole(1, 400);
  measured.evaluate_s = log_uniform(1e-3, 2);
  measured.predict_s = log_uniform(1e-3, 5);
  job.assumed.overhead_s = log_uniform(0.01, 5);
  job.assumed.prepare_s = log_uniform(0.1, 20);
  job.assumed.publish_s = log_uniform(0.01, 2);
  job.assumed.gangs = whole(1, 8);
  job.spec.budget = absl::Seconds(log_uniform(1, 1000));
  return job;
}

bool Cuts(RandomJob job, double slower, absl::Duration budget) {
  job.assumed.measured.step_s *= slower;
  job.assumed.measured.step_p90_s *= slower;
  job.assumed.measured.evaluate_s *= slower;
  job.spec.budget = budget;
  return !PreviewPlan(job.spec, job.assumed, kStart).cuts.empty();
}

TEST(PreviewTest, TheBudgetOfferedIsTheLeastInWhichNothingIsCut) {
  int compared = 0;
  for (int seed = 1; seed <= 5000; ++seed) {
    const RandomJob job = DrawJob(seed);
    const Measured& measured = job.assumed.measured;
    const double spread = measured.step_p90_s > 0 ? measured.step_p90_s / measured.step_s : 1.5;
    const absl::Duration offered = PreviewPlan(job.spec, job.assumed, kStart).full_budget;
    const absl::Duration whole = absl::Ceil(offered, absl::Seconds(1));  // as it is told
    EXPECT_FALSE(Cuts(job, 1, whole)) << "seed " << seed;
    EXPECT_FALSE(Cuts(job, spread, whole)) << "seed " << seed << ", at the slower speed";
    // Boosted trees lose no rounds where the time is short, and a fold of one epoch has none to
    // lose.
    const bool can_be_cut = job.spec.trials.empty() && job.spec.epochs > 1;
    if (!can_be_cut) continue;
    ++compared;
    EXPECT_TRUE(Cuts(job, spread, 0.8 * offered)) << "seed " << seed << ", offered " << offered;
  }
  EXPECT_GT(compared, 2000);
}

}  // namespace
}  // namespace traind
