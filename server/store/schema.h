// The database's tables, and the migrations from each older version to this one.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include "server/store/sqlite.h"

namespace traind {

// migrations[i] changes version i to version i + 1. A released migration is never edited: a change
// becomes a new one at the end.
absl::Span<const char* const> Migrations();

// Databases of this version and later ones have checksums in their pages.
inline constexpr int kVersionWithChecksums = 11;

// Migrates the database to the last version in `migrations`; each step is one transaction. PRAGMA
// user_version holds the version. Errors: FailedPrecondition, with both versions: the database is
// newer.
absl::Status Migrate(sqlite::Connection& db, absl::Span<const char* const> migrations);

}  // namespace traind
