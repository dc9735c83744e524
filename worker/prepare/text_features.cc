#include "worker/prepare/text_features.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/data/text/hashed_words.h"

namespace traind {
namespace {

constexpr int64_t kMostCells = 2048, kLeastCells = 64;
constexpr int64_t kMostValues = int64_t{1} << 25;  // over all rows: 128 MiB

int64_t CellsFor(int64_t rows) {
  int64_t cells = kMostCells;
  while (cells > kLeastCells && cells * rows > kMostValues) cells /= 2;
  return cells;
}

// Returns the columns of the rows' texts, one column after the other.
std::vector<ColumnRows> Hashed(const std::vector<TextRows>& texts, int64_t rows, int64_t cells) {
  std::vector<ColumnRows> columns(static_cast<size_t>(cells));
  for (ColumnRows& column : columns) column.numbers.resize(static_cast<size_t>(rows));
  std::vector<float> bag(static_cast<size_t>(cells));
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    std::string text;
    for (const TextRows& column : texts) absl::StrAppend(&text, column[row], "\n");
    HashWords(text, absl::MakeSpan(bag));
    for (size_t cell = 0; cell < bag.size(); ++cell) columns[cell].numbers[row] = bag[cell];
  }
  return columns;
}

void Append(std::vector<ColumnRows> from, std::vector<ColumnRows>& to) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

}  // namespace

void AddTextFeatures(TableRows& rows) {
  const int64_t train = rows.schema.train_rows, test = rows.schema.test_rows;
  const int64_t cells = CellsFor(train + test);
  for (int64_t cell = 0; cell < cells; ++cell) {
    Column& column = rows.schema.features.emplace_back();
    column.name = absl::StrCat("~words", cell);
    column.floor_only = true;
  }
  Append(Hashed(rows.train_texts, train, cells), rows.train);
  Append(Hashed(rows.test_texts, test, cells), rows.test);
}

}  // namespace traind
