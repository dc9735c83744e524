#include "worker/prepare/prepare_spec.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/status_macros.h"

namespace traind {
namespace {

using Json = nlohmann::json;

absl::Status Wrong(absl::string_view field, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", what));
}

// Text at object[key]; "" where it is absent or null.
absl::StatusOr<std::string> Text(const Json& object, absl::string_view section, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || it->is_null()) return "";
  if (!it->is_string()) return Wrong(absl::StrCat(section, ".", key), "must be text");
  return it->get<std::string>();
}

// A whole number at object[key], as such or as text; 0 where it is absent.
absl::StatusOr<uint64_t> Number(const Json& object, const char* key) {
  const auto it = object.find(key);
  uint64_t value = 0;
  if (it == object.end() || it->is_null()) return value;
  if (it->is_number_unsigned()) return it->get<uint64_t>();
  if (it->is_string() && absl::SimpleAtoi(it->get_ref<const std::string&>(), &value)) return value;
  return Wrong(absl::StrCat("data.", key), "must be a whole number, 0 or more");
}

absl::Status TakeTask(const Json& task, PrepareSpec& result) {
  ASSIGN_OR_RETURN(const std::string type, Text(task, "task", "type"));
  if (type != "classification" && type != "regression" && type != "forecasting" &&
      type != "segmentation") {
    return Wrong("task.type", "must be classification, regression, forecasting or segmentation");
  }
  const bool classes = type == "classification", masks = type == "segmentation";
  result.forecasting = type == "forecasting";
  result.target_kind = classes ? TargetKind::kClasses : TargetKind::kValue;
  ASSIGN_OR_RETURN(std::string metric, Text(task, "task", "metric"));
  if (metric.empty()) metric = std::string(MetricName(DefaultMetricFor(type)));
  const absl::StatusOr<Metric> known = MetricByName(metric);
  if (!known.ok()) return Wrong("task.metric", known.status().message());
  result.metric = *known;
  if (IsClassification(result.metric) != classes || IsSegmentation(result.metric) != masks) {
    return Wrong("task.metric", absl::StrCat(metric, " does not suit task.type: ", type));
  }
  return absl::OkStatus();
}

// Of data.volume; none where there is no such field.
absl::Status TakeVolume(const Json& data, PrepareSpec& result) {
  const bool masks = IsSegmentation(result.metric);
  const auto it = data.find("volume");
  if ((it != data.end() && it->is_object()) != masks) {
    return Wrong("data.volume", masks ? "is missing" : "needs task.type: segmentation");
  }
  if (!masks) return absl::OkStatus();
  VolumeFields& columns = result.volume.emplace();
  ASSIGN_OR_RETURN(columns.image, Text(*it, "data.volume", "image"));
  ASSIGN_OR_RETURN(columns.mask, Text(*it, "data.volume", "mask"));
  if (columns.image.empty()) columns.image = "image";
  if (columns.mask.empty()) columns.mask = "mask";
  const auto classes = it->find("classes");
  if (classes == it->end() || classes->is_null()) return absl::OkStatus();
  if (!classes->is_array()) return Wrong("data.volume.classes", "must be a list");
  for (const Json& name : *classes) {
    if (!name.is_string()) return Wrong("data.volume.classes", "must be a list of texts");
    columns.classes.push_back(name.get<std::string>());
  }
  return absl::OkStatus();
}

// data.targets, or data.target alone.
absl::Status TakeTargets(const Json& data, PrepareSpec& result) {
  ASSIGN_OR_RETURN(result.target, Text(data, "data", "target"));
  // Its own column is made of the masks.
  if (result.volume) result.target = kForegroundColumn;
  const auto it = data.find("targets");
  if (it != data.end() && !it->is_null()) {
    if (!it->is_array()) return Wrong("data.targets", "must be a list");
    for (const Json& item : *it) {
      if (!item.is_string()) return Wrong("data.targets", "must be a list of texts");
      if (result.target.empty()) {
        result.target = item.get<std::string>();
      } else {
        result.more_targets.push_back(item.get<std::string>());
      }
    }
  }
  if (result.target.empty()) return Wrong("data.target", "is missing");
  if (!result.more_targets.empty() && result.target_kind == TargetKind::kClasses) {
    return Wrong("data.target", "a classification has one target");
  }
  return absl::OkStatus();
}

absl::Status TakeSplit(const Json& data, PrepareSpec& result) {
  SplitSpec& split = result.split;
  ASSIGN_OR_RETURN(const uint64_t folds, Number(data, "folds"));
  if (folds < 2 || folds > 100) return Wrong("data.folds", "must be 2 to 100");
  split.folds = static_cast<int>(folds);
  ASSIGN_OR_RETURN(split.seed, Number(data, "seed"));
  ASSIGN_OR_RETURN(const std::string kind, Text(data, "data", "split"));
  const absl::StatusOr<SplitKind> known = SplitByName(kind);
  if (!known.ok()) return Wrong("data.split", known.status().message());
  split.kind = *known;
  for (const auto& [key, field] :
       {std::make_pair("time", &result.time), std::make_pair("series", &result.series),
        std::make_pair("group", &result.group),
        std::make_pair("fold_column", &result.fold_column)}) {
    ASSIGN_OR_RETURN(*field, Text(data, "data", key));
  }
  if (!result.forecasting) return absl::OkStatus();
  if (result.time.empty()) return Wrong("data.time", "is missing: a forecast needs it");
  constexpr uint64_t kMostRows = 4096;
  ASSIGN_OR_RETURN(const uint64_t window, Number(data, "window"));
  if (window < 1 || window > kMostRows) return Wrong("data.window", "must be 1 to 4096");
  split.shape.window = static_cast<int64_t>(window);
  ASSIGN_OR_RETURN(const uint64_t horizon, Number(data, "horizon"));
  if (horizon > kMostRows) return Wrong("data.horizon", "must be 0 to 4096");
  split.shape.horizon = static_cast<int64_t>(horizon);
  return absl::OkStatus();
}

absl::Status TakeText(const Json& data, PrepareSpec& result) {
  const auto text = data.find("text");
  if (text == data.end() || text->is_null()) return absl::OkStatus();
  if (!text->is_object() || !text->contains("columns") || !(*text)["columns"].is_array()) {
    return Wrong("data.text.columns", "must be a list");
  }
  for (const Json& column : (*text)["columns"]) {
    if (!column.is_string()) return Wrong("data.text.columns", "must be a list of texts");
    result.text_columns.push_back(column.get<std::string>());
  }
  if (result.text_columns.empty()) return Wrong("data.text.columns", "is missing");
  ASSIGN_OR_RETURN(const std::string tokenizer, Text(*text, "data.text", "tokenizer"));
  result.sentencepiece = tokenizer == "sentencepiece";
  ASSIGN_OR_RETURN(const uint64_t vocabulary, Number(*text, "vocabulary"));
  if (vocabulary > 0) result.vocabulary = static_cast<int64_t>(vocabulary);
  ASSIGN_OR_RETURN(result.tokenizer_file, Text(*text, "data.text", "model_file"));
  return absl::OkStatus();
}

absl::Status TakeImage(const Json& data, PrepareSpec& result) {
  const auto it = data.find("image");
  if (it == data.end() || it->is_null()) return absl::OkStatus();
  ASSIGN_OR_RETURN(result.image, ParseImageFields(it->dump()));
  return absl::OkStatus();
}

absl::Status TakeForm(const Json& spec, PredictionForm& form) {
  const auto it = spec.find("predictions");
  if (it == spec.end() || !it->is_object()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string ensemble, Text(*it, "predictions", "ensemble"));
  form.ensemble = EnsembleByName(ensemble);
  ASSIGN_OR_RETURN(const std::string format, Text(*it, "predictions", "format"));
  form.format = FileFormatByName(format);
  ASSIGN_OR_RETURN(const std::string masks, Text(*it, "predictions", "masks"));
  form.tiff_masks = masks == "tiff";
  if (it->contains("probabilities") && (*it)["probabilities"].is_boolean()) {
    form.probabilities = (*it)["probabilities"].get<bool>();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PrepareSpec> ParsePrepareSpec(absl::string_view json) {
  const Json spec = Json::parse(json.begin(), json.end(), nullptr, false);
  if (!spec.is_object()) return Wrong("spec", "is no JSON object");
  for (const char* section : {"task", "data"}) {
    if (!spec.contains(section) || !spec[section].is_object()) return Wrong(section, "is missing");
  }
  const Json& task = spec["task"];
  const Json& data = spec["data"];
  PrepareSpec result;
  RETURN_IF_ERROR(TakeTask(task, result));
  ASSIGN_OR_RETURN(result.train, Text(data, "data", "train"));
  ASSIGN_OR_RETURN(result.test, Text(data, "data", "test"));
  ASSIGN_OR_RETURN(result.id, Text(data, "data", "id"));
  if (result.train.empty()) return Wrong("data.train", "is missing");
  RETURN_IF_ERROR(TakeVolume(data, result));
  RETURN_IF_ERROR(TakeTargets(data, result));
  if (result.target == result.id) return Wrong("data.id", "is the target");
  RETURN_IF_ERROR(TakeSplit(data, result));
  RETURN_IF_ERROR(TakeText(data, result));
  RETURN_IF_ERROR(TakeImage(data, result));
  RETURN_IF_ERROR(TakeForm(spec, result.form));
  if (const Json script = spec.value("/model/script"_json_pointer, Json()); script.is_object()) {
    ASSIGN_OR_RETURN(result.script, Text(script, "model.script", "file"));
    ASSIGN_OR_RETURN(result.script_sha256, Text(script, "model.script", "sha256"));
  }
  if (const Json weights = spec.value("/model/pretrained"_json_pointer, Json());
      weights.is_object()) {
    ASSIGN_OR_RETURN(result.weights, Text(weights, "model.pretrained", "file"));
    ASSIGN_OR_RETURN(result.weights_sha256, Text(weights, "model.pretrained", "sha256"));
  }
  return result;
}

}  // namespace traind
