// What of a state folder a Job needs: pure, without a look at the files.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <string>

#include "common/publish/prediction.h"
#include "server/domain/job.h"
#include "server/retention/retention_plan.h"

namespace traind {

// Returns what a Job that is not over needs of others and of the cache.
JobAtWork NeedsOf(const Job& job);

// Returns the first two parts of a path in a Job's folder: attempts/7. Empty: it has no more.
std::string AttemptFolder(absl::string_view path);

// Returns the Attempts' folders that a Prediction, a reuse or a later predict of a Job that is over
// reads. standing: from its manifest; null: none stands.
absl::flat_hash_set<std::string> NeededFolders(const Job& job, const PublishedPrediction* standing);

}  // namespace traind
