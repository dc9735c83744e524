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

// A whole file in memory, and its format.
struct CsvText {
  std::string name;         // what errors call it
  absl::string_view bytes;  // all of it; kept by the caller, or a view of `rewritten`
  std::shared_ptr<const std::string> rewritten;  // with decimal points instead of commas
  std::vector<std::string> header;
  char delimiter = ',';
  CsvPlace first;  // where the data rows begin
  // If set, rows come from these arrays instead of from the bytes.
  std::shared_ptr<const ArrayFile> arrays;
};

// A number of rows whose fields fit the cache, as columns are read one by one.
size_t BlockRows(size_t columns);

// Reads a file's rows from beginning to end.
// Threads: confined to one.
class BlockReader {
 public:
  // `file` outlives it.
  explicit BlockReader(const CsvText& file)
      : file_(file), csv_(file.bytes, file.name, file.delimiter, file.first) {}

  // Appends the next rows, until rows.rows() is max_rows; fewer rows mean that the file ends.
  // Errors as for CsvReader::NextRows; the rows before the error are in `rows`.
  absl::Status Next(size_t max_rows, CsvRows& rows);
  // Number of bytes of CSV read so far.
  size_t position() const { return csv_.position(); }

 private:
  const CsvText& file_;
  CsvReader csv_;
  int64_t row_ = 0;  // the next row of the arrays
};

// Calls take(rows) for each block of the file's rows, which have `columns` fields; the first error
// of it or of reading ends the walk and is returned. The rows before an error of reading are taken.
template <class Take>
absl::Status ForEachBlock(const CsvText& file, size_t columns, Take take) {
  BlockReader reader(file);
  const size_t block_rows = BlockRows(columns);
  CsvRows block;
  absl::Status status;
  do {
    block.Clear();
    status = reader.Next(block_rows, block);
    if (const absl::Status taken = take(block); !taken.ok()) return taken;
  } while (status.ok() && block.rows() == block_rows);
  return status;
}

// How a column's fields are read.
enum class ColumnUse {
  kSkipped,
  kNumbers,
  kText,   // categories, up to a limit
  kKeys,   // categories without a limit
  kTimes,  // dates; after Use(), numbers too
};

// Reads every column of a file. Call Use for columns with a known type, then Read. Threads:
// confined to one; Read may start others.
class FileColumns {
 public:
  explicit FileColumns(size_t columns) : columns_(columns) {}

  // Sets how a column is read, instead of inferring it.
  void Use(size_t column, ColumnUse use);
  ColumnUse use(size_t column) const { return columns_[column].use; }
  ColumnValues& values(size_t column) { return columns_[column].values; }
  const ColumnValues& values(size_t column) const { return columns_[column].values; }
  size_t size() const { return columns_.size(); }
  int64_t rows() const { return rows_; }

  // Reads all rows. A column is read as numbers if its texts are few (StrayTexts), as times if it
  // has no numbers and its values that are no dates are few, and no dates in the other order
  // either, else as text. Where day and month may change places, they stand in the order in which
  // all dates can be read; where both orders serve, in that which gives all rows the same day of
  // the month, or the month first. `check` is called as rows
  // are added, and its error is returned; its errors come before those of later rows.
  // InvalidArgument: there is no row, or CsvReader::NextRows fails.
  absl::Status Read(const CsvText& file, int threads, const std::function<absl::Status()>& check);
  // Reads columns of times again, with the other order of day and month. REQUIRES: Read was called.
  absl::Status Turn(const CsvText& file, int threads, const std::vector<size_t>& columns);

 private:
  struct FileColumn {
    ColumnUse use = ColumnUse::kNumbers;
    bool fixed = false;                     // set by Use
    ColumnUse again = ColumnUse::kSkipped;  // how it is read in the next pass
    bool turned = false;  // the order of day and month was changed after the first rows
    ColumnValues values;
  };
  // A part of the file.
  struct Part {
    CsvRows block;
    size_t rows = 0;
    std::vector<ColumnValues> columns;
  };

  void PlanNextPass(size_t column);
  absl::StatusOr<size_t> Look(const CsvText& file);
  absl::Status ReadParts(const CsvText& file, int threads, const std::vector<ColumnUse>& uses,
                         const std::function<absl::Status()>& check);
  absl::Status ReadAgain(const CsvText& file, int threads, const std::vector<ColumnUse>& uses);
  void EmptyPart(Part& part) const;
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
