// The folders below which the files lie that Jobs name. Submit checks paths by them. Between Submit
// and PREPARE a file or a folder above it may become a link to another place, so a process that
// reads such files checks again what it has opened.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <string>
#include <vector>

namespace traind {

// Returns the path of an open file or folder, with links resolved.
absl::StatusOr<std::string> RealPathOf(int fd);

// Whether a real path is one of the roots (real paths, too) or lies below one.
bool LiesBelow(absl::string_view real, absl::Span<const std::string> roots);

// From now on CheckUserFile holds this process to the roots; none: to nothing. Their links are
// resolved here, as a folder may be a link on one machine and none on another.
// own: folders with files of traind, which may lie behind links, too (traind --artifacts).
// Threads: safe.
void KeepToDataRoots(const std::vector<std::string>& roots,
                     const std::vector<std::string>& own = {});

// Checks a file or folder that was opened at a path that Submit has resolved. PermissionDenied: it
// is neither at this path nor below a root. OK where there are no roots to keep to.
// Threads: safe.
absl::Status CheckUserFile(int fd, const std::string& path);

// Returns the real path of a folder at a path that Submit has resolved. Errors: NotFound; those of
// CheckUserFile.
// Threads: safe.
absl::StatusOr<std::string> RealUserFolder(const std::string& path);

// Returns the real path of a file that a table names, relative to the table's folder.
// table: the table's name, for the error. Errors: InvalidArgument: it does not lie below that
// folder; those of RealUserFolder.
// Threads: safe.
absl::StatusOr<std::string> FileBelow(const std::string& folder, absl::string_view file,
                                      const std::string& table);

}  // namespace traind
