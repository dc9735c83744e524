#include "worker/train/training_spec.h"

#include <absl/algorithm/container.h>
#include <absl/status/status.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "common/job_rules/task_rules.h"
#include "common/plain/plain_json.h"

namespace traind {
namespace {

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("spec field ", what));
}

absl::Status WrongField(absl::string_view path, absl::string_view expected) {
  return Wrong(absl::StrCat(path, ": expected ", expected));
}

absl::Status Wrong(const Contradiction& contradiction) {
  return Wrong(absl::StrCat(contradiction.field, ": ", contradiction.why));
}

// A network of a newer engine must not be trained as another one.
absl::Status CheckKnown(const std::vector<std::string>& unknown_keys) {
  for (absl::string_view key : unknown_keys) {
    if (!absl::ConsumePrefix(&key, "model.") || absl::StrContains(key, ".")) continue;
    return Wrong(absl::StrCat("model: this engine has no model \"", key, "\""));
  }
  return absl::OkStatus();
}

// The media that rows have besides their columns: image, text, volume, or none.
std::string MediaOf(const plain::JobSpec& spec) {
  if (spec.task.type == "segmentation") return "volume";
  const auto* const media = plain::ChosenField(plain::DataSpec::Info(), &spec.data, "media");
  return media == nullptr ? "" : media->name;
}

absl::Status TakeModel(const plain::JobSpec& json, TrainingSpec& spec) {
  const std::string media = MediaOf(json);
  spec.model = json.model;
  if (NetworkOf(spec.model) == nullptr) {
    plain::ChooseField(ModelSpec::Info(), &spec.model, "architecture", DefaultNetwork(media));
  }
  const std::string network = NetworkName(spec.model), need = NeedOfNetwork(network);
  const std::string data = media.empty() ? "" : absl::StrCat("data.", media);
  if (!need.empty() && need != data) {
    return WrongField("model", absl::StrCat("another than ", network, ", which needs ", need));
  }
  if (!data.empty() && need != data) {
    return WrongField("model", absl::StrCat(DefaultNetwork(media), ", which reads ", data));
  }
  return absl::OkStatus();
}

absl::Status TakePretrained(const plain::JobSpec& json, TrainingSpec& spec) {
  if (!json.model.pretrained.has_value()) return absl::OkStatus();
  const plain::PretrainedSpec& from = *json.model.pretrained;
  PretrainedSpec& to = spec.pretrained.emplace();
  to.file = from.file;
  to.sha256 = from.sha256;
  to.map = from.map;
  to.tokens_given = !spec.text.model_file.empty();
  if (from.folder.empty()) return absl::OkStatus();
  if (spec.model.text) to.architecture = spec.model.text->architecture;
  if (spec.model.cnn) {
    to.architecture = spec.model.cnn->architecture;
    ASSIGN_OR_RETURN(spec.images_seen, ParseImageConfig(to.architecture, from.config));
  }
  return absl::OkStatus();
}

absl::Status TakeOptimizer(const plain::TrainSpec& train, TrainingSpec& spec) {
  const plain::OptimizerSpec& from = train.optimizer;
  spec.optimizer = OptimizerSettings(from);
  spec.optimizer.kind = *ParseOptimizer(from.kind);
  spec.optimizer.momentum = from.momentum.value_or(DefaultMomentum(from.kind));
  spec.optimizer.weight_decay = train.weight_decay.value_or(DefaultWeightDecay(from.kind));
  spec.learning_rate =
      train.learning_rate > 0 ? train.learning_rate : DefaultLearningRate(from.kind);
  if (from.nesterov && !MayBeNesterov(from.kind, from.momentum)) {
    return WrongField("train.optimizer.nesterov", "sgd with a momentum above 0");
  }
  const std::string& scaling = train.scale_learning_rate;
  spec.rate_scaling = scaling == "linear" ? RateScaling::kLinear
                      : scaling == "sqrt" ? RateScaling::kSqrt
                                          : RateScaling::kNone;
  spec.clip_norm = train.clip_norm;
  spec.gradient_norm = train.gradient_norm;
  spec.ema_decay = train.ema;
  spec.ema_warmup = train.ema_warmup;
  spec.swa = train.swa;
  spec.find_rate = train.find_learning_rate;
  if (spec.swa > 0 && spec.ema_decay > 0) return WrongField("train.swa", "no train.ema beside it");
  spec.frozen_epochs = static_cast<int>(train.freeze.epochs);
  spec.frozen_rate =
      train.freeze.learning_rate > 0 ? train.freeze.learning_rate : DefaultLearningRate(from.kind);
  spec.thaw_layers = train.freeze.thaw_layers;
  spec.layer_decay = train.layer_decay;
  spec.decay_norms = train.decay_norms.value_or(true);
  return absl::OkStatus();
}

absl::Status TakeTransform(const std::string& type, const std::string& loss,
                           const std::string& transform, TrainingSpec& spec) {
  if (const auto wrong = TransformContradiction(type, loss, transform)) return Wrong(*wrong);
  const std::optional<TransformKind> kind = ParseTransform(transform);
  if (!kind.has_value()) return WrongField("train.target_transform", "none, log, yeo_johnson");
  spec.transform = *kind;
  return absl::OkStatus();
}

absl::Status TakeLoss(const plain::JobSpec& json, TrainingSpec& spec) {
  const plain::LossSpec& from = json.train->loss;
  const auto classes = json.data.volume ? json.data.volume->classes.size() : 0;
  const std::vector<std::string> fitting = LossesOf(json.task.type, static_cast<int64_t>(classes));
  const std::string& kind = from.kind.empty() ? fitting[0] : from.kind;
  if (!absl::c_linear_search(fitting, kind)) {
    return WrongField("train.loss.kind", absl::StrJoin(fitting, ", "));
  }
  Objective& objective = spec.objective;
  objective.loss = *ParseLoss(kind);
  objective.label_smoothing = from.label_smoothing;
  objective.class_weights.assign(from.weights.begin(), from.weights.end());
  objective.huber_delta = from.huber_delta;
  objective.quantile = from.quantile.value_or(kDefaultQuantile);
  objective.tweedie_power = from.tweedie_power.value_or(kDefaultTweediePower);
  spec.balanced_classes = from.class_weights == "balanced";
  const std::vector<Contradiction> wrong = LossContradictions(
      json.task.type, spec.balanced_classes, !from.weights.empty(), from.label_smoothing);
  if (!wrong.empty()) return Wrong(wrong[0]);
  return TakeTransform(json.task.type, kind, json.train->target_transform, spec);
}

absl::Status TakeSchedule(const plain::ScheduleSpec& from, TrainingSpec& spec) {
  spec.schedule = from;
  const auto wrong = WarmUpContradiction(
      from.warmup_steps.has_value(), from.warmup_epochs.has_value(), from.warmup_share.has_value());
  return wrong ? Wrong(*wrong) : absl::OkStatus();
}

PatchChanges ChangesOf(const plain::AugmentSpec& augment) {
  constexpr std::array<absl::string_view, 3> kAxes = {"depth", "height", "width"};
  PatchChanges changes;
  for (size_t axis = 0; axis < kAxes.size(); ++axis) {
    changes.mirror[axis] = absl::c_linear_search(augment.mirror, kAxes[axis]);
  }
  changes.intensity = augment.intensity;
  changes.warp = {augment.rotate, augment.scale, augment.elastic};
  return changes;
}

absl::Status TakePatches(const plain::JobSpec& json, TrainingSpec& spec) {
  constexpr int64_t kDefaultBatch = 2;
  const plain::PatchSpec from = json.train->patches.value_or(plain::PatchSpec());
  PatchSpec& patches = spec.patches.emplace();
  patches.changes = ChangesOf(json.train->augment.value_or(plain::AugmentSpec()));
  const int64_t levels = json.model.unet3d.value_or(plain::Unet3dSpec()).levels;
  bool fit = from.size.size() == patches.size.size();
  for (size_t axis = 0; axis < from.size.size(); ++axis) {
    fit = fit && IsPatchExtent(axis, from.size[axis], levels);
  }
  if (!fit) {
    return WrongField("train.patches.size", absl::StrCat("depth, height and width, multiples of ",
                                                         PatchMultiple(levels)));
  }
  absl::c_copy(from.size, patches.size.begin());
  patches.per_volume = from.per_volume;
  const size_t classes = json.data.volume ? json.data.volume->classes.size() : 0;
  patches.classes = static_cast<int>(std::max<size_t>(1, classes));
  if (spec.batch == 0) spec.batch = kDefaultBatch;
  return absl::OkStatus();
}

void TakeAugmentation(const plain::AugmentSpec& from, TrainingSpec& spec) {
  spec.augmentation.flip = from.flip;
  spec.augmentation.crop = from.crop;
  spec.augmentation.colour = from.colour;
  spec.augmentation.rand_changes = static_cast<int>(from.rand_augment);
  spec.augmentation.rand_magnitude = static_cast<int>(from.rand_magnitude);
  spec.mixup = from.mixup;
  spec.cutmix = from.cutmix;
}

absl::Status TakeTrain(const plain::JobSpec& json, TrainingSpec& spec) {
  const plain::TrainSpec& train = *json.train;
  spec.epochs = static_cast<int>(train.epochs);
  spec.batch = train.batch;
  spec.accumulation = train.accumulation;
  spec.patience = static_cast<int>(train.patience);
  spec.shuffle = train.shuffle;
  spec.checkpoints_by_cost = train.checkpoint_every == absl::ZeroDuration();
  spec.checkpoint_epochs = static_cast<int>(train.checkpoint_epochs);
  spec.keep_best = static_cast<int>(train.keep_best);
  if (!train.precision.empty()) spec.precision = PrecisionByName(train.precision);
  spec.half_answers = train.inference_precision != "fp32";
  if (!train.recompute.empty()) spec.recompute = train.recompute == "on";
  spec.shorten_sequences = train.shorten_sequences;
  spec.paths = train.paths;
  if (!train.collective.empty()) spec.transport = *TransportByName(train.collective);
  spec.rendezvous = train.rendezvous;
  if (train.augment.has_value()) TakeAugmentation(*train.augment, spec);
  RETURN_IF_ERROR(TakeOptimizer(train, spec));
  RETURN_IF_ERROR(TakeLoss(json, spec));
  return TakeSchedule(train.schedule, spec);
}

}  // namespace

absl::StatusOr<TrainingSpec> ParseTrainingSpec(absl::string_view text, int trial) {
  std::vector<std::string> unknown_keys;
  absl::StatusOr<plain::JobSpec> json = plain::FromJson<plain::JobSpec>(text, &unknown_keys);
  if (!json.ok()) return Wrong(json.status().message());
  RETURN_IF_ERROR(CheckKnown(unknown_keys));
  json = SpecOfTrial(*std::move(json), trial);
  if (!json.ok()) return Wrong(json.status().message());
  if (json->task.type.empty()) json->task.type = "classification";
  if (!json->train.has_value()) json->train.emplace();
  TrainingSpec spec;
  spec.classification = json->task.type == "classification";
  const absl::StatusOr<Metric> metric = MetricOf(*json);
  if (!metric.ok()) return Wrong(metric.status().message());
  spec.metric = *metric;
  spec.seed = json->data.seed;
  spec.folds = static_cast<int>(json->data.folds);
  spec.ranks = static_cast<int>(json->resources.slots);
  spec.images = json->data.image.has_value();
  if (json->data.text.has_value()) spec.text = *json->data.text;
  RETURN_IF_ERROR(TakeModel(*json, spec));
  RETURN_IF_ERROR(TakePretrained(*json, spec));
  RETURN_IF_ERROR(TakeTrain(*json, spec));
  if (json->task.type == "segmentation") RETURN_IF_ERROR(TakePatches(*json, spec));
  return spec;
}

}  // namespace traind
