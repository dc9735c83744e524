// Files that hold keys and tokens.
// Threads: safe.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace traind {

// Reads the whole file. Errors: FailedPrecondition if every user of the machine may read or change
// it, with the command that mends that; else as ReadFile.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path);

}  // namespace traind
