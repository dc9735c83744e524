// Copies a Job's artifact to a local file.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <string>

#include "client/training_client.h"

namespace traind {

// The error of a local file or folder: FailedPrecondition, because NotFound would be taken for a
// missing Job.
absl::Status CannotWrite(const std::string& path, absl::string_view why);

// Returns the error with which FetchToFile could not write `path` now. Leaves nothing behind.
absl::Status CheckCanWrite(const std::string& path);

// Writes artifact `name` (empty: predictions.csv) of Job `id` to a temporary file beside `path`,
// checks its digest against the announced one, and renames it to `path`. Errors: DataLoss for
// another digest; path is then unchanged.
absl::StatusOr<FetchedFile> FetchToFile(TrainingClient& client, const std::string& id,
                                        const std::string& name, const std::string& path,
                                        absl::Duration limit);

}  // namespace traind
