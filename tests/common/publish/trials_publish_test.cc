// Models of several trials in one answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "common/publish/prediction_form.h"
#include "common/publish/prediction_manifest.h"
#include "tests/common/publish/publisher_fixture.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TrialsPublishTest : public PublisherTest {
 protected:
  TrialsPublishTest() {
    PredictionForm form;
    form.ensemble = EnsembleKind::kGreedy;
    EXPECT_TRUE(WritePredictionForm(state_, kJob, form).ok());
  }

  Member PutTrial(int fold, int trial, int64_t attempt, int right, float no, bool complete = true) {
    Member member = PutMember(fold, attempt, complete, right, no);
    member.trial = trial;
    member.kind = trial == 0 ? "lightgbm" : "mlp";
    return member;
  }
  // All folds of a trial; Attempts are numbered from 10 x (trial + 1) on.
  std::vector<Member> PutAll(int trial, int right, float no) {
    std::vector<Member> members;
    for (int fold = 0; fold < kFolds; ++fold) {
      members.push_back(PutTrial(fold, trial, 10 * (trial + 1) + fold, right, no));
    }
    return members;
  }
  static std::vector<int> TrialsOf(const PublishedPrediction& p) {
    std::vector<int> trials;
    for (const Member& member : p.members) trials.push_back(member.trial);
    return trials;
  }
  static double SumOfWeights(const PublishedPrediction& p) {
    double sum = p.floor_weight;
    for (const Member& member : p.members) sum += member.weight;
    return sum;
  }
  static std::vector<Member> Both(std::vector<Member> a, const std::vector<Member>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
};

TEST_F(TrialsPublishTest, TheBetterTrialAnswersAndTrialZeroCountsForQuality) {
  const PublishedPrediction p = MustPublish(Request(Both(PutAll(0, 2, 0.9f), PutAll(1, 4, 0.25f))));
  EXPECT_THAT(TrialsOf(p), ElementsAre(1, 1, 1));
  EXPECT_EQ(p.quality, Quality::kFull);
  EXPECT_TRUE(p.comparable);
  EXPECT_EQ(p.oof_score, 1);
  EXPECT_NEAR(SumOfWeights(p), 1, 1e-12);
  EXPECT_THAT(Csv(), HasSubstr("x1,\"yes, a lot\",0.25,0.75\n"));
}

TEST_F(TrialsPublishTest, FoldsOfOtherTrialsAloneAreNotFull) {
  const PublishedPrediction p = MustPublish(Request(PutAll(1, 4, 0.25f)));
  EXPECT_EQ(p.members.size(), 3u);
  EXPECT_EQ(p.quality, Quality::kDegraded);
  EXPECT_TRUE(p.comparable);
}

TEST_F(TrialsPublishTest, AFoldWithoutAWeightedTrialIsAnsweredByItsBest) {
  // Trial 1 wins, but lacks fold 2.
  std::vector<Member> members = Both(PutAll(0, 2, 0.9f), PutAll(1, 4, 0.25f));
  members.pop_back();
  const PublishedPrediction p = MustPublish(Request(members));
  EXPECT_THAT(FoldsOf(p.members), ::testing::Contains(2));
  EXPECT_EQ(p.members.back().trial, 0);
  EXPECT_TRUE(p.comparable);
  EXPECT_NEAR(SumOfWeights(p), 1, 1e-12);
}

TEST_F(TrialsPublishTest, TheMeanOfTrialsIsTakenWhereItIsAskedFor) {
  PredictionForm form;
  form.ensemble = EnsembleKind::kMean;
  form.format = FileFormat::kNpy;  // so that the form is written
  ASSERT_TRUE(WritePredictionForm(state_, kJob, form).ok());
  const PublishedPrediction p = MustPublish(Request(Both(PutAll(0, 4, 0.9f), PutAll(1, 4, 0.5f))));
  ASSERT_EQ(p.members.size(), 6u);
  for (const Member& member : p.members) EXPECT_NEAR(member.weight, 1.0 / 6, 1e-12);
  EXPECT_THAT(Csv(), HasSubstr("x1,no,0.7,0.3\n"));
}

TEST_F(TrialsPublishTest, ModelsWithoutAWeightAreKeptForLaterAnswers) {
  // The Worker's first answer is by trial 1. Then it publishes again, and knows only of a seed of
  // it.
  MustPublish(Request(Both(PutAll(0, 2, 0.9f), PutAll(1, 4, 0.25f))));
  auto manifest = ReadStandingManifest(state_, kJob);
  ASSERT_TRUE(manifest.ok()) << manifest.status();
  ASSERT_EQ(manifest->idle.size(), 3u);
  EXPECT_EQ(manifest->idle[0].trial, 0);
  EXPECT_EQ(manifest->idle[0].kind, "lightgbm");
  Member seed = PutTrial(0, 1, 99, 4, 0.35f);
  seed.seed = 1;
  const PublishedPrediction p = MustPublish(Request({seed}));
  EXPECT_EQ(p.quality, Quality::kFull) << "the folds of trial 0 are known from the manifest";
  EXPECT_EQ(p.number, 2);
  EXPECT_THAT(TrialsOf(p), ElementsAre(1, 1, 1, 1));
}

TEST_F(TrialsPublishTest, WithOneTrialTheManifestAndTheAnswerAreAsWithoutTrials) {
  MustPublish(Request(PutAll(0, 4, 0.9f)));
  const std::string text = *ReadFile(InState(CurrentLink(kJob)) + "/" + kManifestFile);
  for (const char* key : {"idle", "temperature", "threshold", "quantiles", "powers", "weighed"}) {
    EXPECT_THAT(text, Not(HasSubstr(absl::StrCat("\"", key, "\"")))) << key;
  }
}

TEST_F(TrialsPublishTest, ADamagedModelIsReplacedByAnotherTrial) {
  std::vector<Member> members = Both(PutAll(0, 3, 0.9f), PutAll(1, 4, 0.25f));
  Put(members[3].test, "not what it was");
  const PublishedPrediction p = MustPublish(Request(members));
  EXPECT_THAT(FoldsOf(p.members), ElementsAre(0, 1, 1, 2, 2));
  EXPECT_THAT(TrialsOf(p), ElementsAre(0, 0, 1, 0, 1));
  EXPECT_GT(p.members[2].weight, p.members[1].weight) << "trial 1 is right on more rows";
  EXPECT_NEAR(p.members[0].weight, (1 - p.floor_weight) / 3, 1e-12);
  EXPECT_NEAR(SumOfWeights(p), 1, 1e-12);
}

TEST_F(TrialsPublishTest, TrialsThatScoreBelowTheFloorTogetherLeaveItTheAnswer) {
  const PublishedPrediction p = MustPublish(Request(Both(PutAll(0, 1, 0.9f), PutAll(1, 0, 0.9f))));
  EXPECT_THAT(p.members, IsEmpty());
  EXPECT_EQ(p.quality, Quality::kFloor);
  EXPECT_THAT(p.left_out, ElementsAre(0, 1, 2));
  EXPECT_EQ(p.left_out_floor, 0.5);
  ASSERT_TRUE(p.left_out_score.has_value());
  EXPECT_LT(*p.left_out_score, 0.5);
}

TEST_F(TrialsPublishTest, AWorseTrialDoesNotReplaceTheAnswer) {
  MustPublish(Request(PutAll(0, 4, 0.9f)));
  const PublishedPrediction p = MustPublish(Request(Both(PutAll(0, 4, 0.9f), PutAll(1, 1, 0.25f))));
  EXPECT_FALSE(p.changed);
  EXPECT_EQ(p.number, 1);
}

TEST_F(TrialsPublishTest, SeedsOfATrialShareItsWeight) {
  Member seed = PutTrial(0, 1, 99, 4, 0.35f);
  seed.seed = 1;
  std::vector<Member> members = Both(PutAll(0, 2, 0.9f), PutAll(1, 4, 0.25f));
  members.push_back(seed);
  const PublishedPrediction p = MustPublish(Request(members));
  ASSERT_EQ(p.members.size(), 4u);
  EXPECT_NEAR(p.members[0].weight, 1.0 / 6, 1e-12);
  EXPECT_NEAR(p.members[1].weight, 1.0 / 6, 1e-12);
  EXPECT_EQ(p.members[1].seed, 1);
  EXPECT_NEAR(p.members[2].weight, 1.0 / 3, 1e-12);
}

TEST_F(TrialsPublishTest, WhyASeedIsLeftOutIsTold) {
  std::vector<Member> members = PutAll(0, 4, 0.75f);
  Member seed = PutTrial(0, 0, 99, 1, 0.01f);
  seed.seed = 1;
  members.push_back(seed);
  const PublishedPrediction p = MustPublish(Request(members));
  ASSERT_EQ(p.worse.size(), 1u);
  EXPECT_EQ(p.worse[0].fold, 0);
  EXPECT_EQ(p.worse[0].seed, 1);
  EXPECT_GT(p.worse[0].without, p.worse[0].with);
  // Also where nothing is written anew.
  const PublishedPrediction again = MustPublish(Request(members));
  EXPECT_FALSE(again.changed);
  EXPECT_EQ(again.worse.size(), 1u);
}

TEST_F(TrialsPublishTest, WhatAdjustsAnAnswerIsReadBackFromTheManifest) {
  PredictionManifest manifest;
  manifest.job = kJob;
  manifest.prediction.number = 1;
  manifest.prediction.quality = Quality::kFull;
  manifest.prediction.at = kNow;
  manifest.prediction.tuned.temperature = 1.25;
  manifest.prediction.tuned.threshold = 0.4;
  manifest.prediction.quantiles = {{0.1, 0.9}, {{{1, 2.5}, {-1, 1, -2, 3}, true}, {}}};
  manifest.prediction.quantile_scores = {{0.5, 0.25}, {0.125, 0.875}};
  manifest.prediction.test_quantile_scores = {{0.75, 0.375}, {0.25, 0.9375}};
  const auto read = ParseManifest(EncodeManifest(manifest), "manifest.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->prediction.tuned, manifest.prediction.tuned);
  EXPECT_EQ(read->prediction.quantiles, manifest.prediction.quantiles);
  EXPECT_EQ(read->prediction.quantile_scores, manifest.prediction.quantile_scores);
  EXPECT_EQ(read->prediction.test_quantile_scores, manifest.prediction.test_quantile_scores);
  std::string wrong = EncodeManifest(manifest);
  wrong.replace(wrong.find("1.25"), 4, "-1.0");
  EXPECT_EQ(ParseManifest(wrong, "manifest.json").status().code(), absl::StatusCode::kDataLoss);
  wrong = EncodeManifest(manifest);
  wrong.replace(wrong.find("0.9375"), 6, "\"many\"");
  EXPECT_EQ(ParseManifest(wrong, "manifest.json").status().code(), absl::StatusCode::kDataLoss);
  manifest.prediction.tuned = {1, {}, {{-1, 0.25}, {3, 0.875}}};
  manifest.prediction.weighed_score = 0.5;
  const auto layer = ParseManifest(EncodeManifest(manifest), "manifest.json");
  ASSERT_TRUE(layer.ok()) << layer.status();
  EXPECT_EQ(layer->prediction.tuned, manifest.prediction.tuned);
  EXPECT_EQ(layer->prediction.weighed_score, 0.5);
  wrong = EncodeManifest(manifest);
  wrong.replace(wrong.find("0.875"), 5, "-0.87");
  EXPECT_EQ(ParseManifest(wrong, "manifest.json").status().code(), absl::StatusCode::kDataLoss);
  wrong = EncodeManifest(manifest);
  wrong.replace(wrong.find("2.5"), 3, "0.5");  // places ascend
  EXPECT_EQ(ParseManifest(wrong, "manifest.json").status().code(), absl::StatusCode::kDataLoss);
}

// A Job of many rows with two trials that know of the label from sources of their own.
class SecondLayerPublishTest : public TrialsPublishTest {
 protected:
  static constexpr int kManyRows = 3600;
  SecondLayerPublishTest() {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::uniform_real_distribution<float> uniform;
    std::string train = "a,y\n", test = "id,a,y\n";
    std::vector<int16_t> folds;
    for (int row = 0; row < kManyRows; ++row) {
      float logit = 0;
      for (std::vector<float>& of_trial : yes_) {
        of_trial.push_back(2 * normal(random));
        logit += of_trial.back();
      }
      const bool yes = uniform(random) < 1 / (1 + std::exp(-logit));
      absl::StrAppend(&train, row, ",", Label(yes ? 1 : 0), "\n");
      folds.push_back(static_cast<int16_t>(row % kFolds));
    }
    for (int i = 0; i < kTestRows; ++i) absl::StrAppend(&test, "x", i, ",", i, ",", Label(i), "\n");
    MakeTable(train, test);
    EXPECT_TRUE(WriteNpy(InState(FoldsPath(kJob)), {kManyRows}, folds).ok());
    Floor floor;
    floor.model = "prior";
    floor.score = 0.7;
    floor.oof.shape = {kManyRows, 2};
    floor.oof.values.assign(2 * kManyRows, 0.5f);
    floor.test.shape = {kTestRows, 2};
    floor.test.values.assign(2 * kTestRows, 0.5f);
    EXPECT_TRUE(WriteFloor(state_, kJob, floor, [] { return absl::OkStatus(); }).ok());
  }
  // On the test rows trial 0 says 0.8 for "no", trial 1 0.5.
  Member Put(int fold, int trial) {
    Member member = PutTrial(fold, trial, 10 * (trial + 1) + fold, 4, trial == 0 ? 0.8f : 0.5f);
    std::vector<float> oof;
    for (int row = fold; row < kManyRows; row += kFolds) {
      const float yes = 1 / (1 + std::exp(-yes_[trial][static_cast<size_t>(row)]));
      Add(oof, 1 - yes);
    }
    member.oof_sha256 = PublisherTest::Put(member.oof, EncodeNpy({kManyRows / kFolds, 2}, oof));
    return member;
  }

 private:
  std::vector<float> yes_[2];  // the logarithms of the odds
};

TEST_F(SecondLayerPublishTest, ItJoinsTheTrialsOutOfFoldAndOnTheTestRows) {
  PublishRequest request = Request();
  request.metric = "logloss";
  for (int fold = 0; fold < kFolds; ++fold) {
    for (const int trial : {0, 1}) request.members.push_back(Put(fold, trial));
  }
  const PublishedPrediction p = MustPublish(request);
  ASSERT_EQ(p.tuned.powers.size(), 2u);
  EXPECT_EQ(p.tuned.temperature, 1);
  EXPECT_NEAR(p.tuned.powers[0].exponent, 1, 0.3);
  ASSERT_TRUE(p.oof_score.has_value() && p.weighed_score.has_value());
  EXPECT_LT(*p.oof_score, 0.97 * *p.weighed_score);
  const double odds = std::pow(4, p.tuned.powers[0].exponent);
  const std::string csv = Csv();
  const size_t at = csv.find("x1,no,") + 6;
  EXPECT_NEAR(std::stod(csv.substr(at)), odds / (1 + odds), 1e-5) << csv;
  EXPECT_NEAR(SumOfWeights(p), 1, 1e-12);
  // The same models again change nothing, also if the Worker knows of none of them any more.
  EXPECT_FALSE(MustPublish(request).changed);
  request.members.clear();
  const PublishedPrediction again = MustPublish(request);
  EXPECT_FALSE(again.changed);
  EXPECT_EQ(again.tuned, p.tuned);
  EXPECT_EQ(again.weighed_score, p.weighed_score);
}

}  // namespace
}  // namespace traind
