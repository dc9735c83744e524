// A Job's artifact as a local file.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <string>

#include "client/training_client.h"

namespace traind {

// Writes artifact `name` (empty: predictions.csv) of Job `id` to `path`: into a
// temporary file beside it, whose digest must be the one announced, then renamed
// over it. Errors: DataLoss for another digest; path is then as it was.
absl::StatusOr<FetchedFile> FetchToFile(TrainingClient& client, const std::string& id,
                                        const std::string& name, const std::string& path,
                                        absl::Duration limit);

}  // namespace traind
