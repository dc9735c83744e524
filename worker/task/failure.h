// Why a task fails. A status becomes one of the words of rank_protocol::Failed in one way, for
// every program:
//
//   marked by one of the functions below     its word
//   InvalidArgument                          USER_ERROR: the spec asks for what cannot be
//   everything else                          INTERNAL
//
// Errors of reading a user's files have many codes: whoever reads them marks them by
// OfUserFiles(), so that InvalidArgument means the same in all programs.
// Threads: safe.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include "common/facts/reasons.h"

namespace traind {

// Marks of a status; ok stays ok.
absl::Status OutOfMemory(absl::Status status);        // OUT_OF_MEMORY
absl::Status CollectiveTimeout(absl::Status status);  // COLLECTIVE_TIMEOUT
// The loss is not finite and will not be again.
absl::Status DivergedError(absl::string_view message);  // DIVERGED
// Too little was done by the time that was given.
absl::Status OutOfTimeError(absl::string_view message);  // STOPPED_IN_TIME
// The user asked for something impossible; for places where OfUserFiles() would blame the data.
absl::Status UserError(absl::string_view message);  // USER_ERROR, InvalidArgument
// The user's data are not what they should be.
absl::Status DataError(const absl::Status& status);  // DATA_ERROR
// Writing failed. ResourceExhausted becomes STORAGE_FULL; other statuses are left as they are.
absl::Status StorageError(const absl::Status& status);
// Reading a user's files failed. InvalidArgument, NotFound and PermissionDenied become
// DATA_ERROR, ResourceExhausted STORAGE_FULL; what is marked already, and every other code, is
// left as it is.
absl::Status OfUserFiles(const absl::Status& status);

// The reason to tell for it.
AttemptEndReason FailureReason(const absl::Status& status);

}  // namespace traind
