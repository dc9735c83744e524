#include "server/intake/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace traind {
namespace {

using ::testing::ElementsAre;

Member Of(int fold, int trial, double weight) {
  Member member;
  member.fold = fold;
  member.trial = trial;
  member.kind = trial == 0 ? "lightgbm" : "mlp";
  member.weight = weight;
  member.oof = "attempts/7/oof.npy";
  return member;
}

Job Source() {
  Job job;
  job.id = "source-1";
  job.spec.metric = "logloss";
  job.tasks.resize(1);
  job.tasks[0].kind = TaskKind::kPrepare;
  return job;
}

TEST(ModelWeightsTest, ThoseThatAnsweredPredictWithTheirWeights) {
  PublishedPrediction standing;
  standing.quality = Quality::kFull;
  standing.oof_score = 0.25;
  standing.comparable = true;
  standing.members = {Of(0, 0, 0.3), Of(0, 1, 0.2), Of(1, 1, 0.5)};
  standing.tuned.temperature = 1.25;
  standing.tuned.threshold = 0.4;
  standing.quantiles = {{0.1, 0.9}, {{{5}, {-1, 2}, true, {1, 3}, {0.5, 1.5}}}};
  const auto set = ModelsOf(Source(), standing, false);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->models_size(), 3);
  EXPECT_EQ(set->models(0).weight(), 0.3);
  EXPECT_EQ(set->models(1).trial(), 1);
  EXPECT_EQ(set->models(1).kind(), "mlp");
  EXPECT_EQ(set->models(1).weight(), 0.2);
  EXPECT_EQ(set->models(2).path(), "jobs/source-1/attempts/7");
  EXPECT_EQ(set->oof(), 0.25);
  EXPECT_EQ(set->temperature(), 1.25);
  EXPECT_EQ(set->threshold(), 0.4);
  EXPECT_THAT(set->quantiles().levels(), ElementsAre(0.1, 0.9));
  ASSERT_EQ(set->quantiles().targets_size(), 1);
  EXPECT_THAT(set->quantiles().targets(0).at(), ElementsAre(5));
  EXPECT_THAT(set->quantiles().targets(0).offsets(), ElementsAre(-1, 2));
  EXPECT_TRUE(set->quantiles().targets(0).not_negative());
  EXPECT_THAT(set->quantiles().targets(0).steps(), ElementsAre(1, 3));
  EXPECT_THAT(set->quantiles().targets(0).scales(), ElementsAre(0.5, 1.5));
}

TEST(ModelWeightsTest, WhereTheFloorHadAShareTheOthersAreScaledAndNoScoreIsTold) {
  PublishedPrediction standing;
  standing.oof_score = 0.25;
  standing.comparable = true;
  standing.members = {Of(0, 0, 0.6), Of(1, 1, 0.2)};
  standing.floor_weight = 0.2;
  const auto set = ModelsOf(Source(), standing, false);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_NEAR(set->models(0).weight(), 0.75, 1e-12);
  EXPECT_NEAR(set->models(1).weight(), 0.25, 1e-12);
  EXPECT_FALSE(set->has_oof());
  EXPECT_FALSE(set->comparable());
  EXPECT_FALSE(set->has_temperature());
  EXPECT_FALSE(set->has_threshold());
  EXPECT_FALSE(set->has_quantiles());
}

// Without a test file nothing was weighed; the folds, and the models of each, count alike.
TEST(ModelWeightsTest, WithoutAPredictionAllModelsCountAlikeFoldByFold) {
  Job source = Source();
  for (const auto& [fold, trial] : {std::pair(0, 0), std::pair(0, 1), std::pair(1, 0)}) {
    Task& task = source.tasks.emplace_back();
    task.fold = fold;
    task.trial = trial;
    task.member = Of(fold, trial, 0);
  }
  const auto set = ModelsOf(source, std::nullopt, false);
  ASSERT_TRUE(set.ok()) << set.status();
  ASSERT_EQ(set->models_size(), 3);
  EXPECT_EQ(set->models(0).weight(), 0.25);
  EXPECT_EQ(set->models(2).weight(), 0.5);
  EXPECT_EQ(set->quality(), "DEGRADED");
}

}  // namespace
}  // namespace traind
