// Copies what the program of a Job has left, and traind keeps, to a local folder.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>

#include "client/training_client.h"

namespace traind {

struct FetchedResults {
  int files = 0;
  int64_t bytes = 0;  // of them together
};

// Makes the folder where it is missing. FailedPrecondition: nothing could be written there.
absl::Status CheckCanFetchTo(const std::string& folder);

// Copies all files of Job `id` to `folder`, which it makes if need be. The digest of all files is
// checked first; then each replaces the one of its name, whole or not at all. Until then they are
// in a hidden folder in `folder`; if trainctl is killed, the next fetch of the Job removes it.
// Errors: NotFound: the program has left nothing (yet); FailedPrecondition: the Job has its files
// in a folder on traind's machine, `folder` cannot be written, or another trainctl writes the same
// there.
absl::StatusOr<FetchedResults> FetchResults(TrainingClient& client, const std::string& id,
                                            const std::string& folder, absl::Duration limit);

}  // namespace traind
