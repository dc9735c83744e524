#include "common/publish/trial_selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <list>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace traind {
namespace {

using ::testing::ElementsAre;

constexpr int kFolds = 5;

struct Wanted {
  size_t rows = 1000;
  std::vector<double> errors;  // of the trials' own
  double shared = 0.5;
  double floor_error = 2;
  unsigned seed = 1;
};

// A table whose target is known, and trials that predict it with errors of their own and one that
// all share.
class Regression {
 public:
  explicit Regression(const Wanted& wanted) : random_(wanted.seed) {
    std::normal_distribution<double> normal;
    for (int fold = 0; fold < kFolds; ++fold) {
      FoldOfTrials& to = folds_.emplace_back();
      std::vector<double> shared;
      for (size_t i = 0; i < wanted.rows / kFolds; ++i) {
        to.targets.push_back(static_cast<float>(normal(random_)));
        shared.push_back(wanted.shared * normal(random_));
      }
      for (const double error : wanted.errors) to.trials.push_back(Put(to.targets, shared, error));
      to.floor = Put(to.targets, shared, wanted.floor_error);
    }
  }

  absl::Span<const float> Put(const std::vector<float>& targets, const std::vector<double>& shared,
                              double error) {
    std::normal_distribution<double> normal;
    std::vector<float>& values = values_.emplace_back();
    for (size_t i = 0; i < targets.size(); ++i) {
      values.push_back(static_cast<float>(targets[i] + shared[i] + error * normal(random_)));
    }
    return values;
  }

  TrialWeights Select() const { return SelectTrials(*MetricByName("rmse"), 1, folds_, 0); }

  // The true error of an answer by the weights on a test row, from the errors that made the rows.
  static double TrueError(const Wanted& wanted, const TrialWeights& weights) {
    double sum = wanted.shared * wanted.shared + std::pow(weights.floor * wanted.floor_error, 2);
    for (size_t k = 0; k < wanted.errors.size(); ++k) {
      sum += std::pow(weights.trials[k] * wanted.errors[k], 2);
    }
    return std::sqrt(sum);
  }

  std::vector<FoldOfTrials> folds_;

 private:
  std::mt19937 random_;
  std::list<std::vector<float>> values_;
};

double Sum(const TrialWeights& weights) {
  return std::accumulate(weights.trials.begin(), weights.trials.end(), weights.floor);
}

TEST(TrialSelectionTest, WeightsSumToOneAndTheBestTrialsHaveThem) {
  const TrialWeights weights = Regression({6000, {1.0, 0.5, 3.0, 0.5}}).Select();
  EXPECT_NEAR(Sum(weights), 1, 1e-12);
  EXPECT_NEAR(weights.trials[1], 0.4, 0.15);
  EXPECT_NEAR(weights.trials[3], 0.4, 0.15);
  EXPECT_EQ(weights.trials[2], 0) << "an error six times as large cannot help";
  EXPECT_LT(weights.floor, 0.1);
}

TEST(TrialSelectionTest, TheSameInputGivesTheSameWeights) {
  const Regression trials({500, {1.0, 0.9, 1.1, 0.8}});
  const TrialWeights a = trials.Select(), b = trials.Select();
  EXPECT_EQ(a.trials, b.trials);
  EXPECT_EQ(a.floor, b.floor);
}

TEST(TrialSelectionTest, ATrialThatLacksAFoldIsJudgedWhereItIs) {
  Regression trials({6000, {1.0, 0.4}});
  trials.folds_[0].trials[1] = {};
  const TrialWeights weights = trials.Select();
  EXPECT_GT(weights.trials[1], 0.5);
  EXPECT_GT(weights.trials[0], 0) << "the first choice has all folds";
}

TEST(TrialSelectionTest, ATrialWithLessThanHalfOfTheFoldsWaits) {
  Regression trials({6000, {1.0, 0.2}});
  for (const size_t fold : {0, 1, 2}) trials.folds_[fold].trials[1] = {};
  EXPECT_EQ(trials.Select().trials[1], 0);
  Regression with_half({6000, {1.0, 0.2}});
  for (const size_t fold : {0, 1}) with_half.folds_[fold].trials[1] = {};
  EXPECT_GT(with_half.Select().trials[1], 0.3);
}

TEST(TrialSelectionTest, TheFloorHasAWeightWhereItHelps) {
  Wanted wanted{6000, {1.0, 1.0}};
  wanted.floor_error = 1;
  EXPECT_NEAR(Regression(wanted).Select().floor, 1.0 / 3, 0.12);
}

TEST(TrialSelectionTest, WithoutAFloorItHasNoWeight) {
  Regression trials({1000, {1.0, 0.5}});
  for (FoldOfTrials& fold : trials.folds_) fold.floor = {};
  const TrialWeights weights = trials.Select();
  EXPECT_EQ(weights.floor, 0);
  EXPECT_NEAR(Sum(weights), 1, 1e-12);
}

TEST(TrialSelectionTest, OneFoldIsEnough) {
  Regression trials({1000, {1.5, 0.5, 1.0}});
  trials.folds_.resize(1);
  const TrialWeights weights = trials.Select();
  EXPECT_NEAR(Sum(weights), 1, 1e-12);
  EXPECT_GT(weights.trials[1], weights.trials[0]);
}

// On few rows the best of many equal trials is the luckiest one.
TEST(TrialSelectionTest, OnSmallTablesTheAnswerIsBetterThanTheFirstTrialWithTheFloor) {
  double chosen = 0, plain = 0;
  int worse = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    Wanted wanted{200, std::vector<double>(12, 1.0), 1.0, 1.5, seed};
    const TrialWeights weights = Regression(wanted).Select();
    // The best weights of the first trial and the floor, known from their errors.
    TrialWeights first;
    first.trials.resize(12);
    first.floor = 1 / (1 + 1.5 * 1.5);
    first.trials[0] = 1 - first.floor;
    const double is = Regression::TrueError(wanted, weights);
    const double was = Regression::TrueError(wanted, first);
    chosen += is;
    plain += was;
    worse += is > was * 1.01 ? 1 : 0;
  }
  EXPECT_LT(chosen, plain);
  EXPECT_LE(worse, 2) << "of 100 tables";
}

TEST(TrialSelectionTest, OnSmallTablesWorseTrialsDoNotSpoilTheFirst) {
  double chosen = 0, alone = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    Wanted wanted{200, {0.5, 3, 3, 3, 3, 3, 3, 3, 3, 3}, 1.0, 3, seed};
    chosen += Regression::TrueError(wanted, Regression(wanted).Select());
    TrialWeights first;
    first.trials.resize(10);
    first.trials[0] = 1;
    alone += Regression::TrueError(wanted, first);
  }
  EXPECT_LT(chosen, alone * 1.003);
}

TEST(TrialSelectionTest, WhereAllAreAlikeTheirMeanAnswers) {
  double chosen = 0;
  for (unsigned seed = 1; seed <= 100; ++seed) {
    Wanted wanted{60, std::vector<double>(8, 1.0), 0, 6, seed};
    chosen += Regression::TrueError(wanted, Regression(wanted).Select());
  }
  // Greedy weights alone are 6 % worse than the mean.
  EXPECT_LT(chosen / 100, 1.02 / std::sqrt(8));
}

// A binary table; the trials are as sure as they are good, each by `step` worse than the one
// before.
class Classes {
 public:
  Classes(size_t rows, size_t trials, unsigned seed = 7, double best = 0.5, double step = 0.02) {
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    for (int fold = 0; fold < kFolds; ++fold) {
      FoldOfTrials& to = folds_.emplace_back();
      std::vector<double> logits;
      for (size_t i = 0; i < rows / kFolds; ++i) {
        logits.push_back(2 * normal(random));
        to.labels.push_back(uniform(random) < 1 / (1 + std::exp(-logits.back())) ? 1 : 0);
      }
      for (size_t k = 0; k <= trials; ++k) {
        std::vector<float>& values = values_.emplace_back();
        const double error = k == trials ? 2 : best + step * static_cast<double>(k);
        for (const double logit : logits) {
          const double p = 1 / (1 + std::exp(-(logit + error * normal(random))));
          values.push_back(static_cast<float>(1 - p));
          values.push_back(static_cast<float>(p));
        }
        if (k < trials) {
          to.trials.push_back(values);
        } else {
          to.floor = values;
        }
      }
    }
  }
  // The accuracy of the trials by the weights, and of the floor.
  double Accuracy(const TrialWeights& weights) const {
    size_t right = 0, rows = 0;
    for (const FoldOfTrials& fold : folds_) {
      for (size_t row = 0; row < fold.labels.size(); ++row, ++rows) {
        double p = weights.floor * fold.floor[2 * row + 1];
        for (size_t k = 0; k < weights.trials.size(); ++k) {
          p += weights.trials[k] * fold.trials[k][2 * row + 1];
        }
        right += (p > 0.5) == (fold.labels[row] == 1) ? 1 : 0;
      }
    }
    return static_cast<double>(right) / static_cast<double>(rows);
  }

  std::vector<FoldOfTrials> folds_;

 private:
  std::list<std::vector<float>> values_;
};

// The rows that choose are few; other rows of the same kind tell how good the choice is.
TEST(TrialSelectionTest, AccuracyOnFewRowsIsNotLeftToLuck) {
  constexpr size_t kRows = 150, kTrials = 6;
  constexpr int kSeeds = 40;
  for (const double step : {-0.1, 0.0, 0.1}) {
    double chosen = 0, mean = 0;
    for (unsigned seed = 1; seed <= kSeeds; ++seed) {
      const Classes seen(kRows, kTrials, seed, 0.7, step),
          other(4000, kTrials, 99 + seed, 0.7, step);
      chosen += other.Accuracy(SelectTrials(*MetricByName("accuracy"), 2, seen.folds_, 0));
      mean += other.Accuracy({std::vector<double>(kTrials, 1.0 / kTrials)});
    }
    // By accuracy alone the choice is 0.009 to 0.013 below the mean.
    EXPECT_GT(chosen / kSeeds, mean / kSeeds - 0.006) << step;
  }
}

TEST(TrialSelectionTest, FortyTrialsOnFiftyThousandRowsAreChosenFast) {
  const Classes trials(50'000, 40);
  for (const char* const name : {"accuracy", "logloss", "auc", "f1"}) {
    const Metric metric = *MetricByName(name);
    const std::clock_t begin = std::clock();
    const TrialWeights weights = SelectTrials(metric, 2, trials.folds_, 0);
    const double took_s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    std::cout << name << ": " << took_s << " s of a core" << std::endl;
    EXPECT_NEAR(Sum(weights), 1, 1e-12) << name;
    EXPECT_LT(took_s, 0.4) << name;
  }
}

TEST(TrialSelectionTest, SeveralTargetsAndManyClassesAreWeighed) {
  // Two targets; the second trial is right on both.
  std::vector<float> right, wrong, targets;
  for (int i = 0; i < 100; ++i) {
    targets.push_back(static_cast<float>(i));
    targets.push_back(static_cast<float>(-i));
    right.insert(right.end(), {targets[targets.size() - 2], targets.back()});
    wrong.insert(wrong.end(), {0, 0});
  }
  FoldOfTrials fold;
  fold.targets = targets;
  fold.trials = {wrong, right};
  const std::vector<FoldOfTrials> folds = {fold, fold};
  EXPECT_THAT(SelectTrials(*MetricByName("rmse"), 2, folds, 0).trials, ElementsAre(0, 1));
  // Three classes.
  FoldOfTrials classes;
  std::vector<float> sure, even;
  for (int i = 0; i < 99; ++i) {
    classes.labels.push_back(i % 3);
    for (int c = 0; c < 3; ++c) {
      sure.push_back(c == i % 3 ? 0.8f : 0.1f);
      even.push_back(1.0f / 3);
    }
  }
  classes.trials = {even, sure};
  const std::vector<FoldOfTrials> of_classes = {classes, classes};
  EXPECT_THAT(SelectTrials(*MetricByName("logloss"), 3, of_classes, 0).trials, ElementsAre(0, 1));
}

}  // namespace
}  // namespace traind
