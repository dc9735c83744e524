// A row of sums that a spreadsheet's user put below the data.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/data/table/file_columns.h"

namespace traind {

struct TotalRow {
  // Whether its numbers are the sums of their columns, so that it is no row of data.
  bool certain = false;
  size_t at = 0;        // the byte of the file where it begins
  std::string warning;  // names file, row and line
};

// Looks at the last row of a table: one of its cells is a word such as Total, Sum, Summe or Gesamt,
// which no other row has in that column, and some of its cells are numbers. It is certain where
// these are the sums of the rows above, within the rounding of the written numbers: all of them, or
// two at least. A sum counts if it is larger than each of the numbers, of which three at least are
// not zero; so neither a product called Sum, nor a column of zeros makes a row of totals.
// Nothing: it is a row as others, or the file cannot be read (the error is that of whoever reads
// it). The whole file is read only if there is such a word. Threads: safe, pure.
std::optional<TotalRow> FindTotalRow(const CsvText& file);

}  // namespace traind
