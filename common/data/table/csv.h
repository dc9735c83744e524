// Values separated by commas, tabs or semicolons, as RFC 4180 has them: quoted fields may hold
// commas, line ends and doubled quotes; CRLF and LF end a line; a UTF-8 byte order mark is skipped;
// blanks around an unquoted field are stripped; blank lines are skipped.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace traind {

// Where a row begins.
struct CsvPlace {
  size_t at = 0;     // byte in the file
  int64_t rows = 0;  // before it, the header included
  int64_t line = 1;  // in the file, from 1
};

// Some rows of one width; fields are valid until the next Clear.
class CsvRows {
 public:
  void Clear() {
    fields_.clear();
    lines_.clear();
    unescaped_.clear();
  }
  size_t rows() const { return lines_.size(); }
  // A column's fields are those at its place, its place + columns, ...
  const absl::string_view* fields() const { return fields_.data(); }
  const int64_t* lines() const { return lines_.data(); }

  // Appends rows of `columns` fields each, which stand in `text` one after the
  // other; ends: where each one ends. The first row's line is `line`.
  void Append(std::string text, const std::vector<size_t>& ends, size_t columns, int64_t line);

 private:
  friend class CsvReader;
  std::vector<absl::string_view> fields_;  // row-major
  std::vector<int64_t> lines_;             // [row]
  std::deque<std::string> unescaped_;      // text of fields that stand so in no file
};

// Reads rows from bytes that the caller keeps (a mapped file).
// Threads: confined to one.
class CsvReader {
 public:
  // `name` is what errors call the file. `from`: where a row begins.
  CsvReader(absl::string_view bytes, std::string name, char delimiter = ',', CsvPlace from = {});

  // The next row's fields; valid until the next call. false: no row is left.
  // InvalidArgument: an open quote at the end, a NUL byte (binary data, UTF-16),
  // something after a closing quote - with file, row and line.
  absl::StatusOr<bool> Next();
  const std::vector<absl::string_view>& fields() const { return row_.fields_; }

  // Appends rows that begin before byte `stop`, until rows.rows() is max_rows.
  // InvalidArgument as of Next, and where a row is not as wide as the header;
  // the rows before it are in `rows`.
  absl::Status NextRows(const std::vector<std::string>& header, size_t stop, size_t max_rows,
                        CsvRows& rows);

  // Where the next row begins, or blank lines before it.
  CsvPlace place() const { return {at_, rows_, line_}; }
  // Rows so far, the header included.
  int64_t rows() const { return rows_; }
  // Line in the file where the current row begins, from 1.
  int64_t line() const { return row_line_; }
  // Bytes behind us.
  size_t position() const { return at_; }

 private:
  absl::StatusOr<bool> AddRow(size_t stop, CsvRows& rows);
  absl::Status AddField(CsvRows& rows, size_t first);
  absl::Status AddQuotedField(CsvRows& rows, size_t first);
  absl::Status Error(absl::string_view what, size_t column) const;
  size_t FindStop(size_t from);

  const absl::string_view bytes_;
  const std::string name_;
  const char delimiter_;
  const std::array<bool, 256> stops_;  // bytes that end an unquoted field
  size_t at_ = 0;
  int64_t rows_ = 0;
  int64_t line_ = 1;
  int64_t row_line_ = 1;
  CsvRows row_;
  // Which of the 64 bytes from window_at_ on are stops; none was looked at yet.
  size_t window_at_ = static_cast<size_t>(-64);
  uint64_t window_stops_ = 0;
};

// A field as a comma-separated file has it: quoted where it has to be, and where its
// blanks would be stripped.
std::string CsvField(absl::string_view text);

// The character between the fields of a file: a tab where its name ends with .tsv or .tab; else
// the one of comma, tab and semicolon that comes first in this list and is in the first line; else
// a comma.
char DelimiterOf(absl::string_view bytes, absl::string_view name);

// The name of a column that has none: "unnamed: 0", counted from 0.
std::string UnnamedColumn(size_t column);

// A header row: the column names, checked. InvalidArgument: empty file, header
// missing, a doubled name.
absl::StatusOr<std::vector<std::string>> ReadCsvHeader(absl::string_view bytes,
                                                       const std::string& name);

// What a look at the beginning of a file tells.
struct CsvSample {
  std::vector<std::string> header;
  int64_t rows = 0;  // data rows looked at
  bool whole_file = false;
};

// Checks header and rows of `bytes`, the file's first part (whole_file: all of
// it): rows are as wide as the header, quotes close, there is a data row. A row
// that the end of a part cuts is not judged. InvalidArgument names file, row and
// column.
absl::StatusOr<CsvSample> CheckCsvSample(absl::string_view bytes, bool whole_file,
                                         const std::string& name);

// InvalidArgument names file, row and column of the first byte that is not UTF-8, or is zero;
// the line alone where it is in no row. header: of a file with one.
absl::Status CheckCsvText(absl::string_view bytes, const std::string& name, char delimiter,
                          const std::vector<std::string>& header);

// The error for a row of another width than the header. `row` counts data rows from 1.
absl::Status RaggedRow(const std::string& name, int64_t row, int64_t line, size_t fields,
                       const std::vector<std::string>& header);

// Whether the text stands for a missing value: blank, ?, NA, N/A, NaN, null, None
// (letter case does not count).
bool IsMissing(absl::string_view text);

}  // namespace traind
