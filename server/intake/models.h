// Selects the models of a Job that another Job may predict with.
#pragma once

#include <absl/status/statusor.h>

#include <optional>

#include "proto/job.pb.h"
#include "server/domain/job.h"

namespace traind {

// Returns the models of its standing Prediction with their weights, the floor among them; without
// one (no test file) every fold that has a model, equally weighted. `standing`: from its manifest.
// floor_is_kept: the floor's model stands in the Job's folder. If it does not, the floor's weight
// is shared among the others. FailedPrecondition: there is no model yet, a floor that is not kept
// alone answers, or the Job itself uses another Job's models.
absl::StatusOr<v1::ModelSet> ModelsOf(const Job& source,
                                      const std::optional<PublishedPrediction>& standing,
                                      bool floor_is_kept);

}  // namespace traind
