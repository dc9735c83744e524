#include "server/portfolio/portfolio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "common/search/draw.h"
#include "common/spec/spec_rules.h"

namespace traind {
namespace {

v1::JobSpec SpecOf(const char* type) {
  v1::JobSpec spec;
  spec.mutable_task()->set_type(type);
  spec.mutable_data()->set_train("/data/train.csv");
  spec.mutable_data()->set_target("y");
  spec.mutable_model()->mutable_automatic();
  return ResolveSpec(spec);
}

std::vector<v1::TrialSpec> Make(const v1::JobSpec& spec, double rows = 20'000) {
  return MakePortfolio(spec, v1::TrainSpec(), {rows, 10, 2});
}

// Returns what is wrong with any of the trials, as a Job of its own; "": nothing.
std::string WrongWith(const v1::JobSpec& spec, const std::vector<v1::TrialSpec>& trials) {
  for (const v1::TrialSpec& trial : trials) {
    v1::JobSpec alone = spec;
    *alone.mutable_model() = trial.model();
    if (trial.has_train()) *alone.mutable_train() = trial.train();
    for (const SpecError& error : CheckSpec(alone)) return trial.name() + ": " + error.message;
    // Every default stands there.
    if (SpecToJson(ResolveSpec(alone)) != SpecToJson(alone)) return trial.name() + " is not whole";
  }
  return "";
}

TEST(PortfolioTest, EveryTrialIsAWholeSettingThatASpecMayHave) {
  for (const char* type : {"classification", "regression"}) {
    for (const double rows : {0., 40., 900., 20'000., 1e6}) {
      const v1::JobSpec spec = SpecOf(type);
      const std::vector<v1::TrialSpec> trials = Make(spec, rows);
      EXPECT_EQ(trials.size(), 60u);
      EXPECT_EQ(WrongWith(spec, trials), "") << type << ", rows: " << rows;
      EXPECT_TRUE(trials[0].model().has_lightgbm());
    }
  }
}

TEST(PortfolioTest, WithoutAPenaltyOfLeavesFewCategoriesStandOnASide) {
  int without = 0, with = 0;
  for (const double rows : {900., 20'000.}) {
    for (const v1::TrialSpec& trial : Make(SpecOf("regression"), rows)) {
      if (!trial.model().has_xgboost()) continue;
      const v1::XgboostSpec& xgboost = trial.model().xgboost();
      ++(xgboost.lambda() == 0 ? without : with);
      EXPECT_EQ(xgboost.max_cat_threshold(), xgboost.lambda() == 0 ? 2 : 4) << trial.name();
    }
  }
  EXPECT_GT(without, 0);
  EXPECT_GT(with, 0);
}

TEST(PortfolioTest, EveryTrialLearnsTheLoss) {
  v1::JobSpec spec = SpecOf("regression");
  for (const char* kind : {"smape", "quantile", "poisson", "tweedie"}) {
    spec.mutable_train()->mutable_loss()->set_kind(kind);
    for (const double rows : {900., 20'000.}) {
      EXPECT_EQ(WrongWith(spec, Make(spec, rows)), "") << kind << ", rows: " << rows;
    }
  }
}

TEST(PortfolioTest, EveryOtherTrialOfAKindLearnsCountsByTheirOwnLoss) {
  const v1::JobSpec spec = SpecOf("regression");
  for (const double rows : {900., 20'000.}) {
    const auto trials = MakePortfolio(spec, v1::TrainSpec(), {rows, 10, 0, /*counts=*/true});
    EXPECT_EQ(WrongWith(spec, trials), "") << rows;
    std::map<std::string, int> own, all;
    for (const v1::TrialSpec& trial : trials) {
      const std::string kind = trial.name().substr(0, trial.name().find('-'));
      ++all[kind];
      own[kind] += trial.train().loss().kind() == "poisson";
    }
    for (const char* kind : {"lightgbm", "xgboost", "mlp"}) {
      EXPECT_NEAR(own[kind], 0.5 * all[kind], 1) << kind << ", rows: " << rows;
    }
    EXPECT_FALSE(trials[0].has_train()) << "a guess must not cost the quality";
  }
}

TableHint Hint(bool counts, bool skewed, bool positive) {
  TableHint hint = {900, 10, 0, counts};
  hint.skewed = skewed;
  hint.positive = positive;
  return hint;
}

// What trials learn, by kind: a loss, a transform, or nothing.
std::map<std::string, std::vector<std::string>> ScalesOf(const v1::JobSpec& spec,
                                                         const TableHint& hint,
                                                         const v1::TrainSpec& asked = {}) {
  std::map<std::string, std::vector<std::string>> scales;
  for (const v1::TrialSpec& trial : MakePortfolio(spec, asked, hint)) {
    const v1::TrainSpec& train = trial.train();
    const std::string transform =
        train.target_transform() == "none" ? "" : train.target_transform();
    scales[trial.name().substr(0, trial.name().find('-'))].push_back(train.loss().kind() +
                                                                     transform);
  }
  return scales;
}

int CountOf(const std::vector<std::string>& scales, const char* scale) {
  return static_cast<int>(std::count(scales.begin(), scales.end(), scale));
}

TEST(PortfolioTest, EveryOtherTrialOfAKindLearnsASkewedTargetTransformed) {
  const v1::JobSpec spec = SpecOf("regression");
  for (const bool positive : {true, false}) {
    const TableHint hint = Hint(false, true, positive);
    const char* const own = positive ? "log" : "yeo_johnson";
    EXPECT_EQ(WrongWith(spec, MakePortfolio(spec, {}, hint)), "");
    auto scales = ScalesOf(spec, hint);
    for (const char* kind : {"lightgbm", "xgboost", "mlp"}) {
      const auto all = static_cast<double>(scales[kind].size());
      EXPECT_NEAR(CountOf(scales[kind], own), 0.5 * all, 1) << kind;
      EXPECT_NEAR(CountOf(scales[kind], ""), 0.5 * all, 1) << kind;
    }
    EXPECT_EQ(scales["lightgbm"][0], "") << "the first trial makes the quality";
    const auto trials = MakePortfolio(spec, {}, hint);
    EXPECT_EQ(trials.size(), 60u);
    EXPECT_EQ(trials[1].model().SerializeAsString(), trials[0].model().SerializeAsString());
    EXPECT_EQ(trials[1].train().target_transform(), own) << "the quick setting comes again";
    v1::JobSpec one = spec;
    one.mutable_model()->mutable_automatic()->set_trials(1);
    EXPECT_EQ(MakePortfolio(one, {}, hint).size(), 1u);
  }
}

TEST(PortfolioTest, CountsOfMeansHaveTheirLossAndOthersTheTransform) {
  v1::JobSpec spec = SpecOf("regression");
  auto scales = ScalesOf(spec, Hint(/*counts=*/true, /*skewed=*/true, /*positive=*/false));
  EXPECT_GT(CountOf(scales["xgboost"], "poisson"), 3);
  EXPECT_EQ(CountOf(scales["xgboost"], "yeo_johnson"), 0) << "one scale besides its own";
  spec.mutable_task()->set_metric("mae");
  scales = ScalesOf(spec, Hint(true, true, false));
  EXPECT_EQ(CountOf(scales["xgboost"], "poisson"), 0);
  EXPECT_GT(CountOf(scales["xgboost"], "yeo_johnson"), 3);
}

TEST(PortfolioTest, ATransformThatTheSpecNamesIsThatOfAllTrials) {
  v1::JobSpec spec = SpecOf("regression");
  for (const char* named : {"none", "yeo_johnson"}) {
    v1::TrainSpec asked;
    asked.set_target_transform(named);
    spec.mutable_train()->set_target_transform(named);
    for (const auto& [kind, scales] : ScalesOf(spec, Hint(false, true, true), asked)) {
      EXPECT_EQ(CountOf(scales, "log"), 0) << kind;
    }
  }
}

TEST(PortfolioTest, CountsChangeNothingWhereTheLossOrTheMetricSaysOtherwise) {
  const auto differs = [](const v1::JobSpec& spec, const v1::TrainSpec& asked) {
    const auto counts = MakePortfolio(spec, asked, {900, 10, 0, /*counts=*/true});
    const auto values = MakePortfolio(spec, asked, {900, 10, 0, /*counts=*/false});
    const auto same = [](const v1::TrialSpec& a, const v1::TrialSpec& b) {
      return a.SerializeAsString() == b.SerializeAsString();
    };
    return !std::equal(counts.begin(), counts.end(), values.begin(), values.end(), same);
  };
  v1::JobSpec spec = SpecOf("regression");
  EXPECT_TRUE(differs(spec, {}));
  v1::TrainSpec huber;
  huber.mutable_loss()->set_kind("huber");
  *spec.mutable_train()->mutable_loss() = huber.loss();
  EXPECT_FALSE(differs(spec, huber));
  spec = SpecOf("regression");
  spec.mutable_task()->set_metric("mae");
  EXPECT_FALSE(differs(spec, {}));
  EXPECT_FALSE(differs(SpecOf("classification"), {}));
}

TEST(PortfolioTest, TreesOfManyClassesLearnFaster) {
  const v1::JobSpec spec = SpecOf("classification");
  for (const double rows : {900., 20'000.}) {
    const auto two = MakePortfolio(spec, v1::TrainSpec(), {rows, 10, 2});
    const auto ten = MakePortfolio(spec, v1::TrainSpec(), {rows, 10, 10});
    ASSERT_EQ(two.size(), ten.size());
    for (size_t i = 0; i < two.size(); ++i) {
      const auto rate = [i](const std::vector<v1::TrialSpec>& trials) {
        const v1::ModelSpec& model = trials[i].model();
        return model.has_xgboost() ? model.xgboost().learning_rate()
                                   : model.lightgbm().learning_rate();
      };
      EXPECT_GE(rate(ten), rate(two)) << two[i].name();
      EXPECT_LE(rate(ten), std::max(rate(two), 0.2)) << two[i].name();
    }
    EXPECT_LE(ten[0].model().lightgbm().num_iterations(), 200);
  }
}

TEST(PortfolioTest, TreesOfFewColumnsSeeAtLeastFour) {
  const v1::JobSpec spec = SpecOf("regression");
  for (const double rows : {900., 20'000.}) {
    for (const int features : {1, 3, 4, 6, 30}) {
      double least = 1;
      for (const v1::TrialSpec& trial : MakePortfolio(spec, v1::TrainSpec(), {rows, features, 0})) {
        const v1::ModelSpec& model = trial.model();
        if (model.has_lightgbm()) least = std::min(least, model.lightgbm().feature_fraction());
        if (model.has_xgboost()) least = std::min(least, model.xgboost().colsample_bytree());
      }
      EXPECT_GE(least * features, std::min(features, 4) - 1e-9) << features;
      EXPECT_EQ(least<0.6, features> 6) << features;
    }
  }
}

TEST(PortfolioTest, SettingsAndNamesAllDiffer) {
  std::set<std::string> names, settings;
  for (v1::TrialSpec& trial : Make(SpecOf("classification"))) {
    names.insert(trial.name());
    trial.clear_name();
    settings.insert(trial.SerializeAsString());
  }
  EXPECT_EQ(names.size(), 60u);
  EXPECT_EQ(settings.size(), 60u);
}

TEST(PortfolioTest, EqualSpecsHaveEqualTrialsAndMoreBeginWithFewer) {
  v1::JobSpec spec = SpecOf("regression");
  const auto all = Make(spec), again = Make(spec);
  spec.mutable_model()->mutable_automatic()->set_trials(45);
  const auto fewer = Make(spec);
  ASSERT_EQ(fewer.size(), 45u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].SerializeAsString(), again[i].SerializeAsString());
  }
  for (size_t i = 0; i < fewer.size(); ++i) {
    EXPECT_EQ(all[i].SerializeAsString(), fewer[i].SerializeAsString());
  }
  spec.mutable_data()->set_seed(1);
  EXPECT_NE(Make(spec)[44].SerializeAsString(), fewer[44].SerializeAsString());
  EXPECT_EQ(Make(spec)[0].SerializeAsString(), fewer[0].SerializeAsString());
}

TEST(PortfolioTest, OnlyTheKindsOfTheSpecAreTried) {
  for (const char* kind : {"lightgbm", "xgboost", "mlp"}) {
    v1::JobSpec spec = SpecOf("classification");
    spec.mutable_model()->mutable_automatic()->add_kinds(kind);
    spec.mutable_model()->mutable_automatic()->set_trials(20);
    const auto trials = Make(spec);
    EXPECT_EQ(trials.size(), 20u);
    for (const v1::TrialSpec& trial : trials) {
      const auto& model = trial.model();
      EXPECT_EQ(model.has_lightgbm()  ? "lightgbm"
                : model.has_xgboost() ? "xgboost"
                                      : "mlp",
                std::string(kind));
    }
  }
}

// Its time grows with the cube of the rows.
TEST(PortfolioTest, AKernelComesEarlyWhereRowsAreFewAndElseOnlyIfItIsNamed) {
  const auto place = [](const std::vector<v1::TrialSpec>& trials) {
    const auto it = std::find_if(trials.begin(), trials.end(), [](const v1::TrialSpec& trial) {
      return trial.model().has_kernel();
    });
    return it == trials.end() ? -1 : static_cast<int>(it - trials.begin());
  };
  for (const char* type : {"classification", "regression"}) {
    v1::JobSpec spec = SpecOf(type);
    EXPECT_EQ(place(Make(spec, 900)), 2);
    EXPECT_EQ(place(Make(spec, 20'000)), -1);
    EXPECT_EQ(place(Make(spec, 0)), -1) << "nobody knows how many rows there are";
    spec.mutable_model()->mutable_automatic()->add_kinds("mlp");
    EXPECT_EQ(place(Make(spec, 900)), -1);
    spec.mutable_model()->mutable_automatic()->add_kinds("kernel");
    EXPECT_GT(place(Make(spec, 20'000)), 0);
    spec.mutable_model()->mutable_automatic()->clear_kinds();
    spec.mutable_model()->mutable_automatic()->add_kinds("kernel");
    for (const double rows : {900., 20'000.}) {
      const auto alone = Make(spec, rows);
      ASSERT_EQ(alone.size(), 1u) << "it tries several settings by itself";
      EXPECT_EQ(WrongWith(spec, alone), "");
    }
  }
}

// A plain network costs less; members and embedded numbers gain most beside it.
TEST(PortfolioTest, TheSecondNetworkHasMembersAndEmbeddedNumbers) {
  for (const char* type : {"classification", "regression"}) {
    for (const double rows : {900., 20'000.}) {
      std::vector<v1::MlpSpec> networks;
      for (const v1::TrialSpec& trial : Make(SpecOf(type), rows)) {
        if (trial.model().has_mlp()) networks.push_back(trial.model().mlp());
      }
      ASSERT_GE(networks.size(), 2u);
      EXPECT_EQ(networks[0].ensemble_members(), 1);
      EXPECT_FALSE(networks[0].has_numeric_embedding());
      EXPECT_GT(networks[1].ensemble_members(), 1);
      EXPECT_TRUE(networks[1].has_numeric_embedding());
    }
  }
}

TEST(PortfolioTest, TheUsersOwnSettingsOfNetworksGoFirst) {
  v1::JobSpec spec = SpecOf("classification");
  v1::TrainSpec asked;
  asked.set_epochs(7);
  asked.mutable_loss()->add_weights(1);
  asked.mutable_loss()->add_weights(3);
  MergeSpec(
      [&] {
        v1::JobSpec over;
        *over.mutable_train() = asked;
        return over;
      }(),
      spec);
  int networks = 0;
  for (const v1::TrialSpec& trial : MakePortfolio(spec, asked, {20'000, 10, 2})) {
    EXPECT_EQ(trial.has_train(), trial.model().has_mlp());
    if (!trial.has_train()) continue;
    ++networks;
    EXPECT_EQ(trial.train().epochs(), 7);
    ASSERT_EQ(trial.train().loss().weights_size(), 2);
    EXPECT_EQ(trial.train().loss().weights(1), 3);
  }
  EXPECT_GT(networks, 2);
}

TEST(DrawTest, NumbersStayWithinTheirLimitsAndReachBothEnds) {
  Draw draw(3);
  std::set<int> seen;
  for (int i = 0; i < 1000; ++i) {
    seen.insert(draw.Int(1, 4));
    const double value = draw.Log(0.01, 0.1);
    EXPECT_TRUE(value >= 0.01 && value <= 0.1) << value;
    const int whole = draw.LogInt(4, 200);
    EXPECT_TRUE(whole >= 4 && whole <= 200) << whole;
  }
  EXPECT_EQ(seen, (std::set<int>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace traind
