// Reads and writes what retention needs of the database: which Jobs are over, and how their rows
// go.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <string>
#include <vector>

#include "server/store/sqlite.h"
#include "server/store/store.h"

namespace traind {

// Writes deletions, purges, forgotten and pins. Aborted: a Job that is not over is to be deleted.
absl::Status WriteRetention(sqlite::Connection& db, const Mutations& mutations);

// See Store::ListEnded and Store::ListDeleting.
absl::StatusOr<std::vector<EndedJob>> ReadEnded(sqlite::Connection& db);
absl::StatusOr<std::vector<std::string>> ReadDeleting(sqlite::Connection& db, absl::Time now);

}  // namespace traind
