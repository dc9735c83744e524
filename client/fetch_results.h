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

// Copies all files of Job `id` to `folder`, which it makes. Each file is there whole, or as it was;
// the digest of all of them is checked before. While it runs, they are in a folder of their own
// in it, whose next user removes what a killed one has left. Errors: NotFound: the program has left
// nothing (yet); FailedPrecondition: the Job has its files in a folder at traind, or this folder
// cannot be written, or another trainctl writes the same there.
absl::StatusOr<FetchedResults> FetchResults(TrainingClient& client, const std::string& id,
                                            const std::string& folder, absl::Duration limit);

}  // namespace traind
