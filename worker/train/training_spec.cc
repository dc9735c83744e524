#include "worker/train/training_spec.h"

#include <absl/algorithm/container.h>
#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/train/json_fields.h"

namespace traind {
namespace {

constexpr double kMostDecay = 0.999999;  // of averages over steps

absl::Status TakeTransformer(const JsonObject& json, ModelSpec& spec) {
  TransformerSpec& transformer = spec.transformer;
  RETURN_IF_ERROR(json.TakeInteger("width", 1, 4096, transformer.width));
  RETURN_IF_ERROR(json.TakeInteger("heads", 1, 64, transformer.heads));
  RETURN_IF_ERROR(json.TakeInteger("layers", 1, 48, transformer.layers));
  RETURN_IF_ERROR(json.TakeInteger("feedforward", 1, 16384, transformer.feedforward));
  if (transformer.width % transformer.heads != 0) {
    return WrongField(json.PathOf("width"), "a multiple of heads");
  }
  std::string norm = "post", pooling = "last";
  RETURN_IF_ERROR(json.Take("norm", norm));
  RETURN_IF_ERROR(json.Take("pooling", pooling));
  if (norm != "post" && norm != "pre") return WrongField(json.PathOf("norm"), "post or pre");
  if (pooling != "last" && pooling != "mean") {
    return WrongField(json.PathOf("pooling"), "last or mean");
  }
  transformer.pre_norm = norm == "pre";
  transformer.mean_pooling = pooling == "mean";
  return json.Take("dropout", 0, 0.95, spec.dropout);
}

absl::Status TakeTextEncoder(const JsonObject& json, ModelSpec& spec) {
  TextEncoderSpec& text = spec.text;
  RETURN_IF_ERROR(json.TakeInteger("width", 1, 4096, text.width));
  RETURN_IF_ERROR(json.TakeInteger("heads", 1, 64, text.heads));
  RETURN_IF_ERROR(json.TakeInteger("layers", 1, 48, text.layers));
  RETURN_IF_ERROR(json.TakeInteger("feedforward", 1, 16384, text.feedforward));
  if (text.width % text.heads != 0) return WrongField(json.PathOf("width"), "a multiple of heads");
  std::string attention = "disentangled";
  RETURN_IF_ERROR(json.Take("attention", attention));
  if (attention != "disentangled" && attention != "plain") {
    return WrongField(json.PathOf("attention"), "disentangled or plain");
  }
  text.disentangled = attention == "disentangled";
  return json.Take("dropout", 0, 0.95, spec.dropout);
}

absl::Status TakeText(const JsonObject& json, TextColumnsSpec& text) {
  RETURN_IF_ERROR(json.TakeList("columns", text.columns));
  RETURN_IF_ERROR(json.Take("tokenizer", text.tokenizer));
  if (text.tokenizer != "words" && text.tokenizer != "sentencepiece") {
    return WrongField(json.PathOf("tokenizer"), "words or sentencepiece");
  }
  RETURN_IF_ERROR(json.TakeInteger("vocabulary", 16, 1 << 18, text.vocabulary));
  return json.TakeInteger("max_tokens", 1, 4096, text.max_tokens);
}

constexpr char kPretrained[] = "pretrained";

absl::Status TakePretrainedFields(const JsonObject& root, TrainingSpec& spec) {
  const JsonObject json = root.Child("model").Child(kPretrained);
  if (!json.json().is_object()) return absl::OkStatus();
  PretrainedSpec& pretrained = spec.pretrained.emplace();
  RETURN_IF_ERROR(json.Take("file", pretrained.file));
  RETURN_IF_ERROR(json.Take("sha256", pretrained.sha256));
  const JsonObject map = json.Child("map");
  for (const auto& [parameter, tensors] : map.json().items()) {
    if (!tensors.is_string()) return WrongField(map.PathOf(parameter.c_str()), "a text");
    pretrained.map[parameter] = tensors.get<std::string>();
  }
  std::string tokenizer;
  RETURN_IF_ERROR(root.Child("data").Child("text").Take("model_file", tokenizer));
  pretrained.tokens_given = !tokenizer.empty();
  return absl::OkStatus();
}

absl::Status TakeModel(const JsonObject& model, ModelSpec& spec) {
  if (!model.json().is_object()) return absl::OkStatus();
  auto architecture = model.json().begin();
  if (architecture != model.json().end() && architecture.key() == kPretrained) ++architecture;
  if (architecture == model.json().end()) return absl::OkStatus();
  spec.architecture = architecture.key();
  const JsonObject json = model.Child(spec.architecture.c_str());
  if (spec.architecture == "mlp") {
    RETURN_IF_ERROR(json.TakeList("hidden", 1, 16384, spec.hidden));
    return json.Take("dropout", 0, 0.95, spec.dropout);
  }
  if (spec.architecture == "script") return json.Take("sha256", spec.script.sha256);
  if (spec.architecture == "lstm") {
    RETURN_IF_ERROR(json.TakeInteger("hidden", 1, 4096, spec.lstm.hidden));
    RETURN_IF_ERROR(json.TakeInteger("layers", 1, 16, spec.lstm.layers));
    return json.Take("dropout", 0, 0.95, spec.dropout);
  }
  if (spec.architecture == "unet3d") {
    RETURN_IF_ERROR(json.TakeInteger("base", 1, 512, spec.unet3d.base));
    return json.TakeInteger("levels", 1, 5, spec.unet3d.levels);
  }
  if (spec.architecture == "transformer") return TakeTransformer(json, spec);
  if (spec.architecture == "text") return TakeTextEncoder(json, spec);
  if (spec.architecture == "cnn") {
    spec.dropout = 0;
    RETURN_IF_ERROR(json.TakeInteger("width", 1, 1024, spec.cnn.width));
    RETURN_IF_ERROR(json.TakeList("blocks", 1, 64, spec.cnn.blocks));
    RETURN_IF_ERROR(json.Take("mirror", spec.cnn.mirror));
    return json.Take("dropout", 0, 0.95, spec.dropout);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("spec field model: this engine has no model \"", spec.architecture, "\""));
}

absl::Status TakeOptimizer(const JsonObject& train, TrainingSpec& spec) {
  const JsonObject json = train.Child("optimizer");
  OptimizerSpec& optimizer = spec.optimizer;
  std::string kind = "adamw";
  RETURN_IF_ERROR(json.Take("kind", kind));
  const auto known = ParseOptimizer(kind);
  if (!known.has_value()) return WrongField(json.PathOf("kind"), "adamw, adam, sgd or rmsprop");
  optimizer.kind = *known;
  const bool sgd = optimizer.kind == OptimizerKind::kSgd;
  if (optimizer.kind != OptimizerKind::kAdamW) optimizer.weight_decay = 0;
  if (sgd) optimizer.momentum = 0.9;
  spec.learning_rate = sgd ? 1e-2 : 1e-3;
  RETURN_IF_ERROR(json.Take("beta1", 0, kMostDecay, optimizer.beta1));
  RETURN_IF_ERROR(json.Take("beta2", 0, kMostDecay, optimizer.beta2));
  RETURN_IF_ERROR(json.Take("eps", 1e-12, 1, optimizer.eps));
  RETURN_IF_ERROR(json.Take("momentum", 0, kMostDecay, optimizer.momentum));
  RETURN_IF_ERROR(json.Take("nesterov", optimizer.nesterov));
  RETURN_IF_ERROR(json.Take("alpha", 0, kMostDecay, optimizer.alpha));
  RETURN_IF_ERROR(train.Take("weight_decay", 0, 10, optimizer.weight_decay));
  if (optimizer.nesterov && (!sgd || optimizer.momentum == 0)) {
    return WrongField(json.PathOf("nesterov"), "sgd with a momentum above 0");
  }
  double rate = 0;
  RETURN_IF_ERROR(train.Take("learning_rate", 0, 10, rate));
  if (rate > 0) spec.learning_rate = rate;
  std::string scaling = "none";
  RETURN_IF_ERROR(train.Take("scale_learning_rate", scaling));
  if (scaling != "none" && scaling != "linear" && scaling != "sqrt") {
    return WrongField("train.scale_learning_rate", "none, linear or sqrt");
  }
  spec.rate_scaling = scaling == "none"     ? RateScaling::kNone
                      : scaling == "linear" ? RateScaling::kLinear
                                            : RateScaling::kSqrt;
  RETURN_IF_ERROR(train.Take("clip_norm", 0, 1e6, spec.clip_norm));
  RETURN_IF_ERROR(train.Take("gradient_norm", spec.gradient_norm));
  return train.Take("ema", 0, kMostDecay, spec.ema_decay);
}

LossKind LossOfMasks(const TrainingSpec& spec) {
  return spec.patches->classes > 1 ? LossKind::kDiceCe : LossKind::kDiceBce;
}

absl::Status TakeLoss(const JsonObject& train, TrainingSpec& spec) {
  const JsonObject json = train.Child("loss");
  Objective& objective = spec.objective;
  objective.loss = spec.classification        ? LossKind::kCrossEntropy
                   : spec.patches.has_value() ? LossOfMasks(spec)
                                              : LossKind::kMse;
  std::string kind, weights = "none";
  RETURN_IF_ERROR(json.Take("kind", kind));
  if (!kind.empty()) {
    const auto known = ParseLoss(kind);
    const bool fits = !known.has_value()         ? false
                      : spec.patches.has_value() ? *known == objective.loss
                                                 : !IsOfMasks(*known);
    if (!fits || (*known == LossKind::kCrossEntropy) != spec.classification) {
      const bool one = spec.classification || spec.patches.has_value();
      return WrongField(json.PathOf("kind"),
                        one ? std::string(LossName(objective.loss)) : "mse, mae, huber or smape");
    }
    objective.loss = *known;
  }
  RETURN_IF_ERROR(json.Take("label_smoothing", 0, 0.999, objective.label_smoothing));
  RETURN_IF_ERROR(json.Take("class_weights", weights));
  if (weights != "none" && weights != "balanced") {
    return WrongField(json.PathOf("class_weights"), "none or balanced");
  }
  spec.balanced_classes = weights == "balanced";
  RETURN_IF_ERROR(json.TakeList("weights", 0.0, 1e6, objective.class_weights));
  if (spec.balanced_classes && !objective.class_weights.empty()) {
    return WrongField(json.PathOf("weights"), "nothing where class_weights is balanced");
  }
  const bool of_classes =
      objective.label_smoothing > 0 || spec.balanced_classes || !objective.class_weights.empty();
  if (of_classes && !spec.classification) {
    return WrongField("train.loss", "no label smoothing and no class weights in a regression");
  }
  double delta = 0;
  RETURN_IF_ERROR(json.Take("huber_delta", 0, 1e6, delta));
  if (delta > 0) objective.huber_delta = delta;
  return absl::OkStatus();
}

absl::Status TakeSchedule(const JsonObject& json, ScheduleSpec& schedule) {
  std::string kind = "cosine";
  RETURN_IF_ERROR(json.Take("kind", kind));
  const auto known = ScheduleByName(kind);
  if (!known.has_value()) {
    return WrongField(json.PathOf("kind"),
                      "cosine, constant, step, cosine_restarts, one_cycle or polynomial");
  }
  schedule.kind = *known;
  if (!json["warmup_steps"].is_null()) {
    RETURN_IF_ERROR(
        json.TakeInteger("warmup_steps", 0, 100'000'000, schedule.warmup_steps.emplace()));
  }
  RETURN_IF_ERROR(json.Take("warmup_epochs", 0, 1e5, schedule.warmup_epochs));
  RETURN_IF_ERROR(json.Take("warmup_share", 0, 1, schedule.warmup_share));
  if (schedule.warmup_steps.has_value() + schedule.warmup_epochs.has_value() +
          schedule.warmup_share.has_value() >
      1) {
    return WrongField("train.schedule", "one of warmup_steps, warmup_epochs and warmup_share");
  }
  RETURN_IF_ERROR(json.Take("least", 0, 1, schedule.least));
  RETURN_IF_ERROR(json.Take("period", 1e-6, 1e5, schedule.period));
  RETURN_IF_ERROR(json.Take("gamma", 0, 1, schedule.gamma));
  RETURN_IF_ERROR(json.TakeInteger("period_growth", 1, 100, schedule.period_growth));
  RETURN_IF_ERROR(json.Take("power", 0, 100, schedule.power));
  RETURN_IF_ERROR(json.Take("rise", 0, 1, schedule.rise));
  RETURN_IF_ERROR(json.Take("start_divisor", 1, 1e12, schedule.start_divisor));
  return json.Take("end_divisor", 1, 1e12, schedule.end_divisor);
}

absl::Status TakeGang(const JsonObject& train, TrainingSpec& spec) {
  std::string transport;
  RETURN_IF_ERROR(train.Take("collective", transport));
  if (!transport.empty()) {
    const auto known = TransportByName(transport);
    if (!known.has_value()) return WrongField("train.collective", "auto, shm, gloo or nccl");
    spec.transport = *known;
  }
  const JsonObject json = train.Child("rendezvous");
  RETURN_IF_ERROR(json.Take("host", spec.rendezvous.host));
  RETURN_IF_ERROR(json.TakeInteger("port", 0, 65000, spec.rendezvous.port));
  std::string timeout;
  RETURN_IF_ERROR(json.Take("timeout", timeout));
  if (!timeout.empty() && !absl::ParseDuration(timeout, &spec.rendezvous.timeout)) {
    return WrongField(json.PathOf("timeout"), "a duration such as 30s");
  }
  return absl::OkStatus();
}

absl::Status TakeImages(const JsonObject& root, TrainingSpec& spec) {
  spec.images = root.Child("data")["image"].is_object();
  if (spec.images != (spec.model.architecture == "cnn")) {
    return WrongField("data.image", spec.images ? "read by model.cnn" : "there for model.cnn");
  }
  const JsonObject augment = root.Child("train").Child("augment");
  RETURN_IF_ERROR(augment.Take("flip", spec.augmentation.flip));
  RETURN_IF_ERROR(augment.Take("crop", 0, 0.5, spec.augmentation.crop));
  RETURN_IF_ERROR(augment.Take("mixup", 0, 1, spec.mixup));
  return augment.Take("colour", 0, 1, spec.augmentation.colour);
}

absl::Status TakePatchChanges(const JsonObject& augment, PatchChanges& changes) {
  constexpr std::array<absl::string_view, 3> kAxes = {"depth", "height", "width"};
  std::vector<std::string> mirror;
  RETURN_IF_ERROR(augment.TakeList("mirror", mirror));
  for (const std::string& name : mirror) {
    const auto axis = absl::c_find(kAxes, name);
    if (axis == kAxes.end()) return WrongField(augment.PathOf("mirror"), "depth, height, width");
    changes.mirror[static_cast<size_t>(axis - kAxes.begin())] = true;
  }
  return augment.Take("intensity", 0, 1, changes.intensity);
}

absl::Status TakePatches(const JsonObject& train, TrainingSpec& spec) {
  constexpr int64_t kDefaultBatch = 2;
  const JsonObject json = train.Child("patches");
  PatchSpec& patches = *spec.patches;
  RETURN_IF_ERROR(TakePatchChanges(train.Child("augment"), patches.changes));
  std::vector<int64_t> size(patches.size.begin(), patches.size.end());
  RETURN_IF_ERROR(json.TakeList("size", 1, 1024, size));
  const int64_t multiple = int64_t{1} << (spec.model.unet3d.levels - 1);
  if (size.size() != 3 || absl::c_any_of(size, [&](int64_t e) { return e % multiple != 0; })) {
    return WrongField(json.PathOf("size"),
                      absl::StrCat("depth, height and width, multiples of ", multiple));
  }
  absl::c_copy(size, patches.size.begin());
  if (spec.batch == 0) spec.batch = kDefaultBatch;
  return json.TakeInteger("per_volume", 1, 1024, patches.per_volume);
}

absl::Status TakeTrain(const JsonObject& train, TrainingSpec& spec) {
  RETURN_IF_ERROR(train.TakeInteger("epochs", 1, 100'000, spec.epochs));
  RETURN_IF_ERROR(train.TakeInteger("batch", 0, 1 << 20, spec.batch));
  if (spec.patches.has_value()) RETURN_IF_ERROR(TakePatches(train, spec));
  RETURN_IF_ERROR(train.TakeInteger("accumulation", 1, 4096, spec.accumulation));
  RETURN_IF_ERROR(train.TakeInteger("patience", 0, 100'000, spec.patience));
  RETURN_IF_ERROR(train.Take("shuffle", spec.shuffle));
  RETURN_IF_ERROR(train.TakeInteger("checkpoint_epochs", 0, 100'000, spec.checkpoint_epochs));
  RETURN_IF_ERROR(train.TakeInteger("keep_best", 0, 100, spec.keep_best));
  std::string precision, recompute;
  RETURN_IF_ERROR(train.Take("precision", precision));
  if (!precision.empty() && precision != "auto") {
    spec.precision = PrecisionByName(precision);
    if (!spec.precision.has_value()) {
      return WrongField("train.precision", "auto, fp32, tf32, bf16 or fp16");
    }
  }
  RETURN_IF_ERROR(train.Take("recompute", recompute));
  if (!recompute.empty() && recompute != "auto") {
    if (recompute != "on" && recompute != "off") {
      return WrongField("train.recompute", "auto, on or off");
    }
    spec.recompute = recompute == "on";
  }
  RETURN_IF_ERROR(train.Take("shorten_sequences", spec.shorten_sequences));
  const JsonObject paths = train.Child("paths");
  RETURN_IF_ERROR(paths.Take("handwritten_backward", spec.paths.handwritten_backward));
  RETURN_IF_ERROR(paths.Take("handwritten_forward", spec.paths.handwritten_forward));
  RETURN_IF_ERROR(paths.Take("fused_optimizer", spec.paths.fused_optimizer));
  RETURN_IF_ERROR(paths.Take("cuda_graph", spec.paths.cuda_graph));
  RETURN_IF_ERROR(paths.Take("cudnn_benchmark", spec.paths.cudnn_benchmark));
  RETURN_IF_ERROR(TakeOptimizer(train, spec));
  RETURN_IF_ERROR(TakeLoss(train, spec));
  RETURN_IF_ERROR(TakeSchedule(train.Child("schedule"), spec.schedule));
  return TakeGang(train, spec);
}

}  // namespace

absl::StatusOr<TrainingSpec> ParseTrainingSpec(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("the spec is no JSON object");
  const JsonObject root(json, "");
  TrainingSpec spec;
  const JsonObject task = root.Child("task");
  std::string type = "classification", metric;
  RETURN_IF_ERROR(task.Take("type", type));
  const bool masks = type == "segmentation";
  if (type != "classification" && type != "regression" && type != "forecasting" && !masks) {
    return WrongField("task.type", "classification, regression, forecasting or segmentation");
  }
  spec.classification = type == "classification";
  RETURN_IF_ERROR(task.Take("metric", metric));
  if (metric.empty()) metric = std::string(MetricName(DefaultMetricFor(type)));
  ASSIGN_OR_RETURN(spec.metric, MetricByName(metric));
  if (IsClassification(spec.metric) != spec.classification ||
      IsSegmentation(spec.metric) != masks) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec field task.metric: ", metric, " is no metric of ", type));
  }
  RETURN_IF_ERROR(root.Child("data").Take("seed", spec.seed));
  RETURN_IF_ERROR(root.Child("data").TakeInteger("folds", 1, 100, spec.folds));
  RETURN_IF_ERROR(TakeText(root.Child("data").Child("text"), spec.text));
  RETURN_IF_ERROR(TakeModel(root.Child("model"), spec.model));
  RETURN_IF_ERROR(TakePretrainedFields(root, spec));
  RETURN_IF_ERROR(TakeImages(root, spec));
  if ((spec.model.architecture == "unet3d") != masks) {
    return WrongField("model", masks ? "unet3d" : "another than unet3d, which is of segmentation");
  }
  if (masks) {
    PatchSpec& patches = spec.patches.emplace();
    std::vector<std::string> classes;
    RETURN_IF_ERROR(root.Child("data").Child("volume").TakeList("classes", classes));
    patches.classes = std::max(1, static_cast<int>(classes.size()));
  }
  RETURN_IF_ERROR(TakeTrain(root.Child("train"), spec));
  return spec;
}

}  // namespace traind
