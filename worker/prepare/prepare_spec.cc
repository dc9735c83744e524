#include "worker/prepare/prepare_spec.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>

#include "common/status_macros.h"

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
  ASSIGN_OR_RETURN(const std::string type, Text(task, "task", "type"));
  if (type != "classification" && type != "regression") {
    return Wrong("task.type", "must be classification or regression");
  }
  const bool classes = type == "classification";
  result.target_kind = classes ? TargetKind::kClasses : TargetKind::kValue;
  ASSIGN_OR_RETURN(std::string metric, Text(task, "task", "metric"));
  if (metric.empty()) metric = classes ? "accuracy" : "rmse";
  const absl::StatusOr<Metric> known = MetricByName(metric);
  if (!known.ok()) return Wrong("task.metric", known.status().message());
  result.metric = *known;
  if (IsClassification(result.metric) != classes) {
    return Wrong("task.metric", absl::StrCat(metric, " does not suit task.type: ", type));
  }
  ASSIGN_OR_RETURN(result.train, Text(data, "data", "train"));
  ASSIGN_OR_RETURN(result.test, Text(data, "data", "test"));
  ASSIGN_OR_RETURN(result.target, Text(data, "data", "target"));
  ASSIGN_OR_RETURN(result.id, Text(data, "data", "id"));
  if (result.train.empty()) return Wrong("data.train", "is missing");
  if (result.target.empty()) return Wrong("data.target", "is missing");
  if (result.target == result.id) return Wrong("data.id", "is the target");
  ASSIGN_OR_RETURN(const uint64_t folds, Number(data, "folds"));
  if (folds < 2 || folds > 100) return Wrong("data.folds", "must be 2 to 100");
  result.folds = static_cast<int>(folds);
  ASSIGN_OR_RETURN(result.seed, Number(data, "seed"));
  return result;
}

}  // namespace traind
