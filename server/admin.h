// traind admin: copies a state folder, checks it, and makes a state folder of a copy.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>
#include <vector>

namespace traind {

// A backup is a folder with traind.db, jobs/ and cache/, and this list of its files in the form
// that sha256sum reads. It is written last, so a backup without it is not whole.
inline constexpr char kBackupList[] = "SHA256SUMS";

// Copies what the state folder holds after some commit, also while a traind uses it, and verifies
// the copy. REQUIRES: the folder `backup` does not exist, or is empty (else FailedPrecondition).
// Errors: DataLoss (what was copied is damaged), those of the system.
absl::Status BackUp(const std::string& state_dir, const std::string& backup);

// Makes a state folder of a backup. REQUIRES: `state_dir` has no database (else
// FailedPrecondition). DataLoss: a file of the backup is missing or damaged; nothing was restored.
absl::Status Restore(const std::string& backup, const std::string& state_dir);

// Makes a state folder of what the artifacts of a traind have, and checks it; that traind may be at
// work. REQUIRES: `state_dir` has no database (else FailedPrecondition). Errors: NotFound (no
// archive is there), DataLoss (it is damaged; nothing was restored).
absl::Status RestoreArchive(const std::string& artifacts, const std::string& state_dir);

// Checks the database of a state folder, the standing predictions against what it says of them, and
// the audit log.
// Returns what is wrong, a line each.
absl::StatusOr<std::vector<std::string>> CheckState(const std::string& state_dir);

// The program `traind admin ...`; returns its exit code. argv[0] is "admin".
int RunAdmin(int argc, char** argv);

}  // namespace traind
