// The forms of an answer that a Job can ask for: how models are combined, and which files are
// written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "common/publish/prediction_form.h"
#include "tests/common/publish/publisher_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(PublisherTest, WeightsByScoreAreInTheAnswerAndTheManifest) {
  PredictionForm form;
  form.ensemble = EnsembleKind::kWeighted;
  form.format = FileFormat::kNpy;
  form.probabilities = false;
  ASSERT_TRUE(WritePredictionForm(state_, kJob, form).ok());
  // The errors are 0.5 and 0.25, so the weights are 1 to 2.
  const Member poor = PutMember(0, 1, true, 2, 0.9f), good = PutMember(1, 2, true, 3, 0.6f);
  const PublishedPrediction p = MustPublish(Request({poor, good}));
  ASSERT_EQ(p.members.size(), 2u);
  EXPECT_NEAR(p.members[0].weight, 1.0 / 3, 1e-9);
  EXPECT_NEAR(p.members[1].weight, 2.0 / 3, 1e-9);
  EXPECT_EQ(p.ensemble, "weighted");
  EXPECT_THAT(Csv(), HasSubstr("id,y\n"));
  const auto values = ReadNpyFloat(InState(CurrentLink(kJob)) + "/" + kPredictionsNpy);
  ASSERT_TRUE(values.ok()) << values.status();
  EXPECT_THAT(values->shape, ElementsAre(kTestRows, 2));
  EXPECT_NEAR(values->values[0], 0.9 / 3 + 0.6 * 2 / 3, 1e-6);
  const auto standing = ReadStandingPrediction(state_, kJob);
  ASSERT_TRUE(standing.ok()) << standing.status();
  EXPECT_EQ(standing->members[1].weight, p.members[1].weight);
  ASSERT_EQ(standing->files.size(), 1u);
  EXPECT_EQ(standing->files[0].sha256,
            DigestFile(InState(CurrentLink(kJob)) + "/" + kPredictionsNpy)->sha256);
}

TEST_F(PublisherTest, GreedySelectionLeavesOutAFloorThatDoesNotHelp) {
  PredictionForm form;
  form.ensemble = EnsembleKind::kGreedy;
  ASSERT_TRUE(WritePredictionForm(state_, kJob, form).ok());
  const PublishedPrediction p =
      MustPublish(Request({PutMember(0, 1, true, 4, 0.9f), PutMember(1, 2, true, 4, 0.7f)}));
  EXPECT_EQ(p.ensemble, "greedy");
  EXPECT_EQ(p.floor_weight, 0);
  EXPECT_THAT(Csv(), HasSubstr(",no,0.8,0.2\n"));
  EXPECT_EQ(p.oof_score, 1);
}

TEST_F(PublisherTest, GreedySelectionGivesTheFloorItsShareWhereThatScoresBetter) {
  PredictionForm form;
  form.ensemble = EnsembleKind::kGreedy;
  ASSERT_TRUE(WritePredictionForm(state_, kJob, form).ok());
  PutFloor("logistic", 0.5f);
  PublishRequest request =
      Request({PutMember(0, 1, true, 3, 0.9f), PutMember(1, 2, true, 3, 0.9f)});
  // The model is confident and sometimes wrong: its log loss is best halfway to the floor's even
  // odds.
  request.metric = "logloss";
  const PublishedPrediction p = MustPublish(request);
  EXPECT_GT(p.floor_weight, 0.1);
  EXPECT_LT(p.floor_weight, 0.9);
  EXPECT_NEAR(p.members[0].weight + p.members[1].weight + p.floor_weight, 1, 1e-9);
  const double said = 0.9 * (1 - p.floor_weight) + 0.5 * p.floor_weight;
  const auto odds = ReadStandingPrediction(state_, kJob);
  ASSERT_TRUE(odds.ok());
  EXPECT_EQ(odds->floor_weight, p.floor_weight);
  // Three of four rows are right.
  EXPECT_NEAR(*p.oof_score, -(3 * std::log(said) + std::log(1 - said)) / 4, 1e-5);
}

}  // namespace
}  // namespace traind
