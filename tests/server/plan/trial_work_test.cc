// How much longer a trial's settings train than others of the same kind.
#include "server/plan/trial_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TrialWorkTest, TreesWorkByRoundsAndLeaves) {
  plain::ModelSpec model;
  model.lightgbm.emplace();
  model.lightgbm->learning_rate = 0.1;
  EXPECT_DOUBLE_EQ(WorkOfModel(model), 1);
  model.lightgbm->learning_rate = 0.02;
  EXPECT_DOUBLE_EQ(WorkOfModel(model), 5);
  model.lightgbm->num_iterations = 200;
  EXPECT_DOUBLE_EQ(WorkOfModel(model), 2) << "more rounds it never has";
  model.lightgbm->num_leaves = 124;
  EXPECT_DOUBLE_EQ(WorkOfModel(model), 4);
  model.lightgbm->boosting = "rf";
  model.lightgbm->learning_rate = 1;
  EXPECT_DOUBLE_EQ(WorkOfModel(model), 4) << "a forest grows all its trees";

  plain::ModelSpec xgboost;
  xgboost.xgboost.emplace();
  xgboost.xgboost->learning_rate = 0.05;
  EXPECT_DOUBLE_EQ(WorkOfModel(xgboost), 2);
  xgboost.xgboost->max_depth = 12;
  EXPECT_DOUBLE_EQ(WorkOfModel(xgboost), 4);
}

TEST(TrialWorkTest, NetworksWithoutAHandWrittenPassTakeLonger) {
  plain::ModelSpec model;
  model.mlp.emplace();
  EXPECT_DOUBLE_EQ(WorkOfModel(model), 1);
  model.mlp->ensemble_members = 8;
  EXPECT_DOUBLE_EQ(WorkOfModel(model), 8);
  model.mlp->ensemble_members = 1;
  model.mlp->numeric_embedding.emplace();
  EXPECT_DOUBLE_EQ(WorkOfModel(model), 8);
}

TEST(TrialWorkTest, AStoredSpecTellsItsTrials) {
  EXPECT_THAT(WorkOfTrials(R"({"trials": [
      {"name": "lightgbm", "model": {"lightgbm": {"learning_rate": 0.05}}},
      {"name": "mlp", "model": {"mlp": {"ensemble_members": 8}}}]})"),
              ElementsAre(2, 8));
  EXPECT_THAT(WorkOfTrials("{}"), IsEmpty());
  EXPECT_THAT(WorkOfTrials(""), IsEmpty());
}

}  // namespace
}  // namespace traind
