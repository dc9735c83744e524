// Turns what folds have predicted into the Job's standing Prediction.
//
// Whoever is alive calls it: traind as folds are committed, the Job's Worker
// while traind is away. Both get the same answer, because the members are those
// asked for together with those of the standing Prediction, and a Prediction
// never gets worse (see Publish).
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <string>

#include "common/publish/prediction.h"

namespace traind {

// Writes prediction-<n>/ and switches `current` (common/base/job_layout.h), holding
// the job's publish lock. Steps: join the request's members with the standing
// Prediction's (per model: a complete one first, then the newest Attempt), verify
// each file's digest (a damaged one is left out), average the models of each fold but for
// those that make it worse (fold_answers.h), leave out an incomplete fold
// (of a forward split any fold) that scores below the floor on the fold's own rows, and all folds
// where they score below it together (the floor answers); join the rest as the Job's form
// says (prediction_form.h). The new one stands if
// it is not worse than the standing one on the rows that both cover out of fold, or has more
// complete members; else the standing one stays. The test rows' target is used for test_score
// alone. Threads: safe; calls for one job wait for each other (the lock is a file lock). Errors:
// NotFound (no floor and no member), ResourceExhausted (disk full; the standing Prediction is
// untouched), DataLoss, Internal.
absl::StatusOr<PublishedPrediction> Publish(const PublishRequest& request, absl::Time now);

// The standing Prediction as its manifest tells it. NotFound: none yet.
absl::StatusOr<PublishedPrediction> ReadStandingPrediction(const std::string& state_dir,
                                                           const std::string& job);

}  // namespace traind
