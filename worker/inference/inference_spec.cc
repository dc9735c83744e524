#include "worker/inference/inference_spec.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <nlohmann/json.hpp>

namespace traind {
namespace {

using Json = nlohmann::json;

// "60s", "0.500s".
absl::Duration DurationOf(const std::string& text) {
  double seconds = 60;
  absl::SimpleAtod(absl::StripSuffix(text, "s"), &seconds);
  return absl::Seconds(seconds);
}

// Throws what nlohmann throws.
void TakeModels(const Json& set, InferenceSpec& spec) {
  for (const Json& item : set.at("models")) {
    ModelChoice& model = spec.models.emplace_back();
    item.at("fold").get_to(model.fold);
    model.seed = item.value("seed", 0);
    item.at("path").get_to(model.dir);
    item.at("weight").get_to(model.weight);
    model.score = item.at("score").is_number() ? item.at("score").get<double>() : 0;
    item.at("complete").get_to(model.complete);
  }
  set.at("metric").get_to(spec.metric);
  spec.quality = QualityByName(set.at("quality").get<std::string>());
  if (set.contains("oof") && set.at("oof").is_number())
    spec.oof_score = set.at("oof").get<double>();
  set.at("comparable").get_to(spec.comparable);
}

void TakeForm(const Json& predictions, PredictionForm& form) {
  form.ensemble = EnsembleByName(predictions.value("ensemble", std::string()));
  form.format = FileFormatByName(predictions.value("format", std::string()));
  form.probabilities = predictions.value("probabilities", true);
}

}  // namespace

std::string ModelText(const ModelChoice& model) {
  return absl::StrCat("fold ", model.fold,
                      model.seed > 0 ? absl::StrCat(" seed ", model.seed) : "");
}

absl::StatusOr<InferenceSpec> ParseInferenceSpec(absl::string_view json) {
  const Json root = Json::parse(json.begin(), json.end(), nullptr, false);
  InferenceSpec spec;
  try {
    const bool predicts = root.contains("predict");
    const Json& kind = root.at(predicts ? "predict" : "serve");
    kind.at("from").get_to(spec.from);
    if (predicts) {
      kind.at("data").get_to(spec.data);
      spec.min_members = kind.value("min_members", 1);
    } else if (kind.contains("idle")) {
      spec.idle = DurationOf(kind.at("idle").get<std::string>());
    }
    TakeModels(kind.at("models"), spec);
    if (root.contains("predictions")) TakeForm(root.at("predictions"), spec.form);
  } catch (const Json::exception& e) {
    return absl::InvalidArgumentError(absl::StrCat("the spec says nothing to predict: ", e.what()));
  }
  if (spec.models.empty()) return absl::InvalidArgumentError("the spec names no model");
  return spec;
}

}  // namespace traind
