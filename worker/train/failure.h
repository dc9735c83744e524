// Why a task fails, in the words of rank_protocol::Failed.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include "common/facts/reasons.h"

namespace traind {

// The loss is not finite and will not be again.
absl::Status DivergedError(absl::string_view message);

// The user's data are not what they should be.
absl::Status DataError(const absl::Status& status);

// Too little was done by the time that was given.
absl::Status OutOfTimeError(absl::string_view message);

// Writing predictions failed: ResourceExhausted = the disk is full.
absl::Status StorageError(const absl::Status& status);

// The reason to tell for it; kInternal where none is known.
AttemptEndReason FailureReason(const absl::Status& status);

}  // namespace traind
