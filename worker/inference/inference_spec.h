// The task of a Job that trains nothing, and the models that it uses.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <optional>
#include <string>
#include <vector>

#include "common/publish/prediction.h"
#include "common/publish/prediction_form.h"

namespace traind {

struct ModelChoice {
  int fold = 0;  // -1: the floor
  int trial = 0;
  int seed = 0;
  std::string kind;   // of model; empty: unknown
  std::string dir;    // of the Attempt that trained it, relative to the state folder
  double weight = 0;  // all together 1
  double score = 0;
  bool complete = false;
};

// "fold 1", "fold 1 trial 3", "fold 1 seed 2", or "the floor".
std::string ModelText(const ModelChoice& model);

struct InferenceSpec {
  std::string from;     // the Job whose models they are
  std::string data;     // predict: the file
  int min_members = 0;  // predict
  absl::Duration idle;  // serve
  std::vector<ModelChoice> models;
  std::string metric;
  Quality quality = Quality::kNone;
  std::optional<double> oof_score;
  bool comparable = false;
  Tuned tuned;  // what the joined answer is adjusted by
  Quantiles quantiles;
  PredictionForm form;
};

// json: a resolved JobSpec with `predict` or `serve` (proto/job.proto). InvalidArgument
// names the field.
absl::StatusOr<InferenceSpec> ParseInferenceSpec(absl::string_view json);

}  // namespace traind
