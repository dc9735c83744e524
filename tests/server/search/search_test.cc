#include "server/search/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "server/search/settings.h"

namespace traind {
namespace {

// A search with so many trials, of which the first has a point of its own.
Spec SpecOf(const std::string& method, size_t trials, Settings space) {
  Spec spec;
  spec.search = {method, std::move(space), 7};
  spec.trials.resize(trials);
  spec.trials[0].settings = std::make_shared<const Settings>();
  return spec;
}

const Settings kFew = {{"a", "int(1, 3)"}, {"b", "choice(x, y)"}};
const Settings kMany = {{"a", "uniform(0, 1)"}, {"train.epochs", "int(5, 50)"}};

size_t Different(const Spec& spec) {
  std::set<Settings> all;
  for (size_t t = 1; t < spec.trials.size(); ++t) {
    if (spec.trials[t].settings != nullptr) all.insert(*spec.trials[t].settings);
  }
  return all.size();
}

TEST(SearchTest, AGridHasEveryPointOnce) {
  Spec spec = SpecOf("grid", 20, kFew);
  ASSERT_TRUE(DrawAtAcceptance(spec).ok());
  EXPECT_EQ(spec.trials.size(), 7u) << "six points, and the spec's own settings";
  EXPECT_EQ(Different(spec), 6u);
  // The own settings are not tried twice.
  spec = SpecOf("grid", 20, kFew);
  spec.trials[0].settings = std::make_shared<const Settings>(Settings{{"a", "2"}, {"b", "y"}});
  ASSERT_TRUE(DrawAtAcceptance(spec).ok());
  EXPECT_EQ(spec.trials.size(), 6u);
  // With fewer trials they are spread over the grid.
  spec = SpecOf("grid", 4, kFew);
  ASSERT_TRUE(DrawAtAcceptance(spec).ok());
  EXPECT_EQ(Different(spec), 3u);
}

TEST(SearchTest, MoreRandomTrialsBeginWithThoseOfFewer) {
  Spec few = SpecOf("random", 6, kMany), more = SpecOf("random", 12, kMany);
  ASSERT_TRUE(DrawAtAcceptance(few).ok());
  ASSERT_TRUE(DrawAtAcceptance(more).ok());
  ASSERT_EQ(more.trials.size(), 12u);
  EXPECT_EQ(Different(more), 11u);
  for (size_t t = 1; t < 6; ++t) EXPECT_EQ(*few.trials[t].settings, *more.trials[t].settings);
  Spec other = SpecOf("random", 6, kMany);
  other.search.seed = 8;
  ASSERT_TRUE(DrawAtAcceptance(other).ok());
  EXPECT_NE(*few.trials[1].settings, *other.trials[1].settings);
}

TEST(SearchTest, ASmallSpaceHasNoMoreTrialsThanPoints) {
  Spec spec = SpecOf("random", 30, kFew);
  ASSERT_TRUE(DrawAtAcceptance(spec).ok());
  EXPECT_EQ(spec.trials.size(), 7u);
  EXPECT_EQ(Different(spec), 6u);
}

TEST(SearchTest, EpochsFollowFromSettings) {
  Spec spec = SpecOf("asha", 4, kMany);
  ASSERT_TRUE(DrawAtAcceptance(spec).ok());
  for (size_t t = 1; t < 4; ++t) {
    EXPECT_EQ(std::to_string(spec.trials[t].epochs), (*spec.trials[t].settings)[1].second);
  }
  Trial trees;
  TakeSettings(
      std::make_shared<const Settings>(Settings{{"model.lightgbm.early_stopping_round", "50"},
                                                {"model.lightgbm.num_iterations", "1000"}}),
      trees);
  EXPECT_EQ(trees.epochs, 100);
  EXPECT_EQ(trees.patience, 50);
}

// The trials of an input, with the scores of their folds.
TrialsInput Shown(const Spec& spec, size_t folds) {
  TrialsInput in;
  in.trials.resize(spec.trials.size());
  for (TrialView& trial : in.trials) trial.folds.resize(folds);
  return in;
}

TEST(SearchTest, SettingsOfTpeAreDrawnWhenATrialBegins) {
  Spec spec = SpecOf("tpe", 40, kMany);
  ASSERT_TRUE(DrawAtAcceptance(spec).ok());
  EXPECT_EQ(Different(spec), 0u);
  TrialsInput shown = Shown(spec, 2);
  for (TrialFold& fold : shown.trials[0].folds) fold = {TrialFold::kDone, 0.5};
  int near = 0;
  for (int t = 1; t < 40; ++t) {
    const auto at = static_cast<size_t>(t);
    const auto settings = DrawNext(spec, t, shown, 40);
    ASSERT_NE(settings, nullptr);
    EXPECT_EQ(*DrawNext(spec, t, shown, 40), *settings) << "also after a restart";
    TakeSettings(settings, spec.trials[at]);
    const double a = std::stod((*settings)[0].second);
    shown.trials[at].folds[0] = {TrialFold::kDone, 1 - std::abs(a - 0.25)};
    if (t >= 20) near += std::abs(a - 0.25) < 0.15;
  }
  EXPECT_GE(near, 10) << "of the last 20; at random it would be six";
  EXPECT_EQ(Different(spec), 39u);
}

// Fold 1 is easier than fold 0, which must not speak for the trials that have it.
TEST(SearchTest, TrialsWithDifferentFoldsAreComparedWithTheFirstTrial) {
  Spec spec = SpecOf("tpe", 22, {{"a", "uniform(0, 1)"}});
  TrialsInput shown = Shown(spec, 2);
  shown.trials[0].folds = {{TrialFold::kDone, 0.5}, {TrialFold::kDone, 0.9}};
  for (size_t t = 1; t < 21; ++t) {
    const bool good = t % 2 == 0;
    spec.trials[t].settings = std::make_shared<const Settings>(
        Settings{{"a", good ? std::to_string(0.2 + 0.001 * static_cast<double>(t))
                            : std::to_string(0.8 + 0.001 * static_cast<double>(t))}});
    // The bad ones have the easy fold.
    if (good) shown.trials[t].folds[0] = {TrialFold::kDone, 0.6};
    if (!good) shown.trials[t].folds[1] = {TrialFold::kDone, 0.8};
  }
  const auto settings = DrawNext(spec, 21, shown, 22);
  ASSERT_NE(settings, nullptr);
  EXPECT_LT(std::stod((*settings)[0].second), 0.5);
}

TEST(SearchTest, WhereTheSpaceIsUsedUpNothingIsDrawn) {
  Spec spec = SpecOf("tpe", 8, kFew);
  spec.trials[0].settings = std::make_shared<const Settings>(Settings{{"a", "1"}, {"b", "x"}});
  const TrialsInput shown = Shown(spec, 1);
  for (int t = 1; t < 6; ++t) {
    TakeSettings(DrawNext(spec, t, shown, 8), spec.trials[static_cast<size_t>(t)]);
  }
  EXPECT_EQ(Different(spec), 5u);
  EXPECT_EQ(DrawNext(spec, 6, shown, 8), nullptr);
}

}  // namespace
}  // namespace traind
