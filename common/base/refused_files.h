// Files that a request names and that could not be taken, as data on the status that refuses it:
// its message says the same to people.
// Threads: safe, pure.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <map>
#include <string>

namespace traind {

enum class FileProblem {
  kOutsideRoots,  // it lies where traind must not read
  kUnreadable,    // it is not there, or must not be opened
  kUnfit,         // it was opened, and is not what the field wants
};
// outside_roots, unreadable, unfit.
const char* Name(FileProblem problem);
// kUnfit where there is no such problem.
FileProblem FileProblemByName(absl::string_view name);

// By the fields that name the files, "data.train"; "" where a status is about a single file, whose
// field is not known.
using RefusedFiles = std::map<std::string, FileProblem>;

// Requires: status is an error. What it told before is replaced.
absl::Status WithRefusedFiles(absl::Status status, const RefusedFiles& files);
// Empty where a status tells of none.
RefusedFiles RefusedFilesOf(const absl::Status& status);

}  // namespace traind
