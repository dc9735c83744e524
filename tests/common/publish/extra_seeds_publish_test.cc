// Several models of a fold (train.seeds) in one answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/publish/prediction_form.h"
#include "tests/common/publish/publisher_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ExtraSeedsPublishTest : public PublisherTest {
 protected:
  Member PutSeed(int fold, int seed, int64_t attempt, bool complete, int right, float no) {
    Member member = PutMember(fold, attempt, complete, right, no);
    member.seed = seed;
    return member;
  }
  static std::vector<int64_t> AttemptsOf(const PublishedPrediction& p) {
    std::vector<int64_t> attempts;
    for (const Member& member : p.members) attempts.push_back(member.attempt);
    return attempts;
  }
  static double SumOfWeights(const PublishedPrediction& p) {
    double sum = p.floor_weight;
    for (const Member& member : p.members) sum += member.weight;
    return sum;
  }
};

TEST_F(ExtraSeedsPublishTest, ModelsOfAFoldAreAveragedBeforeFoldsAre) {
  const PublishedPrediction p =
      MustPublish(Request({PutSeed(0, 0, 1, true, 4, 0.9f), PutSeed(0, 1, 2, true, 4, 0.5f),
                           PutSeed(1, 0, 3, true, 4, 0.1f)}));
  // (0.9 + 0.5) / 2 and 0.1, halves.
  EXPECT_THAT(Csv(), HasSubstr("x1,\"yes, a lot\",0.4,0.6\n"));
  EXPECT_THAT(AttemptsOf(p), ElementsAre(1, 2, 3));
  EXPECT_DOUBLE_EQ(p.members[0].weight, 0.25);
  EXPECT_DOUBLE_EQ(p.members[1].weight, 0.25);
  EXPECT_DOUBLE_EQ(p.members[2].weight, 0.5);
  EXPECT_EQ(p.members[1].seed, 1);
}

TEST_F(ExtraSeedsPublishTest, TheManifestListsEachModelAndWeightsAddToOne) {
  MustPublish(Request({PutSeed(0, 0, 1, true, 4, 0.9f), PutSeed(0, 1, 2, true, 4, 0.5f),
                       PutSeed(0, 2, 4, true, 4, 0.5f), PutSeed(1, 0, 3, true, 4, 0.1f)}));
  const auto standing = ReadStandingPrediction(state_, kJob);
  ASSERT_TRUE(standing.ok()) << standing.status();
  ASSERT_EQ(standing->members.size(), 4u);
  EXPECT_THAT(FoldsOf(standing->members), ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(standing->members[2].seed, 2);
  EXPECT_NEAR(SumOfWeights(*standing), 1, 1e-12);
}

TEST_F(ExtraSeedsPublishTest, ASeedThatMakesItsFoldWorseIsLeftOut) {
  // Right on all four rows, and so sure of three wrong ones that the mean is wrong there.
  Member first = PutSeed(0, 0, 1, true, 4, 0.75f);
  const PublishedPrediction p = MustPublish(Request({first, PutSeed(0, 1, 2, true, 1, 0.01f)}));
  // Evens on three rows count as "no": two of them are right by that.
  EXPECT_THAT(AttemptsOf(p), ElementsAre(1));
  EXPECT_DOUBLE_EQ(p.members[0].weight, 1);
  EXPECT_THAT(Csv(), HasSubstr("x1,no,0.75,0.25\n"));
}

TEST_F(ExtraSeedsPublishTest, ALaterSeedIsJudgedWithoutTheOneThatWasLeftOut) {
  const PublishedPrediction p =
      MustPublish(Request({PutSeed(0, 0, 1, true, 4, 0.75f), PutSeed(0, 1, 2, true, 1, 0.01f),
                           PutSeed(0, 2, 3, true, 4, 0.25f)}));
  EXPECT_THAT(AttemptsOf(p), ElementsAre(1, 3));
  EXPECT_THAT(Csv(), HasSubstr("x1,no,0.5,0.5\n"));
}

TEST_F(ExtraSeedsPublishTest, FullIsDecidedByTheFirstModels) {
  const Member a = PutSeed(0, 0, 1, true, 4, 0.5f), b = PutSeed(1, 0, 2, true, 4, 0.5f),
               c = PutSeed(2, 0, 3, true, 4, 0.5f);
  const PublishedPrediction p = MustPublish(Request({a, b, c, PutSeed(0, 1, 4, false, 4, 0.5f)}));
  EXPECT_EQ(p.quality, Quality::kFull);
  EXPECT_EQ(p.members.size(), 4u);
}

TEST_F(ExtraSeedsPublishTest, AnExtraSeedDoesNotCompleteItsFold) {
  const Member a = PutSeed(0, 0, 1, true, 4, 0.5f), b = PutSeed(1, 0, 2, true, 4, 0.5f);
  const PublishedPrediction p = MustPublish(
      Request({a, b, PutSeed(2, 0, 3, false, 4, 0.5f), PutSeed(2, 1, 4, true, 4, 0.5f)}));
  EXPECT_EQ(p.quality, Quality::kDegraded);
  EXPECT_TRUE(p.comparable);
}

TEST_F(ExtraSeedsPublishTest, AFoldWhoseFirstModelFailedIsAnsweredByAnExtraSeed) {
  const PublishedPrediction p =
      MustPublish(Request({PutSeed(0, 0, 1, true, 4, 0.9f), PutSeed(1, 1, 2, true, 4, 0.5f)}));
  EXPECT_THAT(FoldsOf(p.members), ElementsAre(0, 1));
  EXPECT_EQ(p.quality, Quality::kDegraded);
}

TEST_F(ExtraSeedsPublishTest, ModelsOfTheStandingPredictionStay) {
  const Member first = PutSeed(0, 0, 1, true, 4, 0.75f);
  MustPublish(Request({first, PutSeed(0, 1, 2, true, 4, 0.25f)}));
  // Another process that knows of a third model alone.
  const PublishedPrediction p = MustPublish(Request({PutSeed(0, 2, 3, true, 4, 0.5f)}));
  EXPECT_THAT(AttemptsOf(p), ElementsAre(1, 2, 3));
  EXPECT_EQ(p.number, 2);
}

TEST_F(ExtraSeedsPublishTest, ADamagedModelIsLeftOutOfItsFold) {
  const Member first = PutSeed(0, 0, 1, true, 4, 0.75f), second = PutSeed(0, 1, 2, true, 4, 0.25f);
  Put(second.test, "not what it was");
  const PublishedPrediction p = MustPublish(Request({first, second}));
  EXPECT_THAT(AttemptsOf(p), ElementsAre(1));
}

TEST_F(ExtraSeedsPublishTest, WeightsByScoreAreOfFoldsAndSharedByTheirModels) {
  PredictionForm form;
  form.ensemble = EnsembleKind::kWeighted;
  ASSERT_TRUE(WritePredictionForm(state_, kJob, form).ok());
  // Errors of 0.5 and 0.25: 1 to 2.
  const PublishedPrediction p =
      MustPublish(Request({PutSeed(0, 0, 1, true, 2, 0.9f), PutSeed(1, 0, 2, true, 3, 0.6f),
                           PutSeed(1, 1, 3, true, 3, 0.6f)}));
  ASSERT_EQ(p.members.size(), 3u);
  EXPECT_NEAR(p.members[0].weight, 1.0 / 3, 1e-9);
  EXPECT_NEAR(p.members[1].weight, 1.0 / 3, 1e-9);
  EXPECT_NEAR(p.members[2].weight, 1.0 / 3, 1e-9);
  EXPECT_NEAR(SumOfWeights(p), 1, 1e-12);
}

TEST_F(ExtraSeedsPublishTest, AnIncompleteFoldBelowTheFloorGoesWithAllItsModels) {
  const PublishedPrediction p =
      MustPublish(Request({PutSeed(0, 0, 1, true, 4, 0.75f), PutSeed(1, 0, 2, false, 1, 0.01f),
                           PutSeed(1, 1, 3, false, 1, 0.01f)}));
  EXPECT_THAT(AttemptsOf(p), ElementsAre(1));
  EXPECT_THAT(p.left_out, ElementsAre(1));
}

}  // namespace
}  // namespace traind
