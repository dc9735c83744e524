#include "server/portfolio/portfolio.h"

#include <absl/algorithm/container.h>
#include <absl/strings/str_cat.h>
#include <absl/types/span.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "common/search/draw.h"
#include "common/spec/automatic_rules.h"
#include "common/spec/spec_rules.h"

namespace traind {
namespace {

// Below so many rows small trees and networks win.
constexpr double kFewRows = 2000;
// Each round grows a tree for each class, so with more classes trees learn faster.
constexpr int kFewClasses = 4;
constexpr double kFastestRate = 0.2;

// A setting of LightGBM. Categories are split more readily than by the library's own defaults.
struct Lightgbm {
  double learning_rate;
  int leaves;
  int leaf_rows;
  double columns = 1;    // share that each tree sees
  double row_share = 1;  // that each round draws
  double l1 = 0, l2 = 1;
  bool extra = false;
  double cat_l2 = 1, cat_smooth = 10;
  int onehot = 16, group_rows = 10;
};

// Chosen on ten public tables by cross-validation (docs/BENCHMARKS.md).
constexpr Lightgbm kQuickSmall = {0.05, 7, 5, 0.6, 0.8};
constexpr Lightgbm kQuickMany = {0.1, 7, 5, 0.6, 0.8};
constexpr Lightgbm kQuickClasses = {0.1, 31, 10, 0.5, 0.8};
constexpr Lightgbm kQuickValues = {0.1, 64, 5, 0.7, 0.7};
constexpr Lightgbm kMiddle = {0.05, 15, 5, 0.8, 0.8, 0, 1, false, 1, 2};
constexpr Lightgbm kHalf = {0.05, 31, 10, 0.5, 0.8};
constexpr Lightgbm kDeep = {0.04, 200, 2, 0.5, 0.7};
constexpr Lightgbm kLeafy = {0.05, 100, 3, 0.6, 0.7};
constexpr Lightgbm kExtra = {0.06, 39, 3, 0.462, 0.877, 0.238, 0.355, true, 0.342, 15.4, 16, 9};
// From the portfolios of AutoGluon, 2025.
constexpr Lightgbm kShallow = {0.0398, 16,    1,    0.579,  0.959, 0.938,
                               0.990,  false, 1.90, 0.0215, 27,    39};
constexpr Lightgbm kPublished[] = {
    {0.0228, 84, 3, 0.528, 0.978, 0.0269, 0.838, false, 0.155, 0.0093, 42, 75},
    {0.0268, 20, 2, 0.425, 0.711, 0.514, 0.513, false, 0.868, 48.7, 16, 32},
    {0.0360, 180, 12, 0.404, 0.950, 0.766, 1.60, true, 0.216, 0.0638, 11, 3},
    {0.0254, 5, 12, 0.733, 0.854, 0.241, 0.298, true, 0.0110, 5.09, 67, 93},
};

// A setting of XGBoost; defaults are the library's.
struct Xgboost {
  double learning_rate;
  int depth;
  double child_weight;
  double row_share = 1;
  double by_tree = 1, by_level = 1;
  double l2 = 1;
  double by_node = 1;
};
constexpr Xgboost kXgboostSmall = {0.05, 4, 1, 0.8, 0.8};
constexpr Xgboost kXgboostHalf = {0.05, 5, 1, 0.8, 1, 1, 1, 0.5};
constexpr Xgboost kXgboostClass = {0.08, 6, 5e-6, 0.65, 1, 0.9, 0};
constexpr Xgboost kXgboostDeep = {0.06, 12, 2, 0.7, 1, 1, 1, 0.5};
constexpr Xgboost kXgboostLeafy = {0.05, 9, 2, 0.7, 1, 1, 0};
// From the portfolio of AutoGluon, 2023.
constexpr Xgboost kXgboostPublished[] = {{0.0362, 10, 0.603, 1, 0.692},
                                         {0.0878, 5, 0.629, 1, 0.663}};

// A setting of a network.
struct Mlp {
  int layers, width;
  double dropout;
  double learning_rate;
  double weight_decay = 0.01;
  int epochs = 40, patience = 8;
  int members = 1;
  bool embedded = false;  // its numbers
};
constexpr Mlp kUsualMlp = {2, 256, 0.1, 0.004};
constexpr Mlp kDroppingMlp = {2, 384, 0.3, 0.002, 0.03};
constexpr Mlp kNarrowMlp = {3, 128, 0.1, 0.006, 0.003};
constexpr Mlp kMembersMlp = {2, 128, 0.1, 0.004, 0.01, 40, 8, /*members=*/8, /*embedded=*/true};

// Returns a section with its defaults filled in; made once.
template <class Section>
const Section& DefaultsOf() {
  static const Section& defaults = *[] {
    auto* made = new Section();
    FillDefaults(*made);
    return made;
  }();
  return defaults;
}

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
    kernel_ = has("kernel");
    First();
    Published();
    // Kinds take turns; a list of kinds without any of these is refused before.
    while (!Full() && (lightgbm_ || xgboost_ || mlp_)) {
      AddLightgbm(DrawLightgbm());
      AddXgboost(DrawXgboost());
      if (draw_.Flip()) AddMlp(DrawMlp());
    }
    LearnOtherwise();
    return std::move(trials_);
  }

 private:
  bool Full() const { return trials_.size() >= most_; }

  // The best settings of each kind.
  void First() {
    if (few_rows_) {
      AddLightgbm(table_.classes > kFewClasses ? kQuickMany : kQuickSmall);
      AddMlp(kUsualMlp);
      AddKernel();
      AddXgboost(classification_ ? kXgboostSmall : kXgboostClass);
      AddLightgbm(kMiddle);
      AddMlp(kMembersMlp);
      AddXgboost(kXgboostHalf);
      AddLightgbm(kExtra);
      AddLightgbm(kHalf);
    } else if (classification_) {
      AddLightgbm(kQuickClasses);
      AddLightgbm(kShallow);
      AddXgboost(kXgboostClass);
      AddMlp(kUsualMlp);
      AddLightgbm(kMiddle);
      AddXgboost(kXgboostHalf);
      AddLightgbm(kHalf);
      AddMlp(kMembersMlp);
    } else {
      AddLightgbm(kQuickValues);
      AddLightgbm(kDeep);
      AddXgboost(kXgboostDeep);
      AddMlp(kUsualMlp);
      AddForest();
      AddLightgbm(kLeafy);
      AddXgboost(kXgboostLeafy);
      AddMlp(kMembersMlp);
    }
  }

  // The others of them, and those of published portfolios.
  void Published() {
    // Its time grows with the cube of the rows.
    if (!few_rows_ && resolved_.model().automatic().kinds_size() > 0) AddKernel();
    if (few_rows_) {
      AddLightgbm(kLeafy);
      AddXgboost(kXgboostDeep);
      AddMlp(kDroppingMlp);
      AddForest();
      AddLightgbm(kShallow);
    } else {
      AddLightgbm(classification_ ? kLeafy : kHalf);
      AddMlp(kDroppingMlp);
      AddLightgbm(kExtra);
      if (classification_) AddForest();
    }
    AddMlp(kNarrowMlp);
    for (const Lightgbm& setting : kPublished) AddLightgbm(setting);
    for (const Xgboost& setting : kXgboostPublished) AddXgboost(setting);
  }

  // ---- Settings ----------------------------------------------------------------

  // Few rows need leaves with fewer of them.
  int LeafRows(int usual) const {
    if (table_.rows <= 0) return usual;
    return std::clamp(static_cast<int>(table_.rows / 50), 2, usual);
  }

  // Of few columns a tree that leaves some out misses what they do together.
  double ShareOfColumns(double usual) const {
    constexpr double kLeast = 4;
    return table_.features > 0 ? std::max(usual, std::min(1.0, kLeast / table_.features)) : usual;
  }

  // The spaces of TabArena for LightGBM and XGBoost, and that of TabM's authors for networks.
  Lightgbm DrawLightgbm() {
    Lightgbm setting{};
    setting.learning_rate = draw_.Log(0.02, 0.1);
    setting.columns = draw_.Between(0.4, 1);
    setting.row_share = draw_.Between(0.7, 1);
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
    Xgboost setting{};
    setting.learning_rate = draw_.Log(0.02, 0.1);
    setting.depth = draw_.LogInt(4, 10);
    setting.child_weight = draw_.Log(0.001, 5);
    setting.row_share = draw_.Between(0.6, 1);
    setting.by_level = draw_.Between(0.6, 1);
    setting.l2 = draw_.Between(0, 5);
    return setting;
  }
  Mlp DrawMlp() {
    Mlp setting{};
    setting.layers = draw_.Int(1, 4);
    setting.width = 32 * draw_.LogInt(2, 16);
    setting.dropout = draw_.Flip() ? 0 : draw_.Between(0, 0.5);
    setting.learning_rate = draw_.Log(3e-4, 5e-3);
    setting.weight_decay = draw_.Log(1e-3, 0.1);
    return setting;
  }

  // ---- Trials ------------------------------------------------------------------

  // Whether answers are to be means of the target.
  static bool LearnsMeans(const v1::JobSpec& resolved) {
    const std::string& metric = resolved.task().metric();
    return metric == "rmse" || metric == "r2";
  }

  // The quick first setting comes again, to learn otherwise: it costs least, and one scale may be
  // worth more than all other settings.
  void RepeatFirst() {
    if (trials_.empty() || most_ < 2) return;
    trials_.insert(trials_.begin() + 1, trials_[0]);
    trials_[1].set_name(absl::StrCat(trials_[0].name(), "-again"));
    if (trials_.size() > most_) trials_.pop_back();
  }

  v1::TrialSpec& Add(const std::string& kind) {
    v1::TrialSpec& trial = trials_.emplace_back();
    const int number = ++numbers_[kind];
    trial.set_name(number == 1 ? kind : absl::StrCat(kind, "-", number));
    return trial;
  }

  // How some of the trials learn the target.
  struct Scale {
    std::string loss, transform;  // one of them
  };
  Scale OtherScale() const {
    if (resolved_.task().type() != "regression" || !asked_.loss().kind().empty() ||
        !asked_.target_transform().empty()) {
      return {};
    }
    if (LearnsMeans(resolved_) && table_.counts) return {"poisson", ""};
    if (!table_.skewed) return {};
    return {"", table_.positive ? "log" : "yeo_johnson"};
  }

  // Every other trial of a kind learns the target in another scale: an ensemble gains from both.
  // The first trial of all does not: its folds make the quality, and a target that the sample has
  // not shown, such as a negative one, would fail them.
  void LearnOtherwise() {
    const Scale scale = OtherScale();
    if (scale.loss.empty() && scale.transform.empty()) return;
    if (!scale.transform.empty()) RepeatFirst();
    std::map<v1::ModelSpec::ArchitectureCase, int> of_kind;
    if (!trials_.empty()) of_kind[trials_[0].model().architecture_case()] = 1;
    for (v1::TrialSpec& trial : trials_) {
      const bool other = of_kind[trial.model().architecture_case()]++ % 2 == 1;
      const bool learns =
          !trial.model().has_kernel() && trial.model().lightgbm().boosting() != "rf";
      if (other || !learns) continue;
      if (!trial.has_train()) *trial.mutable_train() = resolved_.train();
      if (!scale.loss.empty()) trial.mutable_train()->mutable_loss()->set_kind(scale.loss);
      if (!scale.transform.empty()) trial.mutable_train()->set_target_transform(scale.transform);
    }
  }

  void AddLightgbm(const Lightgbm& setting) {
    if (!lightgbm_ || Full()) return;
    v1::LightgbmSpec& to = *Add("lightgbm").mutable_model()->mutable_lightgbm();
    to = DefaultsOf<v1::LightgbmSpec>();
    const double rate = RateOf(setting.learning_rate);
    to.set_num_iterations(Rounds(rate));
    to.set_early_stopping_round(StopRounds(rate));
    to.set_learning_rate(rate);
    to.set_num_leaves(setting.leaves);
    to.set_min_data_in_leaf(LeafRows(setting.leaf_rows));
    to.set_feature_fraction(ShareOfColumns(setting.columns));
    to.set_bagging_fraction(setting.row_share);
    to.set_bagging_freq(setting.row_share < 1 ? 1 : 0);
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
    if (!lightgbm_ || Full() || !MayTryForest(resolved_)) return;
    AddLightgbm({1, 512, 2, 1, 0.63, 0, 0});
    v1::LightgbmSpec& to = *trials_.back().mutable_model()->mutable_lightgbm();
    to.set_boosting("rf");
    to.set_num_iterations(kForestTrees);
    to.set_early_stopping_round(0);
    to.set_feature_fraction_bynode(classification_ ? 0.4 : 0.6);
    trials_.back().set_name("lightgbm-forest");
  }

  void AddXgboost(const Xgboost& setting) {
    if (!xgboost_ || Full()) return;
    v1::XgboostSpec& to = *Add("xgboost").mutable_model()->mutable_xgboost();
    to = DefaultsOf<v1::XgboostSpec>();
    const double rate = RateOf(setting.learning_rate);
    to.set_num_boost_round(Rounds(rate));
    to.set_early_stopping_rounds(StopRounds(rate));
    to.set_learning_rate(rate);
    to.set_max_depth(setting.depth);
    to.set_min_child_weight(setting.child_weight);
    to.set_subsample(setting.row_share);
    to.set_colsample_bytree(ShareOfColumns(setting.by_tree));
    to.set_colsample_bylevel(setting.by_level);
    to.set_colsample_bynode(setting.by_node);
    to.set_lambda(setting.l2);
    // Without a penalty a leaf of a few rare categories answers with their rows' own targets.
    if (setting.l2 == 0) to.set_max_cat_threshold(2);
  }

  void AddMlp(const Mlp& setting) {
    if (!mlp_ || Full()) return;
    v1::TrialSpec& trial = Add("mlp");
    v1::MlpSpec& to = *trial.mutable_model()->mutable_mlp();
    to = DefaultsOf<v1::MlpSpec>();
    to.clear_hidden();
    for (int i = 0; i < setting.layers; ++i) to.add_hidden(setting.width);
    to.set_dropout(setting.dropout);
    to.set_ensemble_members(setting.members);
    if (setting.embedded) {
      *to.mutable_numeric_embedding() = DefaultsOf<v1::NumericEmbeddingSpec>();
    }
    v1::TrainSpec& train = *trial.mutable_train();
    train = resolved_.train();
    // Epochs of few rows have few steps.
    const int times = few_rows_ ? 2 : 1;
    train.set_epochs(times * setting.epochs);
    train.set_patience(times * setting.patience);
    train.set_learning_rate(setting.learning_rate);
    train.set_weight_decay(setting.weight_decay);
    v1::JobSpec over, under;
    *over.mutable_train() = asked_;
    *under.mutable_train() = train;
    under.mutable_train()->mutable_loss()->clear_weights();
    MergeSpec(over, under);
    train = under.train();
  }

  // It tries several settings by itself.
  void AddKernel() {
    if (!kernel_ || Full()) return;
    *Add("kernel").mutable_model()->mutable_kernel() = DefaultsOf<v1::KernelSpec>();
  }

  static constexpr int kForestTrees = 100;
  double RateOf(double learning_rate) const {
    if (table_.classes <= kFewClasses) return learning_rate;
    return std::max(learning_rate, std::min(2 * learning_rate, kFastestRate));
  }
  // So many rounds that a model is done before, as a rule.
  static int Rounds(double learning_rate) {
    return std::clamp(static_cast<int>(std::lround(kSteps / learning_rate)), 200, 2000);
  }
  static int StopRounds(double learning_rate) {
    return std::clamp(static_cast<int>(std::lround(kPatientSteps / learning_rate)), 20, 100);
  }
  static constexpr double kSteps = 40, kPatientSteps = 2.5;

  const v1::JobSpec& resolved_;
  const v1::TrainSpec& asked_;
  const TableHint& table_;
  const bool classification_, few_rows_;
  const size_t most_;
  Draw draw_;
  bool lightgbm_ = false, xgboost_ = false, mlp_ = false, kernel_ = false;
  std::map<std::string, int> numbers_;
  std::vector<v1::TrialSpec> trials_;
};

}  // namespace

std::vector<v1::TrialSpec> MakePortfolio(const v1::JobSpec& resolved, const v1::TrainSpec& asked,
                                         const TableHint& table) {
  return Maker(resolved, asked, table).Make();
}

}  // namespace traind
