// What a file of answers has to look like: sample_submission, and the ranges of its columns.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/mapped_file.h"
#include "common/search/range.h"

namespace traind {

// The first column of the sample names the rows. Threads: safe, nothing changes.
class AnswerSample {
 public:
  AnswerSample() = default;  // any file is well

  // path: of the CSV file; empty: there is none. ranges: texts of ranges by column.
  // Errors: those of reading; InvalidArgument: it is no table, a name is there twice, a column of
  // `ranges` is not in it, or a range is none.
  static absl::StatusOr<AnswerSample> Read(const std::string& path,
                                           const std::map<std::string, std::string>& ranges);

  // Errors: InvalidArgument names file, row and column: columns that differ from the sample's or
  // are in another order; a row that is missing, one too many, there twice, unknown or not where
  // the sample has it; a value that is missing, no number where the sample has numbers, not finite
  // or out of its range.
  absl::Status Check(absl::string_view bytes, const std::string& name) const;

  bool empty() const { return file_ == nullptr && space_.empty(); }

 private:
  friend class SampleChecker;
  absl::Status ReadRows(const std::string& name);

  std::unique_ptr<MappedFile> file_;  // null: any rows and columns
  std::vector<std::string> header_;
  std::vector<std::string> rows_;  // the fields of the first column
  std::vector<bool> numeric_;      // of each column
  Space space_;
};

}  // namespace traind
