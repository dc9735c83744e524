#include "server/search/importance.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <cmath>

#include "server/search/settings.h"

namespace traind {
namespace {

// Trials at random places, with the loss of a function of them.
template <typename Loss>
std::vector<Tried> TrialsOf(const Space& space, int count, const Loss& loss) {
  std::vector<Tried> tried;
  for (int trial = 0; trial < count; ++trial) {
    Draw draw = DrawOf(5, trial, 0);
    Tried one;
    one.settings = DrawRandom(space, draw);
    one.loss = loss(one.settings);
    tried.push_back(std::move(one));
  }
  return tried;
}

TEST(ImportanceTest, TheParameterThatDecidesHasNearlyAllOfIt) {
  const Space space =
      *ParseSpace({{"a", "log(0.001, 1)"}, {"b", "uniform(0, 1)"}, {"c", "choice(x, y)"}});
  const auto by_a = Importances(space, TrialsOf(space, 60, [](const Settings& s) {
                                  return std::abs(std::log(std::stod(s[0].second)) + 3);
                                }));
  EXPECT_GT(*by_a[0], 0.8);
  EXPECT_LT(*by_a[1], 0.2);
  EXPECT_LT(*by_a[2], 0.2);
  const auto by_c = Importances(space, TrialsOf(space, 60, [](const Settings& s) {
                                  return (s[2].second == "x") + 0.1 * std::stod(s[1].second);
                                }));
  EXPECT_GT(*by_c[2], 0.6);
  EXPECT_GT(*by_c[2], 3 * *by_c[1]);
  EXPECT_LT(*by_c[0], 0.2);
}

// Of the variance of the losses themselves, one such trial would be nearly all.
TEST(ImportanceTest, AVeryBadTrialDoesNotHideTheRest) {
  const Space space = *ParseSpace({{"a", "uniform(0, 1)"}, {"b", "uniform(0, 1)"}});
  std::vector<Tried> tried =
      TrialsOf(space, 40, [](const Settings& s) { return std::stod(s[0].second); });
  tried[7].loss = 1e9;
  const auto shares = Importances(space, tried);
  EXPECT_GT(*shares[0], 0.7);
  EXPECT_LT(*shares[1], 0.2);
}

TEST(ImportanceTest, TooFewTrialsTellNothing) {
  const Space space = *ParseSpace({{"a", "uniform(0, 1)"}, {"b", "int(1, 9)"}});
  const auto loss = [](const Settings& s) { return std::stod(s[0].second); };
  std::vector<Tried> tried = TrialsOf(space, kLeastTrials, loss);
  EXPECT_TRUE(Importances(space, tried)[0].has_value());
  tried[0].running = true;
  EXPECT_FALSE(Importances(space, tried)[0].has_value());
  tried[0].running = false;
  tried[0].loss = HUGE_VAL;
  EXPECT_FALSE(Importances(space, tried)[0].has_value());
  tried[0].loss = 1;
  tried[0].settings.pop_back();
  EXPECT_TRUE(Importances(space, tried)[0].has_value());
  EXPECT_FALSE(Importances(space, tried)[1].has_value());
  for (Tried& trial : tried) trial.loss = 0.5;
  EXPECT_EQ(*Importances(space, tried)[0], 0) << "all are equally good";
}

}  // namespace
}  // namespace traind
