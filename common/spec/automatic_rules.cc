#include "common/spec/automatic_rules.h"

#include <absl/algorithm/container.h>
#include <absl/strings/str_cat.h>

#include <set>

#include "common/job_rules/kernel_rules.h"
#include "common/job_rules/task_rules.h"
#include "common/metrics/metrics.h"
#include "common/spec/field_text.h"
#include "common/spec/media_rules.h"
#include "common/spec/search_rules.h"

namespace traind {
namespace {

using Add = std::function<void(const std::string&, const std::string&)>;

constexpr int kMostQuantiles = 50;

int KernelRounds(const v1::KernelSpec& kernel) {
  return static_cast<int>(KernelSettings(kernel.alpha(), kernel.gamma()).size());
}

bool HasMetric(const char* type, const std::string& name) {
  return absl::c_any_of(MetricsFor(type),
                        [&](Metric metric) { return MetricName(metric) == name; });
}

// Why models of this kind, of which IsTrees is true, cannot learn this; empty: they can.
std::string AgainstTrees(const std::string& kind, const v1::JobSpec& spec,
                         const std::string& type) {
  if (type == "forecasting" && kind == "kernel") {
    return "does not forecast; take lightgbm, xgboost or mlp";
  }
  const std::string& loss = spec.train().loss().kind();
  if (kind == "kernel" && !KernelsLearn(loss)) {
    return absl::StrCat("learns the squared error, and not train.loss.kind ", loss);
  }
  if (type == "forecasting" && spec.data().has_horizon() && spec.data().horizon() == 0) {
    return "forecasts from data.horizon 1 on; use mlp, lstm or transformer";
  }
  if (spec.data().targets_size() > 1) return "learns one target; use mlp for several";
  if (spec.resources().device() == "cuda") return "trains on CPUs; leave resources.device out";
  if (!spec.resources().gpu().empty() || !spec.resources().gpu_memory().empty()) {
    return "trains on CPUs; leave resources.gpu and resources.gpu_memory out";
  }
  if (spec.resources().slots() > 1) {
    return absl::StrCat("trains a fold on one slot, but resources.slots is ",
                        spec.resources().slots(), "; folds run side by side in any case");
  }
  return "";
}

void CheckForest(const v1::LightgbmSpec& trees, const std::string& loss, const Add& add) {
  if (trees.boosting() != "rf") return;
  if (!ForestsLearn(loss)) {
    return add("model.lightgbm.boosting",
               absl::StrCat("'rf' does not learn train.loss.kind ", loss,
                            ": each of its trees is one step from the mean"));
  }
  // Unset, the shares are 1.
  const auto part = [](double share) { return share > 0 && share < 1; };
  if (part(trees.feature_fraction())) return;
  if (trees.bagging_freq() > 0 && part(trees.bagging_fraction())) return;
  add("model.lightgbm.boosting",
      "'rf' needs bagging_freq above 0 with bagging_fraction below 1, or feature_fraction below 1: "
      "its trees would be all the same");
}

void CheckDepth(const v1::XgboostSpec& trees, const Add& add) {
  if (!trees.has_max_depth() || trees.max_depth() > 0 || trees.max_leaves() > 0) return;
  if (trees.grow_policy() == "lossguide") return;
  add("model.xgboost.max_depth",
      "'0' needs max_leaves or grow_policy lossguide: a tree would have no limit");
}

void CheckKinds(const v1::JobSpec& spec, const std::string& type, const Add& add) {
  std::set<std::string> seen;
  const auto& kinds = spec.model().automatic().kinds();
  for (int i = 0; i < kinds.size(); ++i) {
    const std::string path = absl::StrCat("model.automatic.kinds[", i, "]");
    if (!seen.insert(kinds[i]).second) {
      add(path, absl::StrCat("'", Printable(kinds[i]), "' is there twice"));
    }
    const std::string against = IsTrees(kinds[i]) ? AgainstTrees(kinds[i], spec, type) : "";
    if (!against.empty()) add(path, absl::StrCat("'", kinds[i], "' ", against));
  }
  if (spec.train().seeds() > 1) {
    add("train.seeds", "is not of model.automatic, which tries other settings instead");
  }
}

// A spec with fields that only networks have (weights to start from, seeds) means a network.
bool MeansAutomatic(const v1::JobSpec& spec) {
  const std::string type = TypeOfSpec(spec).type;
  if (!MediaOf(spec.data()).empty() || type == "segmentation") return false;
  if (spec.train().shorten_sequences()) return false;
  if (spec.model().has_pretrained() || spec.train().seeds() > 1) return false;
  return AgainstTrees("lightgbm", spec, type).empty();
}

}  // namespace

TypeChoice TypeOfSpec(const v1::JobSpec& spec) {
  const v1::DataSpec& data = spec.data();
  const v1::LossSpec& loss = spec.train().loss();
  const std::string& metric = spec.task().metric();
  if (!spec.task().type().empty()) return {spec.task().type(), ""};
  if (data.has_volume()) return {"segmentation", "data.volume is set"};
  if (data.has_window()) return {"forecasting", "data.window is set"};
  if (data.has_horizon()) return {"forecasting", "data.horizon is set"};
  if (!data.known_ahead().empty()) return {"forecasting", "data.known_ahead is set"};
  if (data.rolling()) return {"forecasting", "data.rolling is set"};
  if (spec.predictions().quantiles_size() > 0) {
    return {"regression", "predictions.quantiles is set"};
  }
  for (const char* type : {"classification", "regression", "segmentation"}) {
    if (HasMetric(type, metric)) return {type, absl::StrCat("task.metric is ", metric)};
    if (!loss.kind().empty() && absl::c_linear_search(LossesOf(type, 1), loss.kind())) {
      return {type, absl::StrCat("train.loss.kind is ", loss.kind())};
    }
  }
  if (loss.weights_size() > 0 || loss.label_smoothing() > 0 || loss.class_weights() == "balanced") {
    return {"classification", "train.loss is one of classes"};
  }
  if (data.targets_size() > 1) return {"regression", "there are several targets"};
  return {};
}

void CheckAutomatic(const v1::JobSpec& spec, const std::string& type, const Add& add) {
  const std::string kind = NetworkName(spec.model());
  const bool automatic = spec.model().has_automatic();
  if (IsTrees(kind)) {
    const std::string against = AgainstTrees(kind, spec, type);
    if (!against.empty()) add(absl::StrCat("model.", kind), against);
  }
  if (spec.model().has_lightgbm()) {
    CheckForest(spec.model().lightgbm(), spec.train().loss().kind(), add);
  }
  if (spec.model().has_xgboost()) CheckDepth(spec.model().xgboost(), add);
  if (automatic) CheckKinds(spec, type, add);
  if ((automatic || IsTrees(kind)) && spec.model().has_pretrained()) {
    add("model.pretrained", absl::StrCat("is for networks; model.", kind, " has no weights"));
  }
}

void CheckKnownAhead(const v1::JobSpec& spec, const std::string& type, const Add& add) {
  const v1::DataSpec& data = spec.data();
  if (data.known_ahead().empty()) return;
  if (!type.empty() && type != "forecasting") {
    return add("data.known_ahead", "is of task.type forecasting only");
  }
  if (data.has_horizon() && data.horizon() == 0) {
    add("data.known_ahead", "is not needed with data.horizon 0: all columns of a row are known");
  }
  const std::string kind = NetworkName(spec.model());
  if (!kind.empty() && !spec.model().has_automatic() && !IsTrees(kind)) {
    add("data.known_ahead", absl::StrCat("is used by trees alone, and not by model.", kind,
                                         "; leave the model out or take lightgbm or xgboost"));
  }
  for (const std::string& column : data.known_ahead()) {
    if (column == data.target()) add("data.known_ahead", "names the target, which is predicted");
  }
}

void CheckQuantiles(const v1::PredictionsSpec& predictions, const std::string& type,
                    const Add& add) {
  const auto& levels = predictions.quantiles();
  if (levels.empty()) return;
  if (type == "classification" || type == "segmentation") {
    add("predictions.quantiles", absl::StrCat("are of numbers; this is a ", type));
  }
  if (levels.size() > kMostQuantiles) {
    add("predictions.quantiles",
        absl::StrCat("has ", levels.size(), " levels; ", kMostQuantiles, " are the most"));
  }
  for (int i = 1; i < levels.size(); ++i) {
    if (levels[i] > levels[i - 1]) continue;
    add(absl::StrCat("predictions.quantiles[", i, "]"),
        absl::StrCat(levels[i], " is not above ", levels[i - 1], "; levels ascend"));
  }
}

void ChooseModel(v1::JobSpec& spec) {
  if (!NetworkName(spec.model()).empty()) return;
  std::string kind = spec.has_search() ? KindOfSpace(spec.search()) : "";
  if (kind.empty() && MeansAutomatic(spec)) kind = spec.has_search() ? "lightgbm" : "automatic";
  if (kind.empty()) kind = DefaultNetwork(MediaOf(spec.data()));
  v1::ModelSpec& model = *spec.mutable_model();
  model.GetReflection()->MutableMessage(&model, model.GetDescriptor()->FindFieldByName(kind));
}

int EpochsAsked(const v1::JobSpec& resolved) {
  const bool trials = resolved.trials_size() > 0;
  const v1::ModelSpec& model = trials ? resolved.trials(0).model() : resolved.model();
  if (model.has_lightgbm()) {
    return static_cast<int>(EpochsOfRounds(model.lightgbm().num_iterations()));
  }
  if (model.has_xgboost()) {
    return static_cast<int>(EpochsOfRounds(model.xgboost().num_boost_round()));
  }
  if (model.has_kernel()) return KernelRounds(model.kernel());
  // One that tells of no epochs is an epoch by itself.
  if (model.has_command()) return std::max(1, model.command().epochs());
  const bool own = trials && resolved.trials(0).has_train();
  return own ? resolved.trials(0).train().epochs() : resolved.train().epochs();
}

std::vector<std::string> KindsToTry(const v1::JobSpec& spec) {
  const auto& named = spec.model().automatic().kinds();
  if (!named.empty()) return {named.begin(), named.end()};
  const auto& known = RulesOf(*v1::AutomaticSpec::descriptor()->FindFieldByName("kinds")).one_of();
  std::vector<std::string> kinds;
  for (const std::string& kind : known) {
    const bool fits = !IsTrees(kind) || AgainstTrees(kind, spec, TypeOfSpec(spec).type).empty();
    if (fits) kinds.push_back(kind);
  }
  return kinds;
}

bool MayTryForest(const v1::JobSpec& spec) { return ForestsLearn(spec.train().loss().kind()); }

}  // namespace traind
