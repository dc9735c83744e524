// Keeps copies of users' files that a Job needs to its end, because the originals
// may change or disappear.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Copies `path` to `kept`, unless `kept` already has the file's bytes. field: the
// spec's field, for messages.
// Errors: UserError() if the file's digest has changed; those of MappedFile::Open and
// WriteFileDurably.
absl::Status KeepFile(absl::string_view field, const std::string& path, const std::string& sha256,
                      const std::string& kept);

// The path of trainrank, beside this process's program. It tries the kept files.
std::string RankProgram();

}  // namespace traind
