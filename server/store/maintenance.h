// Work on a database beside the traind that may be using it: copies, checks, restored copies.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

// Copies the database as it is after some commit, also while another process writes to it. to: a
// file that does not exist.
absl::Status CopyDatabase(const std::string& from, const std::string& to);

// Reads every page, and checks the references between tables, the chains of events and the
// high-water mark. Returns what is wrong, a line each. Errors: the file cannot be opened.
absl::StatusOr<std::vector<std::string>> CheckDatabase(const std::string& path);

// Moves the write-ahead log of a database that no process uses into it. Errors: FailedPrecondition
// (it is behind its high-water mark), DataLoss, those of SQLite.
absl::Status FoldLog(const std::string& path);

// The predictions of a Job that stand, as the database knows them.
struct StandingFile {
  std::string job;
  std::string path;  // relative to the state folder
  std::string sha256;
};
absl::StatusOr<std::vector<StandingFile>> ReadStandingFiles(const std::string& path);

// So many Attempts may have begun after a copy was made.
inline constexpr int64_t kAttemptsAfterACopy = 1'000'000;

// Lets a copy follow the database that it replaces: no number of an Attempt is used again.
absl::Status SkipAttempts(const std::string& path);

}  // namespace traind
