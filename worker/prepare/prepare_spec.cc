#include "worker/prepare/prepare_spec.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/job_rules/task_rules.h"
#include "common/plain/plain_json.h"

namespace traind {
namespace {

absl::Status Wrong(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

absl::Status TakeTask(const plain::JobSpec& spec, PrepareSpec& result) {
  const plain::TaskSpec& task = spec.task;
  ASSIGN_OR_RETURN(result.metric, MetricOf(spec));
  if (spec.train.has_value()) {
    result.loss = spec.train->loss.kind;
    result.logarithm = spec.train->target_transform == "log";
  }
  result.forecasting = task.type == "forecasting";
  result.target_kind = task.type == "classification" ? TargetKind::kClasses : TargetKind::kValue;
  return absl::OkStatus();
}

absl::Status TakeVolume(const plain::DataSpec& data, PrepareSpec& result) {
  const bool masks = IsSegmentation(result.metric);
  if (data.volume.has_value() != masks) {
    return Wrong("data.volume", masks ? "is missing" : "needs task.type: segmentation");
  }
  if (!masks) return absl::OkStatus();
  const plain::VolumeSpec& volume = *data.volume;
  VolumeFields& fields = result.volume.emplace();
  fields.image = volume.image;
  fields.mask = volume.mask;
  fields.classes = volume.classes;
  fields.treatment.largest_component = volume.components == "largest";
  fields.treatment.choose_components = volume.components == "auto";
  fields.median_spacing = volume.spacing == "auto";
  if (volume.spacings.empty()) return absl::OkStatus();
  Spacing& spacing = fields.treatment.spacing.emplace();
  if (volume.spacings.size() != spacing.size())
    return Wrong("data.volume.spacing", "has not three numbers");
  std::copy(volume.spacings.begin(), volume.spacings.end(), spacing.begin());
  return absl::OkStatus();
}

// data.targets, or data.target alone.
absl::Status TakeTargets(const plain::DataSpec& data, PrepareSpec& result) {
  // The target column of volumes is made of the masks.
  result.target = result.volume ? kForegroundColumn : data.target;
  result.more_targets = data.targets;
  if (result.target.empty() && !data.targets.empty()) {
    result.target = data.targets[0];
    result.more_targets.erase(result.more_targets.begin());
  }
  if (result.target.empty()) return Wrong("data.target", "is missing");
  if (!result.more_targets.empty() && result.target_kind == TargetKind::kClasses) {
    return Wrong("data.target", "a classification has one target");
  }
  if (result.target == result.id) return Wrong("data.id", "is the target");
  return absl::OkStatus();
}

absl::Status TakeSplit(const plain::DataSpec& data, PrepareSpec& result) {
  SplitSpec& split = result.split;
  split.folds = static_cast<int>(data.folds);
  split.seed = data.seed;
  const absl::StatusOr<SplitKind> kind = SplitByName(data.split.value_or(""));
  if (!kind.ok()) return Wrong("data.split", kind.status().message());
  split.kind = *kind;
  result.time = data.time.value_or("");
  result.series = data.series.value_or("");
  result.group = data.group.value_or("");
  result.fold_column = data.fold_column.value_or("");
  if (!result.forecasting) return absl::OkStatus();
  if (result.time.empty()) return Wrong("data.time", "is missing: a forecast needs it");
  split.shape.window = data.window.value_or(kDefaultWindow);
  split.shape.horizon = data.horizon.value_or(kDefaultHorizon);
  split.shape.rolling = data.rolling.value_or(false);
  return absl::OkStatus();
}

absl::Status TakeText(const plain::TextSpec& text, PrepareSpec& result) {
  if (text.columns.empty()) return Wrong("data.text.columns", "is missing");
  result.text_columns = text.columns;
  result.tokenizer_of_folds = text.tokenizer != "words";
  result.vocabulary = text.vocabulary;
  result.tokenizer_file = text.model_file;
  return absl::OkStatus();
}

void TakeModel(const plain::ModelSpec& model, PrepareSpec& result) {
  if (model.script.has_value()) {
    result.script = model.script->file;
    result.script_sha256 = model.script->sha256;
  }
  if (model.pretrained.has_value()) {
    result.weights = model.pretrained->file;
    result.weights_sha256 = model.pretrained->sha256;
    result.tokenizer_config = model.pretrained->tokenizer_config;
  }
}

}  // namespace

absl::StatusOr<PrepareSpec> ParsePrepareSpec(absl::string_view json) {
  ASSIGN_OR_RETURN(const plain::JobSpec spec, plain::FromJson<plain::JobSpec>(json));
  const plain::DataSpec& data = spec.data;
  RETURN_IF_ERROR(plain::CheckRequired(data, "data"));
  RETURN_IF_ERROR(plain::CheckRequired(spec.task, "task"));
  PrepareSpec result;
  RETURN_IF_ERROR(TakeTask(spec, result));
  result.train = data.train;
  result.test = data.test;
  result.id = data.id;
  RETURN_IF_ERROR(TakeVolume(data, result));
  RETURN_IF_ERROR(TakeTargets(data, result));
  RETURN_IF_ERROR(TakeSplit(data, result));
  result.text_features = data.text_features && !result.forecasting;
  if (data.text.has_value()) RETURN_IF_ERROR(TakeText(*data.text, result));
  if (data.image.has_value()) {
    ASSIGN_OR_RETURN(result.image, ImageFieldsOf(*data.image));
  }
  result.form = FormOf(spec.predictions);
  TakeModel(spec.model, result);
  result.program = UserProgramOf(spec);
  return result;
}

}  // namespace traind
