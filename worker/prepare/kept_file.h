// Files of the user's that a Job needs to its end: they may change, or go.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Copies `path` to `kept`, unless that has its bytes. field: of the spec, for messages.
// UserError(): its bytes do not have the digest any more; else those of MappedFile::Open
// and WriteFileDurably.
absl::Status KeepFile(absl::string_view field, const std::string& path, const std::string& sha256,
                      const std::string& kept);

// The trainrank beside this process's own program, which tries what is kept.
std::string RankProgram();

}  // namespace traind
