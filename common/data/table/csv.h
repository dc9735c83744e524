// Reads values separated by commas, tabs, semicolons or bars as in RFC 4180: quoted fields may
// contain commas, line ends and doubled quotes; CRLF and LF end a line. A UTF-8 byte order mark,
// Excel's line `sep=;` and lines of blanks are skipped; blanks around an unquoted field are
// stripped.
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

// The place where a row begins.
struct CsvPlace {
  size_t at = 0;     // byte offset in the file
  int64_t rows = 0;  // rows before it, the header included
  int64_t line = 1;  // in the file, from 1
};

// Rows of the same width; fields are valid until the next Clear.
// Threads: confined to one.
class CsvRows {
 public:
  void Clear() {
    fields_.clear();
    lines_.clear();
    unescaped_.clear();
  }
  size_t rows() const { return lines_.size(); }
  // A column's fields stand at its index, its index + columns, ...
  const absl::string_view* fields() const { return fields_.data(); }
  const int64_t* lines() const { return lines_.data(); }

  // Appends rows of `columns` fields each, which follow each other in `text`; `ends` says where
  // each field ends. The first row's line is `line`.
  void Append(std::string text, const std::vector<size_t>& ends, size_t columns, int64_t line);

 private:
  friend class CsvReader;
  std::vector<absl::string_view> fields_;  // row-major
  std::vector<int64_t> lines_;             // [row]
  std::deque<std::string> unescaped_;      // unescaped texts of quoted fields
};

// Reads rows from bytes that the caller keeps (a mapped file).
// Threads: confined to one.
class CsvReader {
 public:
  // `name` is what errors call the file; `from` is a place where a row begins.
  CsvReader(absl::string_view bytes, std::string name, char delimiter = ',', CsvPlace from = {});

  // Reads the next row; fields() is valid until the next call. Returns false at the end.
  // InvalidArgument, with file, row and line: an open quote at the end, a NUL byte (binary data,
  // UTF-16), or text after a closing quote.
  absl::StatusOr<bool> Next();
  const std::vector<absl::string_view>& fields() const { return row_.fields_; }

  // Appends rows that begin before byte `stop`, until rows.rows() is max_rows. InvalidArgument as
  // for Next, and where a row is not as wide as the header; the rows before it are in `rows`.
  absl::Status NextRows(const std::vector<std::string>& header, size_t stop, size_t max_rows,
                        CsvRows& rows);

  // Where the next row begins, or the blank lines before it.
  CsvPlace place() const { return {at_, rows_, line_}; }
  // Number of rows read so far, the header included.
  int64_t rows() const { return rows_; }
  // Line in the file where the current row begins, from 1.
  int64_t line() const { return row_line_; }
  // Number of bytes read so far.
  size_t position() const { return at_; }
  // Whether the last error is a quoted field that the bytes end in.
  bool ends_in_quotes() const { return ends_in_quotes_; }

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
  bool ends_in_quotes_ = false;
  CsvRows row_;
  // Which of the 64 bytes from window_at_ on end an unquoted field; at first no window has been
  // examined.
  size_t window_at_ = static_cast<size_t>(-64);
  uint64_t window_stops_ = 0;
};

// Writes a field for a comma-separated file: quoted where it has to be, and where its blanks would
// be stripped.
std::string CsvField(absl::string_view text);

// Returns the delimiter of a file: that of a first line `sep=;`; a tab if its name ends with .tsv
// or .tab (before .gz); else the one of comma, tab, semicolon and bar that cuts the header and the
// first rows into the same number of fields, and into the most; else the first of them that the
// header contains; else a comma.
char DelimiterOf(absl::string_view bytes, absl::string_view name);

// What a file of one column that lacks another one is told.
inline constexpr absl::string_view kDelimiterHint =
    "commas, tabs, semicolons or bars separate values, or any character after a first line such as "
    "sep=:";

// The name given to a column without one: "unnamed: 0", counted from 0.
std::string UnnamedColumn(size_t column);

// Reads and checks the header row. With `repeated`, names that more than one column has are
// appended there, once each; the columns after the first are called `x.1`, `x.2`, ... as in pandas.
// InvalidArgument: an empty file, a missing header, or, without `repeated`, such a name.
absl::StatusOr<std::vector<std::string>> ReadCsvHeader(
    absl::string_view bytes, const std::string& name, std::vector<std::string>* repeated = nullptr);

// The error for a column of which there must be only one.
absl::Status RepeatedColumn(const std::string& name, absl::string_view column);

// The result of examining the beginning of a file.
struct CsvSample {
  std::vector<std::string> header;
  std::vector<std::string> repeated;  // as of ReadCsvHeader
  int64_t rows = 0;                   // data rows examined
  bool whole_file = false;
};

// Checks the header and the rows of `bytes`, the beginning of the file (whole_file: all of it):
// rows are as wide as the header, quotes close, and there is a data row. A row that the end of the
// part cuts is ignored. InvalidArgument names file, row and column.
absl::StatusOr<CsvSample> CheckCsvSample(absl::string_view bytes, bool whole_file,
                                         const std::string& name);

// Checks that all bytes are UTF-8 and none is zero. InvalidArgument names file, row and column of
// the first bad byte, or only its line if it belongs to no row. header: the file's header.
absl::Status CheckCsvText(absl::string_view bytes, const std::string& name, char delimiter,
                          const std::vector<std::string>& header);

// Returns the error for a row of another width than the header. `row` counts data rows from 1.
absl::Status RaggedRow(const std::string& name, int64_t row, int64_t line, size_t fields,
                       const std::vector<std::string>& header);

// Whether the text means a missing value: blank, ?, NA, N/A, NaN, null, None, <NA>, or an error of
// Excel such as #N/A and #DIV/0! (letter case does not count).
bool IsMissing(absl::string_view text);
// Whether it does so among numbers and dates, where one to three dashes or points do, too.
bool IsMissingNumber(absl::string_view text);

}  // namespace traind
