// Reads arrays of numbers as rows and columns, from an NPY file or an NPZ archive of them.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/csv.h"

namespace traind {

// Whether the first bytes are those of an NPY file or a ZIP archive.
bool IsArrayFile(absl::string_view bytes);

// A one-dimensional array becomes a column of its name; the columns of a two-dimensional one become
// NAME0, NAME1, ... (an NPY file's array is named x). All arrays have the same number of rows. They
// hold float32, float64, integers or bool, in C or Fortran order; NaN is a missing value. Threads:
// confined to one. Ownership: the bytes are the caller's.
class ArrayFile {
 public:
  // InvalidArgument: objects, texts, big-endian or other dtypes, another number of dimensions,
  // arrays of different lengths, or a file that is cut.
  static absl::StatusOr<std::unique_ptr<ArrayFile>> Open(absl::string_view bytes,
                                                         const std::string& name);

  const std::vector<std::string>& columns() const { return columns_; }
  int64_t rows() const { return rows_; }
  // Appends rows as if they came from a CSV file, with all digits of every number. A row's line is
  // its row number.
  void Append(int64_t begin, int64_t end, CsvRows& rows) const;

 private:
  // The values of one column.
  struct Values {
    const char* first = nullptr;
    int64_t stride = 0;  // bytes from row to row
    char kind = 'f';     // f, i, u or b, as in numpy
    int size = 4;        // bytes of a value
  };

  ArrayFile() = default;
  absl::Status AddArray(absl::string_view bytes, const std::string& array, const std::string& name);
  static void AppendValue(const Values& values, int64_t row, std::string& text);

  std::vector<std::string> columns_;
  std::vector<Values> values_;  // [column]
  int64_t rows_ = -1;
  std::string first_array_;           // the array whose row count the others must have
  std::deque<std::string> unpacked_;  // decompressed members
};

}  // namespace traind
