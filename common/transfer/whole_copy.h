// A copy of a file that is there whole, or not at all.
#pragma once

#include <absl/status/status.h>

#include <string>

namespace traind {

// Writes a copy beside its place, makes it durable, and renames it. Makes the folders above it.
// Errors: those of the file system, with the path. Threads: safe.
absl::Status CopyWhole(const std::string& from, const std::string& to);

// Copies all files of a folder into another one, where they take the place of files of the same
// name. Errors: likewise; what was copied before stays.
absl::Status CopyFolderWhole(const std::string& from, const std::string& to);

}  // namespace traind
