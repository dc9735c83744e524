// Files without a name: they take disk space rather than memory, and go with their last descriptor
// and map, even if the process is killed.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace traind {

// Returns the descriptor of a new file on the file system of `dir`, for reading and writing by this
// process and not by those that it starts; the caller closes it. dir: created if it is missing;
// empty: the working folder. Where the file system knows no such files, it has a name with
// kTemporaryMark for a moment. Threads: safe. Errors: by errno; they name the folder.
absl::StatusOr<int> OpenNamelessFile(const std::string& dir);

}  // namespace traind
