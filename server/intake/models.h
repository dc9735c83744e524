// Which models of a Job another one may predict with.
#pragma once

#include <absl/status/statusor.h>

#include <optional>

#include "proto/job.pb.h"
#include "server/domain/job.h"

namespace traind {

// Those that its standing Prediction is made of, with their weights; without one (no test
// file) every fold that has a model, all alike. `standing`: as its manifest tells it.
// FailedPrecondition: there is none yet, the floor alone answers, or the Job itself uses
// another one's models.
absl::StatusOr<v1::ModelSet> ModelsOf(const Job& source,
                                      const std::optional<PublishedPrediction>& standing);

}  // namespace traind
