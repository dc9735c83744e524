#include "worker/train/training_spec.h"

#include <absl/status/status.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "common/status_macros.h"

namespace traind {
namespace {

using Json = nlohmann::json;

absl::Status Wrong(const std::string& path, const char* expected) {
  return absl::InvalidArgumentError(absl::StrCat("spec field ", path, ": expected ", expected));
}

// An object's member; null where it is absent.
const Json& Member(const Json& object, const char* key) {
  static const Json absent;
  if (!object.is_object()) return absent;
  const auto found = object.find(key);
  return found == object.end() ? absent : *found;
}

// Protobuf writes 64-bit integers as strings.
absl::Status Take(const Json& json, const std::string& path, uint64_t& value) {
  if (json.is_null()) return absl::OkStatus();
  if (json.is_number_unsigned()) return value = json.get<uint64_t>(), absl::OkStatus();
  if (json.is_string() && absl::SimpleAtoi(json.get<std::string>(), &value)) {
    return absl::OkStatus();
  }
  return Wrong(path, "a number from 0 on");
}

template <class Integer>
absl::Status TakeInteger(const Json& json, const std::string& path, int64_t least, int64_t most,
                         Integer& value) {
  if (json.is_null()) return absl::OkStatus();
  int64_t number = 0;
  if (json.is_number_integer()) {
    number = json.get<int64_t>();
  } else if (!json.is_string() || !absl::SimpleAtoi(json.get<std::string>(), &number)) {
    return Wrong(path, "an integer");
  }
  if (number < least || number > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec field ", path, ": ", number, " is not in ", least, "..", most));
  }
  value = static_cast<Integer>(number);
  return absl::OkStatus();
}

absl::Status Take(const Json& json, const std::string& path, double least, double most,
                  double& value) {
  if (json.is_null()) return absl::OkStatus();
  if (!json.is_number()) return Wrong(path, "a number");
  const double number = json.get<double>();
  if (!(number >= least && number <= most)) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec field ", path, ": ", number, " is not in ", least, "..", most));
  }
  value = number;
  return absl::OkStatus();
}

absl::Status Take(const Json& json, const std::string& path, std::string& value) {
  if (json.is_null()) return absl::OkStatus();
  if (!json.is_string()) return Wrong(path, "text");
  value = json.get<std::string>();
  return absl::OkStatus();
}

absl::Status TakeModel(const Json& json, ModelSpec& model) {
  const Json& mlp = Member(json, "mlp");
  if (!json.is_null() && !json.empty() && mlp.is_null()) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec field model: this engine has no model \"", json.begin().key(), "\""));
  }
  const Json& hidden = Member(mlp, "hidden");
  if (!hidden.is_null()) {
    if (!hidden.is_array()) return Wrong("model.mlp.hidden", "a list");
    model.hidden.clear();
    for (size_t i = 0; i < hidden.size(); ++i) {
      int64_t width = 0;
      RETURN_IF_ERROR(
          TakeInteger(hidden[i], absl::StrCat("model.mlp.hidden[", i, "]"), 1, 16384, width));
      model.hidden.push_back(width);
    }
  }
  return Take(Member(mlp, "dropout"), "model.mlp.dropout", 0, 0.95, model.dropout);
}

absl::Status TakeTrain(const Json& json, TrainingSpec& spec) {
  RETURN_IF_ERROR(TakeInteger(Member(json, "epochs"), "train.epochs", 1, 100'000, spec.epochs));
  RETURN_IF_ERROR(TakeInteger(Member(json, "batch"), "train.batch", 0, 1 << 20, spec.batch));
  RETURN_IF_ERROR(
      TakeInteger(Member(json, "patience"), "train.patience", 0, 100'000, spec.patience));
  std::string precision;
  RETURN_IF_ERROR(Take(Member(json, "precision"), "train.precision", precision));
  if (!precision.empty() && precision != "auto") {
    spec.precision = PrecisionByName(precision);
    if (!spec.precision.has_value()) {
      return Wrong("train.precision", "auto, fp32, tf32, bf16 or fp16");
    }
  }
  double rate = 0;
  RETURN_IF_ERROR(Take(Member(json, "learning_rate"), "train.learning_rate", 0, 10, rate));
  if (rate > 0) spec.learning_rate = rate;
  return Take(Member(json, "weight_decay"), "train.weight_decay", 0, 10, spec.weight_decay);
}

}  // namespace

absl::StatusOr<TrainingSpec> ParseTrainingSpec(absl::string_view text) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("the spec is no JSON object");
  TrainingSpec spec;
  const Json& task = Member(json, "task");
  std::string type = "classification", metric;
  RETURN_IF_ERROR(Take(Member(task, "type"), "task.type", type));
  if (type != "classification" && type != "regression") {
    return Wrong("task.type", "classification or regression");
  }
  spec.classification = type == "classification";
  RETURN_IF_ERROR(Take(Member(task, "metric"), "task.metric", metric));
  if (metric.empty()) metric = spec.classification ? "accuracy" : "rmse";
  ASSIGN_OR_RETURN(spec.metric, MetricByName(metric));
  if (IsClassification(spec.metric) != spec.classification) {
    return absl::InvalidArgumentError(
        absl::StrCat("spec field task.metric: ", metric, " is no metric of ", type));
  }
  RETURN_IF_ERROR(Take(Member(Member(json, "data"), "seed"), "data.seed", spec.seed));
  RETURN_IF_ERROR(TakeModel(Member(json, "model"), spec.model));
  RETURN_IF_ERROR(TakeTrain(Member(json, "train"), spec));
  return spec;
}

}  // namespace traind
