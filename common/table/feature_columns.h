// The feature columns of a training file while it is read.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/table/column_reader.h"
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

// Order of calls: Skip, Look (some rows), Reserve, Add (all rows); where
// HasLateText: BeginLateText, AddLateText (all rows again); Finish; AddTestRow.
class FeatureColumns {
 public:
  FeatureColumns(std::string file, std::vector<std::string> names);

  // This column of the file is no feature.
  void Skip(size_t at) { columns_[at].use = Use::kSkipped; }
  // Makes columns categorical in which text stands.
  void Look(const std::vector<absl::string_view>& fields);
  void Reserve(size_t rows);
  void Add(const std::vector<absl::string_view>& fields, int64_t row, int64_t line);
  // Whether a column that began with numbers has text further down.
  bool HasLateText() const;
  void BeginLateText(size_t rows);
  void AddLateText(const std::vector<absl::string_view>& fields);

  // Keeps the given rows (ascending), leaves out columns that are of no use,
  // orders categories. InvalidArgument: a value that is not finite, or no column
  // is left.
  absl::Status Finish(const std::vector<uint32_t>& kept, std::vector<Column>& schema,
                      std::vector<ColumnRows>& rows, std::vector<std::string>& warnings);

  // Appends a row of the test file; feature f stands in fields[feature_at[f]].
  // InvalidArgument: text, or a value that is not finite, in a numeric column.
  absl::Status AddTestRow(const std::vector<absl::string_view>& fields,
                          const std::vector<size_t>& feature_at, absl::string_view file,
                          int64_t row, int64_t line, std::vector<ColumnRows>& rows) const;

 private:
  enum class Use { kSkipped, kNumbers, kText };
  struct FileColumn {
    Use use = Use::kNumbers;
    bool late_text = false;
    NumberColumn numbers;
    std::vector<int32_t> codes;
    Dictionary dictionary;
  };
  enum class Verdict { kFeature, kEmpty, kConstant, kFreeText };

  Verdict Judge(FileColumn& column) const;
  static void OrderCategories(FileColumn& column);

  const std::string file_;
  const std::vector<std::string> names_;
  std::vector<FileColumn> columns_;  // of the file
  std::vector<size_t> features_;     // [feature]: its place in columns_
};

}  // namespace traind
