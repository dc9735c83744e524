// Writes the file that Table::Open maps.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/table/table.h"

namespace traind {

// The rows of one column in one split. The column's kind decides which member holds them; the other
// stays empty.
struct ColumnRows {
  std::vector<float> numbers;  // NaN = missing
  std::vector<int32_t> codes;
};

// A list of texts, stored one after the other.
struct TextRows {
  std::string text;
  std::vector<uint64_t> ends;  // where each text ends in `text`

  void Add(absl::string_view value) {
    text.append(value.data(), value.size());
    ends.push_back(text.size());
  }
  absl::string_view operator[](size_t row) const {
    const uint64_t begin = row == 0 ? 0 : ends[row - 1];
    return absl::string_view(text).substr(begin, ends[row] - begin);
  }
  // Returns a list whose text k is this list's text order[k].
  TextRows InOrder(const std::vector<uint32_t>& order) const {
    TextRows ordered;
    for (const uint32_t row : order) ordered.Add((*this)[row]);
    return ordered;
  }
};

// A table in memory. train[f] has schema.train_rows rows, test[f] schema.test_rows; test_target is
// empty unless schema.test_has_target, and test_ids unless schema.id is set.
struct TableRows {
  TableSchema schema;
  std::vector<ColumnRows> train;  // [feature]
  std::vector<ColumnRows> test;   // [feature]
  ColumnRows train_target;
  ColumnRows test_target;
  std::vector<ColumnRows> more_train_targets;  // [schema.more_targets]
  std::vector<ColumnRows> more_test_targets;
  TextRows test_ids;
  std::vector<TextRows> train_texts, test_texts;  // [schema.text_columns]
  // These arrays are those of Table; empty where the table has no such array.
  std::vector<uint64_t> series_ends, test_series_ends;
  std::vector<double> times;
  std::vector<int64_t> test_order;
  std::vector<int32_t> groups;
  std::vector<int32_t> given_folds;
};

// Writes the file durably. Errors: those of WriteFileDurably; InvalidArgument: sizes do not fit the
// schema.
absl::Status WriteTable(const TableRows& rows, const std::string& path);

}  // namespace traind
