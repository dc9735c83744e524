#include "worker/trees/tree_spec.h"

#include <absl/algorithm/container.h>
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include "common/base/status_macros.h"
#include "common/job_rules/kernel_rules.h"
#include "common/job_rules/task_rules.h"
#include "common/plain/plain_json.h"

namespace traind {
namespace {

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("spec field ", what));
}

absl::Status TakeLightgbm(const plain::LightgbmSpec& from, TreeSpec& spec) {
  const bool bags = from.bagging_freq > 0 && from.bagging_fraction < 1;
  if (from.boosting == "rf" && !bags && from.feature_fraction >= 1) {
    return Wrong(
        "model.lightgbm.boosting: rf contradicts the rest: its trees would all be alike; set "
        "bagging_freq and a bagging_fraction below 1, or a feature_fraction below 1");
  }
  if (from.boosting == "rf" && !ForestsLearn(spec.loss_kind)) {
    return Wrong(
        absl::StrCat("model.lightgbm.boosting: rf contradicts train.loss.kind ", spec.loss_kind));
  }
  spec.lightgbm = from;
  spec.rounds = from.num_iterations;
  spec.patience = from.early_stopping_round;
  return absl::OkStatus();
}

absl::Status TakeXgboost(const plain::XgboostSpec& from, TreeSpec& spec) {
  const bool unlimited = from.max_depth == 0 && from.max_leaves == 0;
  if (unlimited && from.grow_policy == "depthwise") {
    return Wrong(
        "model.xgboost.max_depth: 0 contradicts grow_policy depthwise without max_leaves: a tree "
        "would have no limit");
  }
  spec.xgboost = from;
  spec.rounds = from.num_boost_round;
  spec.patience = from.early_stopping_rounds;
  return absl::OkStatus();
}

absl::Status TakeKernel(const plain::KernelSpec& from, bool forecast, TreeSpec& spec) {
  if (forecast) return Wrong("model.kernel: a kernel does not forecast");
  if (!KernelsLearn(spec.loss_kind)) {
    return Wrong(
        absl::StrCat("model.kernel: a kernel does not learn train.loss.kind ", spec.loss_kind));
  }
  spec.kernel = from;
  spec.rounds = static_cast<int64_t>(KernelSettings(from.alpha, from.gamma).size());
  return absl::OkStatus();
}

absl::Status TakeLoss(const plain::JobSpec& json, TreeSpec& spec) {
  const plain::LossSpec from = json.train.has_value() ? json.train->loss : plain::LossSpec();
  const std::vector<std::string> fitting = LossesOf(json.task.type, 0);
  const std::string kind = from.kind.empty() ? fitting[0] : from.kind;
  if (!absl::c_linear_search(fitting, kind)) {
    return Wrong(absl::StrCat("train.loss.kind: expected ", absl::StrJoin(fitting, ", ")));
  }
  spec.loss_kind = kind;
  if (spec.classification) {
    spec.loss = TreeLoss::kCrossEntropy;
  } else {
    spec.loss = kind == "mae"        ? TreeLoss::kAbsolute
                : kind == "huber"    ? TreeLoss::kHuber
                : kind == "smape"    ? TreeLoss::kSmape
                : kind == "quantile" ? TreeLoss::kQuantile
                : kind == "poisson"  ? TreeLoss::kPoisson
                : kind == "tweedie"  ? TreeLoss::kTweedie
                                     : TreeLoss::kSquared;
  }
  spec.huber_delta = from.huber_delta;
  spec.quantile = from.quantile.value_or(kDefaultQuantile);
  spec.tweedie_power = from.tweedie_power.value_or(kDefaultTweediePower);
  spec.class_weights.assign(from.weights.begin(), from.weights.end());
  const std::string transform = json.train ? json.train->target_transform : kNoTransform;
  if (const auto wrong = TransformContradiction(json.task.type, kind, transform)) {
    return Wrong(absl::StrCat(wrong->field, ": ", wrong->why));
  }
  const std::optional<TransformKind> known = ParseTransform(transform);
  if (!known.has_value()) {
    return Wrong("train.target_transform: expected none, log, yeo_johnson");
  }
  spec.transform = *known;
  spec.balanced_classes = from.class_weights == "balanced";
  if (spec.balanced_classes && !from.weights.empty()) {
    return Wrong("train.loss.weights: expected nothing where class_weights is balanced");
  }
  if (!spec.classification && (spec.balanced_classes || !from.weights.empty())) {
    return Wrong("train.loss: expected no class weights in a regression");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TreeSpec> ParseTreeSpec(absl::string_view text, int trial) {
  absl::StatusOr<plain::JobSpec> whole = plain::FromJson<plain::JobSpec>(text);
  if (!whole.ok()) return Wrong(whole.status().message());
  if (whole->task.type.empty()) whole->task.type = "classification";
  ASSIGN_OR_RETURN(const plain::JobSpec json, SpecOfTrial(*std::move(whole), trial));
  TreeSpec spec;
  spec.kind = KindOfTrial(json, trial);
  spec.classification = json.task.type == "classification";
  const bool forecast = json.task.type == "forecasting";
  if (!spec.classification && !forecast && json.task.type != "regression") {
    return Wrong(absl::StrCat("model: boosted trees do not take a task.type of ", json.task.type,
                              ", only classification, regression and forecasting"));
  }
  if (forecast) {
    spec.time = json.data.time.value_or("");
    spec.known_ahead = json.data.known_ahead;
  }
  const absl::StatusOr<Metric> metric = MetricOf(json);
  if (!metric.ok()) return Wrong(metric.status().message());
  spec.metric = *metric;
  spec.seed = json.data.seed;
  RETURN_IF_ERROR(TakeLoss(json, spec));
  if (json.model.lightgbm.has_value()) {
    RETURN_IF_ERROR(TakeLightgbm(*json.model.lightgbm, spec));
  } else if (json.model.xgboost.has_value()) {
    RETURN_IF_ERROR(TakeXgboost(*json.model.xgboost, spec));
  } else if (json.model.kernel.has_value()) {
    RETURN_IF_ERROR(TakeKernel(*json.model.kernel, forecast, spec));
  } else {
    return Wrong("model: expected lightgbm, xgboost or kernel, which this program trains");
  }
  return spec;
}

}  // namespace traind
