// The lease of an epoch as a file of the archive's folder.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "server/archive/lease_core.h"

namespace traind {

// Each epoch has a file of its own, so that one who wakes up late writes where nobody reads any
// more. It is written in place, because file servers tell of new content sooner than of new names.
// Threads: safe. Errors: those of the system.
absl::Status WriteLease(const std::string& archive_folder, const LeaseNote& note);
// nullopt: there is none, or it is just being written.
absl::StatusOr<std::optional<LeaseNote>> ReadLease(const std::string& archive_folder,
                                                   int64_t epoch);
// Removes those of earlier epochs.
void RemoveLeasesBefore(const std::string& archive_folder, int64_t epoch);

}  // namespace traind
