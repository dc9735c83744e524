// The database's tables, and the way from each older version to this one.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include "server/store/sqlite.h"

namespace traind {

// migrations[i] makes version i + 1 out of version i. One is never edited after
// its release: a change is a new one at the end.
absl::Span<const char* const> Migrations();

// Brings the database to the version that `migrations` end at; each step is one
// transaction. The version stands in PRAGMA user_version.
// Errors: FailedPrecondition names both versions where the database is newer.
absl::Status Migrate(sqlite::Connection& db, absl::Span<const char* const> migrations);

}  // namespace traind
