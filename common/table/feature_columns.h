// The feature columns of a training file while it is read.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/table/column_reader.h"
#include "common/table/file_columns.h"
#include "common/table/table.h"
#include "common/table/table_writer.h"

namespace traind {

// "column 'a'" or "columns 'a', 'b', 'c', 'd', 'e' and 7 more".
std::string NameColumns(const std::vector<std::string>& names);

// "FILE: row R (line L), column 'C'".
std::string Place(absl::string_view file, int64_t row, int64_t line, absl::string_view column);

// Keeps the values at the given places, ascending.
template <typename T>
void KeepRows(const std::vector<uint32_t>& kept, std::vector<T>& values) {
  if (kept.size() == values.size()) return;
  for (size_t i = 0; i < kept.size(); ++i) values[i] = values[kept[i]];
  values.resize(kept.size());
}

// Order of calls: Finish, AddTestRows.
class FeatureColumns {
 public:
  // `columns`: of the training file, read; those that are skipped are no
  // features. It outlives this, and is moved from by Finish.
  FeatureColumns(std::string file, std::vector<std::string> names, FileColumns& columns)
      : file_(std::move(file)), names_(std::move(names)), columns_(columns) {}

  // This column of the file is no feature.
  void Skip(size_t at) { skipped_.insert(at); }

  // Keeps the given rows (ascending), leaves out columns that are of no use,
  // orders categories. InvalidArgument: a value that is not finite, or no column
  // is left.
  absl::Status Finish(const std::vector<uint32_t>& kept, std::vector<Column>& schema,
                      std::vector<ColumnRows>& rows, std::vector<std::string>& warnings);

  // Appends rows of the test file; feature f stands at feature_at[f] of `columns`
  // fields. `before`: rows of the file before these.
  // InvalidArgument: text, or a value that is not finite, in a numeric column.
  absl::Status AddTestRows(const CsvRows& test, size_t columns,
                           const std::vector<size_t>& feature_at, absl::string_view file,
                           int64_t before, std::vector<ColumnRows>& rows) const;

 private:
  enum class Verdict { kFeature, kEmpty, kConstant, kFreeText };

  Verdict Judge(size_t at);
  static void OrderCategories(ColumnValues& column);

  const std::string file_;
  const std::vector<std::string> names_;
  FileColumns& columns_;
  std::set<size_t> skipped_;
  std::vector<size_t> features_;  // [feature]: its place in columns_
};

}  // namespace traind
