#include "server/portfolio/portfolio.h"

#include <absl/algorithm/container.h>
#include <absl/strings/str_cat.h>
#include <absl/types/span.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "common/spec/automatic_rules.h"
#include "common/spec/spec_rules.h"
#include "server/portfolio/draw.h"

namespace traind {
namespace {

constexpr double kFewRows = 1000;

// A setting of LightGBM; defaults are the library's.
struct Lightgbm {
  double learning_rate;
  int leaves;
  int leaf_rows;
  double columns = 1;  // share that each tree sees
  double rows = 1;     // share that each round draws
  double l1 = 0, l2 = 0;
  bool extra = false;
  double cat_l2 = 10, cat_smooth = 10;
  int onehot = 4, group_rows = 100;
};

// The second to fourth of the list are those of AutoGluon's portfolios of 2023 and 2025.
constexpr Lightgbm kLightgbm[] = {
    {0.0179, 39, 3, 0.462, 0.877, 0.238, 0.355, true, 0.342, 15.4, 16, 9},
    {0.03, 128, 3, 0.9},
    {0.0114, 84, 3, 0.528, 0.978, 0.0269, 0.838, false, 0.155, 0.0093, 42, 75},
    {0.0180, 180, 12, 0.404, 0.950, 0.766, 1.60, true, 0.216, 0.0638, 11, 3},
    {0.0134, 20, 2, 0.425, 0.711, 0.514, 0.513, false, 0.868, 48.7, 16, 32},
    {0.0127, 5, 12, 0.733, 0.854, 0.241, 0.298, true, 0.0110, 5.09, 67, 93},
    {0.0398, 16, 1, 0.579, 0.959, 0.938, 0.990, false, 1.90, 0.0215, 27, 39},
    {0.0121, 53, 14, 0.702},
    {0.0152, 16, 48, 0.564, 1, 0, 0, true},
};

// A setting of XGBoost; defaults are the library's.
struct Xgboost {
  double learning_rate;
  int depth;
  double child_weight;
  double rows = 1;
  double by_tree = 1, by_level = 1;
  double l2 = 1;
};
constexpr Xgboost kXgboost[] = {
    {0.0181, 10, 0.603, 1, 0.692},
    {0.0878, 5, 0.629, 1, 0.663},
};

// A setting of a network.
struct Mlp {
  std::vector<int32_t> hidden;
  double dropout;
  double learning_rate;
  int epochs, patience;
  double weight_decay = 0.01;
};

// Makes the trials of one Job.
class Maker {
 public:
  Maker(const v1::JobSpec& resolved, const v1::TrainSpec& asked, const TableHint& table)
      : resolved_(resolved),
        asked_(asked),
        table_(table),
        classification_(resolved.task().type() == "classification"),
        few_rows_(table.rows > 0 && table.rows < kFewRows),
        most_(static_cast<size_t>(resolved.model().automatic().trials())),
        draw_(resolved.data().seed()) {}

  std::vector<v1::TrialSpec> Make() {
    const std::vector<std::string> kinds = KindsToTry(resolved_);
    const auto has = [&](const char* kind) { return absl::c_linear_search(kinds, kind); };
    lightgbm_ = has("lightgbm");
    xgboost_ = has("xgboost");
    mlp_ = has("mlp");
    First();
    Published();
    // Kinds take turns; a list of kinds without any of these is refused before.
    while (!Full() && (lightgbm_ || xgboost_ || mlp_)) {
      AddLightgbm(DrawLightgbm());
      AddXgboost(DrawXgboost());
      if (draw_.Flip()) AddMlp(DrawMlp());
    }
    return std::move(trials_);
  }

 private:
  bool Full() const { return trials_.size() >= most_; }

  // The best single setting of each kind.
  void First() {
    AddLightgbm(QuickLightgbm());
    if (few_rows_) AddMlp(UsualMlp());
    AddXgboost(TunedXgboost());
    if (!few_rows_) AddMlp(UsualMlp());
    AddLightgbm(kLightgbm[0]);
    AddForest();
  }

  void Published() {
    AddLightgbm(kLightgbm[1]);
    AddMlp({{384, 384}, 0.3, 0.001, 40, 8, 0.03});
    AddXgboost(kXgboost[0]);
    AddLightgbm(kLightgbm[2]);
    AddLightgbm(kLightgbm[3]);
    AddMlp({{128, 128, 128}, 0.1, 0.004, 30, 8, 0.003});
    for (const Lightgbm& setting : absl::MakeConstSpan(kLightgbm).subspan(4)) AddLightgbm(setting);
    AddXgboost(kXgboost[1]);
  }

  // ---- Settings ----------------------------------------------------------------

  // Few rows need leaves with fewer of them.
  int LeafRows(int usual) const {
    if (table_.rows <= 0) return usual;
    return std::clamp(static_cast<int>(table_.rows / 50), 2, usual);
  }

  Lightgbm QuickLightgbm() const {
    if (few_rows_) return {0.05, 15, LeafRows(10), 0.8, 0.8, 0, 1};
    if (classification_) return {0.05, 50, LeafRows(40), 1, 0.75};
    return {0.05, 100, 3, 1, 0.7};
  }
  Xgboost TunedXgboost() const {
    if (few_rows_) return {0.05, 4, 1, 0.8, 0.8, 1, 1};
    if (classification_) return {0.08, 6, 5e-6, 0.65, 1, 0.9, 0};
    return {0.05, 9, 2, 0.7, 1, 1, 0};
  }
  Mlp UsualMlp() const { return {{256, 256}, 0.1, 0.002, 40, 8}; }

  // The spaces of TabArena for LightGBM and XGBoost, and that of TabM's authors for networks.
  Lightgbm DrawLightgbm() {
    Lightgbm setting;
    setting.learning_rate = draw_.Log(0.01, 0.1);
    setting.columns = draw_.Between(0.4, 1);
    setting.rows = draw_.Between(0.7, 1);
    setting.leaves = draw_.LogInt(4, 200);
    setting.leaf_rows = draw_.LogInt(1, 64);
    setting.extra = draw_.Flip();
    setting.l1 = draw_.Between(0, 1);
    setting.l2 = draw_.Between(0, 2);
    setting.group_rows = draw_.LogInt(2, 100);
    setting.cat_l2 = draw_.Log(0.005, 2);
    setting.cat_smooth = draw_.Log(0.001, 100);
    setting.onehot = draw_.LogInt(8, 100);
    return setting;
  }
  Xgboost DrawXgboost() {
    Xgboost setting;
    setting.learning_rate = draw_.Log(0.01, 0.1);
    setting.depth = draw_.LogInt(4, 10);
    setting.child_weight = draw_.Log(0.001, 5);
    setting.rows = draw_.Between(0.6, 1);
    setting.by_level = draw_.Between(0.6, 1);
    setting.l2 = draw_.Between(0, 5);
    return setting;
  }
  Mlp DrawMlp() {
    Mlp setting;
    const int layers = draw_.Int(1, 4);
    const int width = 32 * draw_.LogInt(2, 16);
    setting.hidden.assign(static_cast<size_t>(layers), width);
    setting.dropout = draw_.Flip() ? 0 : draw_.Between(0, 0.5);
    setting.learning_rate = draw_.Log(3e-4, 5e-3);
    setting.weight_decay = draw_.Log(1e-3, 0.1);
    setting.epochs = 40;
    setting.patience = 8;
    return setting;
  }

  // ---- Trials ------------------------------------------------------------------

  v1::TrialSpec& Add(const std::string& kind) {
    v1::TrialSpec& trial = trials_.emplace_back();
    const int number = ++numbers_[kind];
    trial.set_name(number == 1 ? kind : absl::StrCat(kind, "-", number));
    return trial;
  }

  void AddLightgbm(const Lightgbm& setting) {
    if (!lightgbm_ || Full()) return;
    static const v1::LightgbmSpec& defaults = *[] {
      auto* made = new v1::LightgbmSpec();
      FillDefaults(*made);
      return made;
    }();
    v1::LightgbmSpec& to = *Add("lightgbm").mutable_model()->mutable_lightgbm();
    to = defaults;
    to.set_num_iterations(Rounds(setting.learning_rate));
    to.set_early_stopping_round(kStopRounds);
    to.set_learning_rate(setting.learning_rate);
    to.set_num_leaves(setting.leaves);
    to.set_min_data_in_leaf(LeafRows(setting.leaf_rows));
    to.set_feature_fraction(setting.columns);
    to.set_bagging_fraction(setting.rows);
    to.set_bagging_freq(setting.rows < 1 ? 1 : 0);
    to.set_lambda_l1(setting.l1);
    to.set_lambda_l2(setting.l2);
    to.set_extra_trees(setting.extra);
    to.set_cat_l2(setting.cat_l2);
    to.set_cat_smooth(setting.cat_smooth);
    to.set_max_cat_to_onehot(setting.onehot);
    to.set_min_data_per_group(setting.group_rows);
  }

  // A random forest: deep trees on random rows and columns, whose mean answers.
  void AddForest() {
    if (!lightgbm_ || Full()) return;
    AddLightgbm({1, 512, 2, 1, 0.63});
    v1::LightgbmSpec& to = *trials_.back().mutable_model()->mutable_lightgbm();
    to.set_boosting("rf");
    to.set_num_iterations(kForestTrees);
    to.set_early_stopping_round(0);
    to.set_feature_fraction_bynode(classification_ ? 0.4 : 0.6);
    trials_.back().set_name("lightgbm-forest");
  }

  void AddXgboost(const Xgboost& setting) {
    if (!xgboost_ || Full()) return;
    static const v1::XgboostSpec& defaults = *[] {
      auto* made = new v1::XgboostSpec();
      FillDefaults(*made);
      return made;
    }();
    v1::XgboostSpec& to = *Add("xgboost").mutable_model()->mutable_xgboost();
    to = defaults;
    to.set_num_boost_round(Rounds(setting.learning_rate));
    to.set_early_stopping_rounds(kStopRounds);
    to.set_learning_rate(setting.learning_rate);
    to.set_max_depth(setting.depth);
    to.set_min_child_weight(setting.child_weight);
    to.set_subsample(setting.rows);
    to.set_colsample_bytree(setting.by_tree);
    to.set_colsample_bylevel(setting.by_level);
    to.set_lambda(setting.l2);
  }

  void AddMlp(const Mlp& setting) {
    if (!mlp_ || Full()) return;
    v1::TrialSpec& trial = Add("mlp");
    v1::MlpSpec& to = *trial.mutable_model()->mutable_mlp();
    for (const int32_t width : setting.hidden) to.add_hidden(width);
    to.set_dropout(setting.dropout);
    v1::TrainSpec& train = *trial.mutable_train();
    train = resolved_.train();
    train.set_epochs(setting.epochs);
    train.set_patience(setting.patience);
    train.set_learning_rate(setting.learning_rate);
    train.set_weight_decay(setting.weight_decay);
    v1::JobSpec over, under;
    *over.mutable_train() = asked_;
    *under.mutable_train() = train;
    under.mutable_train()->mutable_loss()->clear_weights();
    MergeSpec(over, under);
    train = under.train();
  }

  static constexpr int kStopRounds = 50, kForestTrees = 200;
  // So many rounds that a model is done before, as a rule.
  static int Rounds(double learning_rate) {
    return std::clamp(static_cast<int>(std::lround(40 / learning_rate)), 200, 3000);
  }

  const v1::JobSpec& resolved_;
  const v1::TrainSpec& asked_;
  const TableHint& table_;
  const bool classification_, few_rows_;
  const size_t most_;
  Draw draw_;
  bool lightgbm_ = false, xgboost_ = false, mlp_ = false;
  std::map<std::string, int> numbers_;
  std::vector<v1::TrialSpec> trials_;
};

}  // namespace

std::vector<v1::TrialSpec> MakePortfolio(const v1::JobSpec& resolved, const v1::TrainSpec& asked,
                                         const TableHint& table) {
  return Maker(resolved, asked, table).Make();
}

}  // namespace traind
