// A fold's rows as files, for a program of a user.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "common/data/table/table.h"
#include "worker/data/fold_rows.h"

namespace traind {

// The names of the files in their folder.
inline constexpr char kTrainCsv[] = "train.csv";
inline constexpr char kValidCsv[] = "valid.csv";
inline constexpr char kTestCsv[] = "test.csv";

// A file of the user, and what messages call it.
struct UserFile {
  std::string name;
  absl::string_view bytes;
};

// Writes the rows of `file`, the training file that `table` was made from, to the folder `dir`:
// those that the fold trains on and those that it validates, byte for byte, below the file's own
// header. A file of an earlier start is replaced at once. Returns the ids of the rows that the fold
// validates; nothing where the file has no column of ids.
// Errors: InvalidArgument: the file is another one than the table was made from; those of writing.
absl::StatusOr<std::vector<std::string>> WriteFoldFiles(const UserFile& file, const Table& table,
                                                        const FoldRows& rows,
                                                        const std::string& dir);

// Writes the test file without its column `target`. Errors: as above.
absl::Status WriteTestFile(const UserFile& file, const Table& table, const std::string& dir);

}  // namespace traind
