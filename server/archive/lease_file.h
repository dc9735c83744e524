// The lease of an epoch as an object of the archive.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "server/archive/lease_core.h"
#include "server/objects/object_store.h"

namespace traind {

// Each epoch has an object of its own, so that one who wakes up late writes where nobody reads any
// more. Threads: safe. Errors: those of the store.
absl::Status WriteLease(const ObjectStore& objects, const LeaseNote& note);
// nullopt: there is none, or it is just being written.
absl::StatusOr<std::optional<LeaseNote>> ReadLease(const ObjectStore& objects, int64_t epoch);
// Removes those of earlier epochs.
void RemoveLeasesBefore(const ObjectStore& objects, int64_t epoch);

}  // namespace traind
