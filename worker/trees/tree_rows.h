// Converts rows to the numbers that trees take: numbers as they are, NaN where one is missing,
// and codes of categories.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/table/table.h"
#include "worker/data/row_encoder.h"

namespace traind {

// float32, column by column.
struct TreeMatrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> values;  // [columns, rows]
};

// The facts about a matrix' columns that a library needs. Threads: immutable.
class TreeColumns {
 public:
  int64_t columns() const { return static_cast<int64_t>(categorical_.size()); }
  bool categorical(size_t column) const { return categorical_[column]; }
  // Whether the column tells by 0 and 1 if a text has a word.
  bool word(size_t column) const { return column < words_.size() && words_[column]; }
  // Free of what LightGBM does not take in a name; empty where two would be alike.
  const std::vector<std::string>& names() const { return names_; }

 protected:
  ~TreeColumns() = default;

  std::vector<bool> categorical_;
  std::vector<bool> words_;  // as word(); shorter where no more columns are such
  std::vector<std::string> names_;
};

// The columns are those of a RowEncoder, in the order of the table's features. Categories that
// the fold's training rows lack are missing.
// Threads: immutable.
class TreeEncoder final : public TreeColumns {
 public:
  // state: the result of RowEncoder::Fit on the fold's training rows; features: its columns.
  TreeEncoder(const RowEncoder::State& state, const std::vector<Column>& features);

  // The table's feature that becomes a column.
  size_t feature(size_t column) const { return columns_[column].feature; }

  // The rows that are named, of a table's split.
  TreeMatrix Encode(const Table& table, Split split, absl::Span<const int32_t> rows) const;
  // Rows begin..end-1.
  TreeMatrix Encode(const Table& table, Split split, int64_t begin, int64_t end) const;
  TreeMatrix Encode(const FeatureRows& rows, int64_t begin, int64_t end) const;

 private:
  struct Input {
    size_t feature = 0;
    bool categorical = false;
    std::vector<float> codes;  // by the table's code
  };
  template <class RowOf>
  TreeMatrix EncodeRows(const FeatureRows& features, int64_t rows, RowOf&& row_of) const;
  FeatureRows FeaturesOf(const Table& table, Split split) const;

  std::vector<Input> columns_;
};

}  // namespace traind
