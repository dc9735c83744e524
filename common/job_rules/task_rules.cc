#include "common/job_rules/task_rules.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "common/plain/message_info.h"

namespace traind {
namespace {

constexpr char kQuantileLoss[] = "quantile";

const plain::FieldInfo* FindNetwork(absl::string_view network) {
  const plain::FieldInfo* const field = plain::ModelSpec::Info().Find(network);
  const bool known = field != nullptr && field->oneof != nullptr &&
                     field->oneof == absl::string_view("architecture");
  return known ? field : nullptr;
}

}  // namespace

Metric DefaultMetricOf(absl::string_view task_type, absl::string_view loss_kind) {
  for (const Metric metric : MetricsFor(task_type)) {
    if (loss_kind == kQuantileLoss && HasLevel(metric)) return metric;
  }
  return DefaultMetricFor(task_type);
}

absl::StatusOr<Metric> MetricOf(const plain::JobSpec& spec) {
  const plain::TaskSpec& task = spec.task;
  const plain::LossSpec loss = spec.train.has_value() ? spec.train->loss : plain::LossSpec();
  const auto at_level = [&loss](Metric metric) {
    return HasLevel(metric) ? AtLevel(metric, loss.quantile.value_or(kDefaultQuantile)) : metric;
  };
  if (task.metric.empty()) return at_level(DefaultMetricOf(task.type, loss.kind));
  std::vector<absl::string_view> fitting;
  for (const Metric metric : MetricsFor(task.type)) {
    if (MetricName(metric) == task.metric) return at_level(metric);
    fitting.push_back(MetricName(metric));
  }
  return absl::InvalidArgumentError(absl::StrCat("task.metric: '", task.metric, "' does not fit ",
                                                 task.type, "; use ",
                                                 absl::StrJoin(fitting, ", ")));
}

std::vector<std::string> LossesOf(absl::string_view task_type, int64_t mask_classes) {
  if (task_type == "classification") return {"cross_entropy"};
  if (task_type == "segmentation") return {mask_classes > 1 ? "dice_ce" : "dice_bce"};
  if (task_type == "forecasting") return {"mse", "mae", "huber", "smape"};
  return {"mse", "mae", "huber", "smape", kQuantileLoss, "poisson", "tweedie"};
}

bool RefusesNegativeTargets(absl::string_view loss_kind) {
  return loss_kind == "poisson" || loss_kind == "tweedie";
}

bool KernelsLearn(absl::string_view loss_kind) {
  return !RefusesNegativeTargets(loss_kind) && loss_kind != kQuantileLoss;
}

bool ForestsLearn(absl::string_view loss_kind) {
  return !RefusesNegativeTargets(loss_kind) && loss_kind != "smape";
}

double DefaultMomentum(absl::string_view optimizer_kind) {
  return optimizer_kind == "sgd" ? 0.9 : 0;
}

double DefaultLearningRate(absl::string_view optimizer_kind) {
  return optimizer_kind == "sgd" ? 1e-2 : 1e-3;
}

double DefaultWeightDecay(absl::string_view optimizer_kind) {
  return optimizer_kind == "adamw" ? 0.01 : 0;
}

bool MayBeNesterov(absl::string_view optimizer_kind, std::optional<double> momentum) {
  return optimizer_kind == "sgd" && momentum.value_or(DefaultMomentum(optimizer_kind)) > 0;
}

std::vector<Contradiction> LossContradictions(absl::string_view task_type, bool balanced,
                                              bool weights, double label_smoothing) {
  std::vector<Contradiction> all;
  if ((balanced || weights || label_smoothing > 0) && task_type != "classification") {
    all.push_back({"train.loss", "has class weights or label smoothing, which need classes"});
  }
  if (balanced && weights) {
    all.push_back({"train.loss.weights", "contradicts class_weights: balanced"});
  }
  return all;
}

std::optional<Contradiction> TransformContradiction(absl::string_view task_type,
                                                    absl::string_view loss_kind,
                                                    absl::string_view transform) {
  if (transform.empty() || transform == kNoTransform) return std::nullopt;
  constexpr char kField[] = "train.target_transform";
  if (task_type != "regression") {
    return Contradiction{kField, absl::StrCat("'", transform, "' is of task.type regression only")};
  }
  if (!RefusesNegativeTargets(loss_kind) && loss_kind != "smape") return std::nullopt;
  return Contradiction{kField, absl::StrCat("'", transform, "' contradicts train.loss.kind ",
                                            loss_kind, ", which is of the target itself")};
}

std::optional<Contradiction> WarmUpContradiction(bool steps, bool epochs, bool share) {
  if (steps + epochs + share <= 1) return std::nullopt;
  return Contradiction{"train.schedule",
                       "has more than one of warmup_steps, warmup_epochs, warmup_share"};
}

std::string NeedOfNetwork(absl::string_view network) {
  const plain::FieldInfo* const field = FindNetwork(network);
  return field == nullptr || field->needs == nullptr ? "" : field->needs;
}

std::string DefaultNetwork(absl::string_view media) {
  const std::string need = media.empty() ? "" : absl::StrCat("data.", media);
  for (const plain::FieldInfo& field : plain::ModelSpec::Info()) {
    if (FindNetwork(field.name) != nullptr && NeedOfNetwork(field.name) == need) return field.name;
  }
  return "";
}

bool IsSequential(absl::string_view network) {
  const plain::FieldInfo* const field = FindNetwork(network);
  return field != nullptr && field->sequence;
}

bool IsTrees(absl::string_view kind) {
  const plain::FieldInfo* const field = FindNetwork(kind);
  return field != nullptr && field->trees;
}

const char* StateFileSuffix(absl::string_view kind) {
  // The libraries of boosted trees have formats of their own.
  if (kind == "lightgbm") return "txt";
  return kind == "xgboost" ? "ubj" : "safetensors";
}

int64_t EpochsOfRounds(int64_t rounds) {
  constexpr int64_t kEpochs = 100;
  const int64_t per_epoch = std::max(int64_t{1}, (rounds + kEpochs - 1) / kEpochs);
  return (rounds + per_epoch - 1) / per_epoch;
}

std::string KindOfTrial(const plain::JobSpec& spec, int trial) {
  const auto at = static_cast<size_t>(trial);
  const plain::ModelSpec& model = at < spec.trials.size() ? spec.trials[at].model : spec.model;
  const plain::FieldInfo* const kind =
      plain::ChosenField(plain::ModelSpec::Info(), &model, "architecture");
  return kind == nullptr ? "" : kind->name;
}

absl::StatusOr<plain::JobSpec> SpecOfTrial(plain::JobSpec spec, int trial) {
  if (spec.trials.empty() && trial == 0) return spec;
  if (trial < 0 || static_cast<size_t>(trial) >= spec.trials.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("trials: there is no trial ", trial, ", but ", spec.trials.size()));
  }
  const plain::TrialSpec chosen = spec.trials[static_cast<size_t>(trial)];
  spec.model = chosen.model;
  if (chosen.train) spec.train = chosen.train;
  return spec;
}

int64_t PatchMultiple(int64_t unet_levels) { return int64_t{1} << (unet_levels - 1); }

bool IsPatchExtent(size_t axis, int64_t extent, int64_t unet_levels) {
  return (axis == 0 && extent == 1) || extent % PatchMultiple(unet_levels) == 0;
}

}  // namespace traind
