// A JSON file that carries its own digest:
//
//   {"sha256":"<digest of BODY>","<name>":
//   BODY
//   }
//
// The whole file is JSON, too, as BODY is JSON in one line.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

namespace traind {

// Returns the text of the file with this body.
std::string WithDigest(absl::string_view name, absl::string_view body);

// Returns the body, a part of `text`. Errors: DataLoss says how the text is damaged.
absl::StatusOr<absl::string_view> CheckedBody(absl::string_view name, absl::string_view text);

// Reads such a file and returns its body. Errors: those of ReadFile, and Damaged.
absl::StatusOr<std::string> ReadBody(const std::string& path, absl::string_view name);

// Returns the DataLoss error of a file whose content cannot be used: `what` says why.
absl::Status Damaged(absl::string_view path, absl::string_view what);

}  // namespace traind
