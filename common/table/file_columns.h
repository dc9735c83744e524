// All columns of a training file while it is read.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/table/column_reader.h"
#include "common/table/csv.h"

namespace traind {

// A whole file in memory, with what is known of its form.
struct CsvText {
  std::string name;         // what errors call it
  absl::string_view bytes;  // all of it; kept by the caller
  std::vector<std::string> header;
  char delimiter = ',';
  CsvPlace first;  // of the data rows
};

// How a column's fields are read.
enum class ColumnUse { kSkipped, kNumbers, kText };

// Order of calls: Use where it is known, then Read.
class FileColumns {
 public:
  explicit FileColumns(size_t columns) : columns_(columns) {}

  // Sets how a column is read, instead of by what stands in it.
  void Use(size_t column, ColumnUse use);
  ColumnUse use(size_t column) const { return columns_[column].use; }
  ColumnValues& values(size_t column) { return columns_[column].values; }
  const ColumnValues& values(size_t column) const { return columns_[column].values; }
  size_t size() const { return columns_.size(); }
  int64_t rows() const { return rows_; }

  // Reads all rows. Columns are read as numbers if every value that is not
  // missing is one, else as text. `check` is called as rows are added, and its
  // error is returned; what it finds comes before what is wrong further down.
  // InvalidArgument: there is no row; what CsvReader::NextRows says.
  absl::Status Read(const CsvText& file, int threads, const std::function<absl::Status()>& check);

 private:
  struct FileColumn {
    ColumnUse use = ColumnUse::kNumbers;
    bool fixed = false;  // by Use
    ColumnValues values;
  };
  // A part of the file.
  struct Part {
    CsvRows block;
    size_t rows = 0;
    std::vector<ColumnValues> columns;
  };

  absl::StatusOr<size_t> Look(const CsvText& file);
  absl::Status ReadParts(const CsvText& file, int threads, const std::vector<ColumnUse>& uses,
                         const std::function<absl::Status()>& check);
  absl::Status ParsePart(const CsvText& file, const std::vector<ColumnUse>& uses, CsvReader& reader,
                         size_t stop, Part& part) const;
  void AppendPart(const std::vector<ColumnUse>& uses, const Part& part, const CsvPlace& base);

  std::vector<FileColumn> columns_;
  int64_t rows_ = 0;
};

}  // namespace traind
