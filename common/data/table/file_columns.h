// All columns of a training file while it is read.
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/array_file.h"
#include "common/data/table/column_reader.h"
#include "common/data/table/csv.h"

namespace traind {

// A whole file in memory, with what is known of its form.
struct CsvText {
  std::string name;         // what errors call it
  absl::string_view bytes;  // all of it; kept by the caller
  std::vector<std::string> header;
  char delimiter = ',';
  CsvPlace first;  // of the data rows
  // Where these are set, rows come from them instead of from the bytes.
  std::shared_ptr<const ArrayFile> arrays;
};

// Rows at a time that suit the cache, as columns are read one by one.
size_t BlockRows(size_t columns);

// Reads a file's rows from beginning to end. Threads: confined to one.
class BlockReader {
 public:
  // `file` outlives it.
  explicit BlockReader(const CsvText& file)
      : file_(file), csv_(file.bytes, file.name, file.delimiter, file.first) {}

  // Appends the next rows, until rows.rows() is max_rows; fewer are the last ones.
  // Errors as of CsvReader::NextRows; the rows before it are in `rows`.
  absl::Status Next(size_t max_rows, CsvRows& rows);
  // Bytes of CSV behind us.
  size_t position() const { return csv_.position(); }

 private:
  const CsvText& file_;
  CsvReader csv_;
  int64_t row_ = 0;  // of the arrays
};

// How a column's fields are read.
enum class ColumnUse {
  kSkipped,
  kNumbers,
  kText,   // categories, up to a limit
  kKeys,   // texts, however many
  kTimes,  // dates; with Use() numbers, too
};

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

  // Reads all rows. Columns are read as numbers if their texts are few (StrayTexts), as times if
  // every value that is not missing is a date, else as text. `check` is called as rows are
  // added, and its error is returned; what it finds comes before what is wrong further down.
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

  bool LateText(const FileColumn& column) const;
  absl::StatusOr<size_t> Look(const CsvText& file);
  absl::Status ReadParts(const CsvText& file, int threads, const std::vector<ColumnUse>& uses,
                         const std::function<absl::Status()>& check);
  static void ParseBlock(const std::vector<ColumnUse>& uses, Part& part);
  absl::Status ReadArrays(const CsvText& file, const std::vector<ColumnUse>& uses,
                          const std::function<absl::Status()>& check);
  absl::Status ParsePart(const CsvText& file, const std::vector<ColumnUse>& uses, CsvReader& reader,
                         size_t stop, Part& part) const;
  void AppendPart(const std::vector<ColumnUse>& uses, const Part& part, const CsvPlace& base);

  std::vector<FileColumn> columns_;
  int64_t rows_ = 0;
};

}  // namespace traind
