// Which models of a Job another Job predicts with.
#include "server/intake/models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace traind {
namespace {

using ::testing::HasSubstr;

Job Finished() {
  Job job;
  job.id = "j-1";
  job.spec.metric = "rmse";
  job.floor_model = "ridge";
  job.floor_score = 3.5;
  job.tasks.emplace_back();
  return job;
}

Member OfFold(int fold, double weight) {
  Member member;
  member.fold = fold;
  member.weight = weight;
  member.oof = "attempts/" + std::to_string(fold + 2) + "/oof.npy";
  return member;
}

TEST(ModelsTest, AFloorThatAnswersAloneIsTheModel) {
  PublishedPrediction standing;
  standing.quality = Quality::kFloor;
  standing.floor_weight = 1;
  standing.oof_score = 3.5;
  standing.comparable = true;
  const auto models = ModelsOf(Finished(), standing, true);
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->models_size(), 1);
  EXPECT_EQ(models->models(0).fold(), -1);
  EXPECT_EQ(models->models(0).path(), "jobs/j-1/floor");
  EXPECT_EQ(models->models(0).weight(), 1);
  EXPECT_EQ(models->models(0).score(), 3.5);
  EXPECT_EQ(models->models(0).kind(), "ridge");
  EXPECT_EQ(models->quality(), "FLOOR");
  EXPECT_EQ(models->oof(), 3.5);
}

TEST(ModelsTest, AFloorWithoutAModelIsRefusedByName) {
  PublishedPrediction standing;
  standing.floor_weight = 1;
  Job job = Finished();
  job.floor_model = "naive";
  const auto models = ModelsOf(job, standing, false);
  EXPECT_EQ(models.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(models.status().message()),
              HasSubstr("answered by its floor (naive), which predicts no other rows"));
}

TEST(ModelsTest, AFloorBesideFoldsKeepsItsWeight) {
  PublishedPrediction standing;
  standing.floor_weight = 0.25;
  standing.oof_score = 2;
  standing.comparable = true;
  standing.members = {OfFold(0, 0.5), OfFold(1, 0.25)};
  const auto models = ModelsOf(Finished(), standing, true);
  ASSERT_TRUE(models.ok()) << models.status();
  ASSERT_EQ(models->models_size(), 3);
  EXPECT_EQ(models->models(0).path(), "jobs/j-1/attempts/2");
  EXPECT_DOUBLE_EQ(models->models(0).weight(), 0.5);
  EXPECT_DOUBLE_EQ(models->models(1).weight(), 0.25);
  EXPECT_EQ(models->models(2).fold(), -1);
  EXPECT_DOUBLE_EQ(models->models(2).weight(), 0.25);
  EXPECT_EQ(models->oof(), 2);
  EXPECT_TRUE(models->comparable());
  // A floor that is not kept leaves its weight to the folds, whose score is another.
  const auto alone = ModelsOf(Finished(), standing, false);
  ASSERT_TRUE(alone.ok()) << alone.status();
  ASSERT_EQ(alone->models_size(), 2);
  EXPECT_NEAR(alone->models(0).weight(), 2.0 / 3, 1e-12);
  EXPECT_FALSE(alone->has_oof());
  EXPECT_FALSE(alone->comparable());
}

TEST(ModelsTest, WithoutAnyModelThereIsNothingToPredictWith) {
  const auto models = ModelsOf(Finished(), std::nullopt, true);
  EXPECT_EQ(models.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(models.status().message()), HasSubstr("has no model yet"));
}

}  // namespace
}  // namespace traind
