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
  in_.gangs = 2;     // which train two of the three folds at once
  in_.left_s = 1.3;  // a network takes twice as long as LightGBM, and 0.7 of it is of use
  in_.trials[1].folds.assign(3, {TrialFold::kDone, 0.9});
  in_.trials[1].fold_s = 1.5;
  EXPECT_THAT(Starts(), IsEmpty());
  EXPECT_DOUBLE_EQ(ChooseTrials(in_).least_s, 1.4);
  in_.left_s = 1.5;
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0)));
  EXPECT_EQ(ChooseTrials(in_).least_s, 0);
  in_.trials[2].folds[0] = {TrialFold::kDone, 0.9};
  in_.trials[2].fold_s = 2.5;
  EXPECT_THAT(Starts(), IsEmpty()) << "its own fold tells more than a guess";
}

TEST_F(TrialsTest, NoneBeginsThatCannotHaveHalfOfTheFolds) {
  in_.trials[1].folds.assign(3, {TrialFold::kDone, 0.9});
  in_.left_s = 3.3;  // two folds of 2 s, the last one to 0.7
  EXPECT_THAT(Starts(), IsEmpty());
  EXPECT_DOUBLE_EQ(ChooseTrials(in_).least_s, 3.4);
  in_.left_s = 3.5;
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0)));
  in_.left_s = 1.5;
  in_.trials[2].folds[1] = {TrialFold::kBusy};
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0))) << "one more is half";
  in_.trials[2].folds[1] = {TrialFold::kOpen};
  in_.searches = true;
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0))) << "each fold tells a search";
}

TEST_F(TrialsTest, ClassesAndColumnsMakeTreesSlower) {
  in_.trials[1].folds.assign(3, {TrialFold::kDone, 0.9});
  in_.trials[1].fold_s = 1.5;
  in_.left_s = 0.1;
  const auto least = [this] { return ChooseTrials(in_).least_s; };
  EXPECT_DOUBLE_EQ(least(), 3.4);
  in_.classes = 8;
  EXPECT_DOUBLE_EQ(least(), 1.7);
  in_.columns = 80;
  EXPECT_DOUBLE_EQ(least(), 0.425);
}

TEST_F(TrialsTest, SettingsThatWorkLongerAreExpectedToTakeLonger) {
  in_.trials[1].folds.assign(3, {TrialFold::kDone, 0.9});
  in_.trials[1].fold_s = 1.5;
  in_.left_s = 0.1;
  const auto least = [this] { return ChooseTrials(in_).least_s; };
  in_.trials[0].work = 0.5;
  EXPECT_DOUBLE_EQ(least(), 6.8) << "the first has half of the usual rounds";
  in_.trials[2].work = 2;
  EXPECT_DOUBLE_EQ(least(), 13.6);
  TrialView plain = in_.trials[2];
  plain.folds.assign(3, {TrialFold::kDone, 0.9});
  plain.work = 1;
  plain.fold_s = 4;
  in_.trials.push_back(plain);
  EXPECT_DOUBLE_EQ(least(), 1.7 * 8) << "another of its kind was measured";
}

TEST_F(TrialsTest, APartOfAFoldOfTreesIsOfUse) {
  in_.gangs = 2;
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
  in_.left_s = 5;
  EXPECT_THAT(Starts(), ElementsAre(Fold(2, 0)));
  in_.left_s = 6;
  EXPECT_THAT(Starts(), ElementsAre(Fold(1, 0)));
}

TEST_F(TrialsTest, WhatFitsByHalfGoesBeforeWhatHardlyFits) {
  in_.trials[1].folds[0] = {TrialFold::kDone, 0.9};
  in_.trials[1].fold_s = 4;
  in_.gangs = 2;
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

TEST_F(TrialsTest, AllHaveBegunWhenNoFoldIsOpenThatMayStart) {
  in_.idle = 2;
  EXPECT_FALSE(ChooseTrials(in_).all_begun);
  in_.trials[1].folds.assign(3, {TrialFold::kBusy, 0});
  in_.trials[2].folds[0] = {TrialFold::kDone, 0.9};
  EXPECT_FALSE(ChooseTrials(in_).all_begun);
  in_.left_s = 0.1;
  EXPECT_FALSE(ChooseTrials(in_).all_begun) << "its other folds only lack the time";
  in_.trials[2].folds[0].score = 0.5;
  EXPECT_TRUE(ChooseTrials(in_).all_begun) << "a worse one gets no more";
}

// ---- Of a search --------------------------------------------------------------

TEST_F(TrialsTest, ASearchTriesAllTrials) {
  TrialView done = in_.trials[1];
  done.folds.assign(3, {TrialFold::kDone, 0.9});
  in_.trials.insert(in_.trials.begin() + 1, kTrialsWithoutGain, done);
  in_.answer_known = true;
  EXPECT_TRUE(ChooseTrials(in_).no_gain);
  in_.searches = true;
  EXPECT_FALSE(ChooseTrials(in_).no_gain);
  EXPECT_THAT(Starts(), ElementsAre(Fold(kTrialsWithoutGain + 1, 0)));
}

// Ten trials of one kind whose first folds have these scores; trial 0 has 0.9 on all folds.
TrialsInput WithRungs(const std::vector<double>& first_scores) {
  TrialsInput in;
  in.rungs = in.searches = true;
  in.left_s = 100;
  in.idle = 1;
  in.trials.resize(10);
  for (TrialView& trial : in.trials) {
    trial.kind = "mlp";
    trial.folds.resize(5);
  }
  in.trials[0].folds.assign(5, {TrialFold::kDone, 0.9});
  in.trials[0].fold_s = 1;
  for (size_t i = 0; i < first_scores.size(); ++i) {
    in.trials[i + 1].folds[0] = {TrialFold::kDone, first_scores[i]};
  }
  return in;
}

TEST(RungsTest, ATrialGoesOnIfItIsAmongTheBestThird) {
  TrialsInput in = WithRungs({});
  in.idle = 3;
  std::vector<NextFold> start = ChooseTrials(in).start;
  ASSERT_EQ(start.size(), 3u) << "one fold each";
  EXPECT_EQ(start[2].trial, 3);
  EXPECT_EQ(start[2].fold, 0);
  // The best of two is one: trial 0.
  in = WithRungs({0.89});
  EXPECT_EQ(ChooseTrials(in).start[0].trial, 2);
  in = WithRungs({0.91});
  start = ChooseTrials(in).start;
  EXPECT_EQ(start[0].trial, 1);
  EXPECT_EQ(start[0].fold, 1);
  // The best two of six go on, also where they waited before.
  in = WithRungs({0.89, 0.88, 0.88, 0.88});
  EXPECT_EQ(ChooseTrials(in).start[0].trial, 5);
  in = WithRungs({0.89, 0.88, 0.88, 0.88, 0.88});
  EXPECT_EQ(ChooseTrials(in).start[0].trial, 1);
  EXPECT_EQ(ChooseTrials(in).start[0].fold, 1);
}

TEST(RungsTest, TheNextRungIsAtThreeFolds) {
  TrialsInput in = WithRungs({0.95, 0.8, 0.8});
  in.idle = 5;
  const std::vector<NextFold> start = ChooseTrials(in).start;
  ASSERT_EQ(start.size(), 5u);
  EXPECT_EQ(start[0].fold, 1);
  EXPECT_EQ(start[1].fold, 2);
  EXPECT_EQ(start[2].trial, 4) << "two more folds, not four";
  // On three folds it is worse than trial 0.
  in.trials[1].folds[1] = in.trials[1].folds[2] = {TrialFold::kDone, 0.85};
  EXPECT_EQ(ChooseTrials(in).start[0].trial, 4);
  in.trials[1].folds[1] = in.trials[1].folds[2] = {TrialFold::kDone, 0.95};
  EXPECT_EQ(ChooseTrials(in).start[0].fold, 3);
}

TEST(RungsTest, SlotsWithNothingElseToDoRunAheadOfARungThatIsNotDecided) {
  TrialsInput in = WithRungs({0.89});
  in.trials.resize(3);
  in.trials[2].folds[0].state = TrialFold::kBusy;
  in.idle = 3;
  std::vector<NextFold> start = ChooseTrials(in).start;
  ASSERT_EQ(start.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(start[i].trial, 2) << "trial 1 is not among the best";
    EXPECT_EQ(start[i].fold, static_cast<int>(i) + 1);
  }
  // Another trial that can begin goes before.
  in.trials.resize(4, in.trials[1]);
  in.trials[3].folds.assign(5, {});
  start = ChooseTrials(in).start;
  ASSERT_EQ(start.size(), 3u);
  EXPECT_EQ(start[0].trial, 3);
  EXPECT_EQ(start[1].trial, 2);
  // Once the rung is decided, a trial that does not go on gets no more.
  in.trials.resize(3);
  in.trials[2].folds[0] = {TrialFold::kDone, 0.89};
  EXPECT_THAT(ChooseTrials(in).start, IsEmpty());
}

TEST(RungsTest, TheSearchEndsWhenNoTrialGoesOn) {
  const TrialsInput in = WithRungs(std::vector<double>(9, 0.89));
  std::vector<NextFold> start = ChooseTrials(in).start;
  ASSERT_EQ(start.size(), 1u);
  TrialsInput ended = in;
  for (size_t t = 1; t < 3; ++t) ended.trials[t].folds.assign(5, {TrialFold::kDone, 0.89});
  EXPECT_THAT(ChooseTrials(ended).start, IsEmpty());
}

TEST(TrialsThatFitTest, TheirNumberIsHalvedUntilTheTimeSuffices) {
  TrialsInput in;
  in.searches = true;
  in.trials.resize(20);
  in.trials[0].folds.resize(5);
  in.trials[0].fold_s = 1;
  in.left_s = 95;
  EXPECT_EQ(TrialsThatFit(in), 20);
  in.left_s = 94;
  EXPECT_EQ(TrialsThatFit(in), 10);
  in.left_s = 44;
  EXPECT_EQ(TrialsThatFit(in), 5);
  in.gangs = 5;
  EXPECT_EQ(TrialsThatFit(in), 20);
  in.gangs = 1;
  in.rungs = true;  // two and a third folds each
  EXPECT_EQ(TrialsThatFit(in), 10);
  in.left_s = 0;
  EXPECT_EQ(TrialsThatFit(in), 1);
  in.left_s = std::numeric_limits<double>::infinity();
  EXPECT_EQ(TrialsThatFit(in), 20);
}

}  // namespace
}  // namespace traind
