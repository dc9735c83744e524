// The part of a JobSpec that training needs.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>

#include "common/publish/metrics.h"
#include "worker/model/model_spec.h"
#include "worker/model/precision.h"

namespace traind {

struct TrainingSpec {
  bool classification = true;
  Metric metric = Metric::kAccuracy;
  uint64_t seed = 0;
  ModelSpec model;
  int epochs = 20;
  int64_t batch = 0;                   // per rank; 0: auto
  std::optional<Precision> precision;  // none: auto
  int patience = 5;                    // 0: never
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
};

// json: a resolved JobSpec (proto/job.proto) as protobuf writes it, keys in
// snake_case; what is left out has its default.
// Errors: InvalidArgument names the field's path.
absl::StatusOr<TrainingSpec> ParseTrainingSpec(absl::string_view json);

}  // namespace traind
