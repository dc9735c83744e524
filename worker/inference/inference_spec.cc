#include "worker/inference/inference_spec.h"

#include <absl/strings/str_cat.h>

#include "common/base/status_macros.h"
#include "common/plain/plain_json.h"

namespace traind {
namespace {

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("the spec ", what));
}

void TakeModels(const plain::ModelSet& set, InferenceSpec& spec) {
  for (const plain::ModelRef& from : set.models) {
    ModelChoice& model = spec.models.emplace_back();
    model.fold = static_cast<int>(from.fold);
    model.trial = static_cast<int>(from.trial);
    model.seed = static_cast<int>(from.seed);
    model.kind = from.kind;
    model.dir = from.path;
    model.weight = from.weight;
    model.score = from.score;
    model.complete = from.complete;
  }
  spec.metric = set.metric;
  spec.quality = QualityByName(set.quality);
  spec.oof_score = set.oof;
  spec.comparable = set.comparable;
  spec.tuned.temperature = set.temperature.value_or(1);
  spec.tuned.threshold = set.threshold;
  for (const plain::TrialPower& power : set.powers) {
    spec.tuned.powers.push_back({static_cast<int>(power.trial), power.exponent});
  }
  spec.quantiles.levels = set.quantiles.levels;
  for (const plain::TargetOffsetSet& from : set.quantiles.targets) {
    spec.quantiles.targets.push_back(
        {from.at, from.offsets, from.not_negative, from.steps, from.scales});
  }
}

}  // namespace

std::string ModelText(const ModelChoice& model) {
  if (model.fold < 0) return "the floor";
  return absl::StrCat("fold ", model.fold,
                      model.trial > 0 ? absl::StrCat(" trial ", model.trial) : "",
                      model.seed > 0 ? absl::StrCat(" seed ", model.seed) : "");
}

absl::StatusOr<InferenceSpec> ParseInferenceSpec(absl::string_view json) {
  ASSIGN_OR_RETURN(const plain::JobSpec from, plain::FromJson<plain::JobSpec>(json));
  InferenceSpec spec;
  if (from.predict.has_value()) {
    RETURN_IF_ERROR(plain::CheckRequired(*from.predict, "predict"));
    spec.from = from.predict->from;
    spec.data = from.predict->data;
    spec.min_members = static_cast<int>(from.predict->min_members);
    TakeModels(from.predict->models, spec);
  } else if (from.serve.has_value()) {
    RETURN_IF_ERROR(plain::CheckRequired(*from.serve, "serve"));
    spec.from = from.serve->from;
    spec.idle = from.serve->idle;
    TakeModels(from.serve->models, spec);
  } else {
    return Wrong("says nothing to predict");
  }
  spec.form = FormOf(from.predictions);
  if (spec.models.empty()) return Wrong("names no model");
  return spec;
}

}  // namespace traind
