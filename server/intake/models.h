// Selects the models of a Job that another Job may predict with.
#pragma once

#include <absl/status/statusor.h>

#include <optional>

#include "proto/job.pb.h"
#include "server/domain/job.h"

namespace traind {

// Returns the models of its standing Prediction with their weights; without one (no test file)
// every fold that has a model, equally weighted. `standing`: from its manifest. FailedPrecondition:
// there is no model yet, the floor alone answers, or the Job itself uses another Job's models.
absl::StatusOr<v1::ModelSet> ModelsOf(const Job& source,
                                      const std::optional<PublishedPrediction>& standing);

}  // namespace traind
