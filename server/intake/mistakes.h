// The mistakes of a request, which its caller gets all at once.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "common/base/refused_files.h"

namespace traind {

// Threads: confined to one.
class Mistakes {
 public:
  void Add(absl::string_view field, absl::string_view what) {
    lines_.push_back(absl::StrCat(field, ": ", what));
  }
  // why: as DataFiles refused the file that the field names, or what else is wrong with it.
  void AddFile(const std::string& field, const absl::Status& why) {
    Add(field, why.message());
    const RefusedFiles told = RefusedFilesOf(why);
    files_[field] = told.empty() ? FileProblem::kUnfit : told.begin()->second;
  }
  // For what adds whole lines, "FIELD: what is wrong".
  std::vector<std::string>* lines() { return &lines_; }
  bool empty() const { return lines_.empty(); }

  // InvalidArgument with a line for each mistake, which tells of the files as data, too.
  // REQUIRES: !empty().
  absl::Status ToStatus() const {
    return WithRefusedFiles(absl::InvalidArgumentError(absl::StrJoin(lines_, "\n")), files_);
  }

 private:
  std::vector<std::string> lines_;
  RefusedFiles files_;
};

}  // namespace traind
