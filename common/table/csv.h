// Comma-separated values as RFC 4180 has them: quoted fields may hold commas,
// line ends and doubled quotes; CRLF and LF end a line; a UTF-8 byte order mark
// is skipped; blanks around an unquoted field are stripped; blank lines are skipped.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace traind {

// Reads rows one by one from bytes that the caller keeps (a mapped file).
// Threads: confined to one.
class CsvReader {
 public:
  // `name` is what errors call the file.
  CsvReader(absl::string_view bytes, std::string name, char delimiter = ',');

  // The next row's fields; valid until the next call. false: no row is left.
  // InvalidArgument: an open quote at the end, a NUL byte (binary data, UTF-16),
  // something after a closing quote - with file, row and line.
  absl::StatusOr<bool> Next();

  const std::vector<absl::string_view>& fields() const { return fields_; }
  // Whether fields()[i] was quoted in the file.
  bool quoted(size_t i) const { return quoted_[i]; }
  // Rows so far, the header included.
  int64_t rows() const { return rows_; }
  // Line in the file where the current row begins, from 1.
  int64_t line() const { return row_line_; }
  // Bytes behind us.
  size_t position() const { return at_; }

 private:
  absl::Status Field();
  absl::Status QuotedField();
  absl::Status Error(absl::string_view what) const;

  const absl::string_view bytes_;
  const std::string name_;
  const char delimiter_;
  const std::array<bool, 256> stops_;  // bytes that end an unquoted field
  size_t at_ = 0;
  int64_t rows_ = 0;
  int64_t line_ = 1;
  int64_t row_line_ = 1;
  std::vector<absl::string_view> fields_;
  std::vector<bool> quoted_;
  std::vector<std::unique_ptr<std::string>> unescaped_;
};

// A header row: the column names, checked. InvalidArgument: empty file, header
// missing, an empty or doubled name.
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

// The error for a row of another width than the header. `row` counts data rows from 1.
absl::Status RaggedRow(const std::string& name, int64_t row, int64_t line, size_t fields,
                       const std::vector<std::string>& header);

// Whether the text stands for a missing value: blank, ?, NA, N/A, NaN, null, None
// (letter case does not count).
bool IsMissing(absl::string_view text);

}  // namespace traind
