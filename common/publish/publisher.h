// Turns the folds' predictions into the Job's standing Prediction.
//
// Both traind and the Job's Worker may publish: traind while folds are committed, the Worker while
// traind is away. Both get the same result, because the members are those of the request together
// with those of the standing Prediction, and a Prediction never gets worse (see Publish).
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <string>

#include "common/publish/prediction.h"

namespace traind {

// Writes prediction-<n>/ and switches `current` to it (common/base/job_layout.h) while it holds the
// Job's publish lock. Steps:
// 1. Join the request's members with the standing Prediction's: per model a complete one first,
//    then the newest Attempt. Files whose digest differs are left out.
// 2. Average the models of each fold and trial, without those that make it worse; weigh the trials
//    on the out-of-fold rows (fold_answers.h).
// 3. Leave out incomplete folds that score below the floor on their own rows, unless they have most
//    of the rows; in a forward split leave out any such fold. Then leave out all folds if the
//    others score below the floor together, so that the floor answers.
// 4. Combine the rest as the Job's form says (prediction_form.h).
// 5. Where trials were weighed, adjust probabilities or labels for the metric's sake (tuned.h), or
//    join the trials by a second layer (second_layer.h).
// The new Prediction replaces the standing one if it is not worse on the rows that both cover out
// of fold, has more complete members, or shares no fold with the standing one although all of that
// one's folds were considered. The test rows' target is only used for test_score.
// Threads: safe; calls for the same Job wait for each other (the lock is a file lock). Errors:
// NotFound (no floor and no member), FailedPrecondition (the Job is over, see ended_job.h),
// ResourceExhausted (disk full; the standing Prediction is
// untouched), DataLoss, Internal.
absl::StatusOr<PublishedPrediction> Publish(const PublishRequest& request, absl::Time now);

// Reads the standing Prediction from its manifest. NotFound: there is none yet.
absl::StatusOr<PublishedPrediction> ReadStandingPrediction(const std::string& state_dir,
                                                           const std::string& job);

}  // namespace traind
