// Which folds of which trials use the time that trial 0 leaves.
#include "server/plan/trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Trial 0 has three folds of 1 s each with an accuracy of 0.9; the others have not begun.
class TrialsTest : public ::testing::Test {
 protected:
  TrialsTest() {
    for (const char* kind : {"lightgbm", "xgboost", "mlp"}) {
      TrialView& trial = in_.trials.emplace_back();
      trial.kind = kind;
      trial.folds.resize(3);
    }
    for (TrialFold& fold : in_.trials[0].folds) fold = {TrialFold::kDone, 0.9};
    in_.trials[0].fold_s = 1;
    in_.trials[0].answers = true;
    in_.left_s = 100;
    in_.idle = 1;
  }
  std::vector<std::pair<int, int>> Starts() const {
    std::vector<std::pair<int, int>> starts;
    for (const NextFold& next : ChooseTrials(in_).start) starts.emplace_back(next.trial, next.fold);
    return starts;
  }
  using Fold = std::pair<int, int>;

  TrialsInput in_;
};

TEST_F(TrialsTest, BeginInOrder) {
  EXPECT_THAT(Starts(), ElementsAre(Fold(1, 0)));
  in_.idle = 4;
  EXPECT_THAT(Starts(), ElementsAre(Fold(1, 0), Fold(1, 1), Fold(1, 2), Fold(2, 0)));
  in_.idle = 0;
  EXPECT_THAT(Starts(), IsEmpty());
}

TEST_F(TrialsTest, ATrialThatHasBegunIsCompletedFirst) {
  in_.trials[2].folds[1] = {TrialFold::kDone, 0.9};
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0)));
  in_.trials[2].folds[0].state = TrialFold::kBusy;
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 2)));
}

TEST_F(TrialsTest, AFoldStartsOnlyIfItFits) {
  in_.left_s = 3.4;  // a network takes five times as long as LightGBM, and 0.7 of it is of use
  in_.trials[1].folds.assign(3, {TrialFold::kDone, 0.9});
  in_.trials[1].fold_s = 1.5;
  EXPECT_THAT(Starts(), IsEmpty());
  EXPECT_DOUBLE_EQ(ChooseTrials(in_).least_s, 3.5);
  in_.left_s = 3.6;
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0)));
  EXPECT_EQ(ChooseTrials(in_).least_s, 0);
  in_.trials[2].folds[0] = {TrialFold::kDone, 0.9};
  in_.trials[2].fold_s = 5.5;
  EXPECT_THAT(Starts(), IsEmpty()) << "its own fold tells more than a guess";
}

TEST_F(TrialsTest, APartOfAFoldOfTreesIsOfUse) {
  in_.left_s = 0.31;
  EXPECT_THAT(Starts(), ElementsAre(Fold(1, 0)));
  in_.left_s = 0.29;
  EXPECT_THAT(Starts(), IsEmpty());
  in_.left_s = 0;
  in_.trials[0].fold_s = 0;
  EXPECT_THAT(Starts(), IsEmpty()) << "training is over";
}

TEST_F(TrialsTest, OneThatFitsAsAWholeGoesBeforeOneThatDoesNot) {
  in_.trials[1].kind = "mlp";
  in_.trials[2].kind = "lightgbm";
  in_.left_s = 14;
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0)));
  in_.left_s = 15;
  EXPECT_THAT(Starts(), ElementsAre(Fold(1, 0)));
}

TEST_F(TrialsTest, WhatFitsByHalfGoesBeforeWhatHardlyFits) {
  in_.trials[1].folds[0] = {TrialFold::kDone, 0.9};
  in_.trials[1].fold_s = 4;
  in_.left_s = 1;
  EXPECT_THAT(Starts(), ElementsAre(Fold(1, 1))) << "better than a slot that does nothing";
  in_.trials[2].kind = "lightgbm";
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0)));
}

TEST_F(TrialsTest, AClearlyWorseOneGetsNoMoreFolds) {
  in_.trials[1].folds[0] = {TrialFold::kDone, 0.885};
  EXPECT_THAT(ChooseTrials(in_).worse, IsEmpty());
  in_.trials[1].folds[0].score = 0.87;
  EXPECT_THAT(ChooseTrials(in_).worse, ElementsAre(1));
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0)));
  in_.fold_rows = 25;  // 0.06 is one standard error
  EXPECT_THAT(ChooseTrials(in_).worse, IsEmpty()) << "so few rows tell little";
  in_.trials[1].folds[0].score = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(ChooseTrials(in_).worse, ElementsAre(1));
}

TEST_F(TrialsTest, ErrorsAreComparedOnTheSameFolds) {
  in_.higher_is_better = false;
  in_.trials[0].folds[0].score = 20;
  in_.trials[0].folds[1].score = 10;
  in_.trials[1].folds[0] = {TrialFold::kDone, 21};
  EXPECT_THAT(ChooseTrials(in_).worse, IsEmpty());
  in_.trials[1].folds[0].score = 25;
  EXPECT_THAT(ChooseTrials(in_).worse, ElementsAre(1));
}

TEST_F(TrialsTest, WhatFailedIsNotTriedOnOtherFolds) {
  in_.trials[1].folds[0].state = TrialFold::kFailed;
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0)));
}

TEST_F(TrialsTest, EightWholeTrialsWithoutGainAreEnough) {
  TrialView done = in_.trials[1];
  done.folds.assign(3, {TrialFold::kDone, 0.9});
  TrialView open = in_.trials[1];
  in_.trials.assign({in_.trials[0], done, done, done, done, done, done, done, open});
  in_.answer_known = true;
  EXPECT_FALSE(ChooseTrials(in_).no_gain);
  in_.trials.insert(in_.trials.begin() + 1, done);
  EXPECT_TRUE(ChooseTrials(in_).no_gain);
  EXPECT_THAT(Starts(), IsEmpty());
  in_.answer_known = false;
  EXPECT_FALSE(ChooseTrials(in_).no_gain) << "the last ones may answer yet";
  in_.answer_known = true;
  in_.trials[3].answers = true;
  EXPECT_FALSE(ChooseTrials(in_).no_gain);
}

}  // namespace
}  // namespace traind
