// Log files of limited size: a full one becomes the first of a few older ones, and a new one is
// begun. For the process that writes them.
// Threads: safe for different files; calls for the same file are serialized by the caller.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

// Opens the file for appending, or makes it, of mode 0600. The caller owns the descriptor.
absl::StatusOr<int> OpenLogFile(const std::string& path);

// Whether an open file holds something and would exceed `most_bytes` with `more` bytes.
bool IsFull(int fd, int64_t more, int64_t most_bytes);

// Renames the file to older[0], that to older[1] and so on; the last of them is lost. Returns the
// descriptor of the new, empty file, which the caller owns. After an error the full file keeps its
// name, and the caller goes on with it.
// REQUIRES: `older` is not empty.
absl::StatusOr<int> RotateLogFiles(const std::string& path, const std::vector<std::string>& older);

}  // namespace traind
