#include "common/base/refused_files.h"

#include <absl/strings/cord.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <utility>

namespace traind {
namespace {

constexpr char kPayload[] = "traind/refused_files";
constexpr FileProblem kProblems[] = {FileProblem::kOutsideRoots, FileProblem::kUnreadable,
                                     FileProblem::kUnfit};

}  // namespace

const char* Name(FileProblem problem) {
  switch (problem) {
    case FileProblem::kOutsideRoots:
      return "outside_roots";
    case FileProblem::kUnreadable:
      return "unreadable";
    case FileProblem::kUnfit:
      return "unfit";
  }
  return "unfit";
}

FileProblem FileProblemByName(absl::string_view name) {
  for (const FileProblem problem : kProblems) {
    if (name == Name(problem)) return problem;
  }
  return FileProblem::kUnfit;
}

// The payload has a line "FIELD PROBLEM" for each file.
absl::Status WithRefusedFiles(absl::Status status, const RefusedFiles& files) {
  std::string lines;
  for (const auto& [field, problem] : files) {
    absl::StrAppend(&lines, field, " ", Name(problem), "\n");
  }
  if (!lines.empty()) status.SetPayload(kPayload, absl::Cord(lines));
  return status;
}

RefusedFiles RefusedFilesOf(const absl::Status& status) {
  RefusedFiles files;
  const auto payload = status.GetPayload(kPayload);
  if (!payload.has_value()) return files;
  const std::string lines(*payload);
  for (const absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(line, ' ');
    files[std::string(parts.first)] = FileProblemByName(parts.second);
  }
  return files;
}

}  // namespace traind
