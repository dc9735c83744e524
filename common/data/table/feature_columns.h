// The feature columns of a training file while it is read.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/data/table/column_reader.h"
#include "common/data/table/feature_reader.h"
#include "common/data/table/file_columns.h"
#include "common/data/table/table.h"
#include "common/data/table/table_writer.h"
#include "common/data/table/text_features.h"

namespace traind {

// Returns "column 'a'" or "columns 'a', 'b', 'c', 'd', 'e' and 7 more".
std::string NameColumns(const std::vector<std::string>& names);

// Returns "FILE: row R (line L), column 'C'".
std::string Place(absl::string_view file, int64_t row, int64_t line, absl::string_view column);

// Returns "FILE: row R, column 'C'".
std::string Place(absl::string_view file, int64_t row, absl::string_view column);

// Says as which day dates that are not ISO 8601 are read, by an example.
std::string WrittenDatesWarning(absl::string_view file, absl::string_view column,
                                absl::string_view example, DateOrder order);

// Keeps the values at the given indices, in that order.
template <typename T>
void KeepRows(const std::vector<uint32_t>& kept, std::vector<T>& values) {
  const bool ascending = std::is_sorted(kept.begin(), kept.end());
  if (ascending && kept.size() == values.size()) return;
  if (!ascending) {
    std::vector<T> taken;
    taken.reserve(kept.size());
    for (const uint32_t row : kept) taken.push_back(values[row]);
    values = std::move(taken);
    return;
  }
  for (size_t i = 0; i < kept.size(); ++i) values[i] = values[kept[i]];
  values.resize(kept.size());
}

// Collects the features of a training file and then of a test file. Call Finish before AddTestRows.
// Threads: confined to one.
class FeatureColumns {
 public:
  // `columns`: the training file's columns, already read; it outlives this object, and Finish moves
  // from it.
  FeatureColumns(std::string file, std::vector<std::string> names, FileColumns& columns)
      : file_(std::move(file)), names_(std::move(names)), columns_(columns) {}

  // Excludes this column of the file from the features.
  void Skip(size_t at) { skipped_.insert(at); }

  // Keeps only the cyclic parts (of year, week and day) of this date column.
  void OnlyCycles(size_t at) { only_cycles_ = at; }
  // Makes no features of texts.
  void NoTextFeatures() { text_features_ = false; }
  // Allows that no feature is left.
  void MayBeNone() { may_be_none_ = true; }

  // Keeps the given rows in their order, drops useless columns, orders categories and makes numbers
  // of dates. InvalidArgument: a value is not finite, or no column is left.
  absl::Status Finish(const std::vector<uint32_t>& kept, std::vector<Column>& schema,
                      std::vector<ColumnRows>& rows, std::vector<std::string>& warnings);

  // [feature]: its index among the training file's columns.
  std::vector<size_t> Places() const {
    std::vector<size_t> places;
    for (const Source& source : features_) places.push_back(source.at);
    return places;
  }

  // Appends rows of the test file, which has `columns` columns; feature f is in column
  // feature_at[f]. `before`: the number of the file's rows before these. Texts in numeric columns
  // are counted in `strays`, by feature. InvalidArgument: a value in a numeric column is not
  // finite.
  absl::Status AddTestRows(const CsvRows& test, size_t columns,
                           const std::vector<size_t>& feature_at, absl::string_view file,
                           int64_t before, std::vector<ColumnRows>& rows,
                           std::vector<StrayTexts>& strays) const;
  // Call this after the last row. Warns of texts that count as missing. InvalidArgument: a numeric
  // column has too many texts.
  absl::Status CheckTestRows(absl::string_view file, const std::vector<StrayTexts>& strays,
                             std::vector<std::string>& warnings) const;

 private:
  enum class Verdict { kFeature, kEmpty, kConstant, kFreeText, kIndex };
  // The column, and the part of a date or text, that a feature comes from.
  struct Source {
    size_t at = 0;  // index in columns_
    int part = -1;  // index into DateParts, or into the column's text_readers_; -1: all of it
    double offset = 0;
  };

  void AddDateFeatures(size_t at, std::vector<Column>& schema, std::vector<ColumnRows>& rows,
                       std::vector<std::string>& dates);

  // Keeps the given rows of columns of texts, and chooses their parts.
  void PlanTextFeatures(const std::vector<uint32_t>& kept);
  std::vector<ColumnRows> TextFeatureRows(size_t at) const;
  void AddTextFeatures(size_t at, std::vector<ColumnRows> parts, std::vector<Column>& schema,
                       std::vector<ColumnRows>& rows);

  static double Centre(NumberColumn& column);

  std::vector<FeatureField> TestFields(const std::vector<size_t>& feature_at) const;
  Verdict Classify(size_t at, std::vector<std::string>& warnings);
  Verdict ClassifyTexts(size_t at, std::vector<std::string>& warnings);
  bool IsIndex(size_t at) const;
  static size_t OrderCategories(ColumnValues& column);

  const std::string file_;
  const std::vector<std::string> names_;
  FileColumns& columns_;
  std::set<size_t> skipped_;
  std::optional<size_t> only_cycles_;
  bool may_be_none_ = false, text_features_ = true;
  std::map<size_t, TextFeatureReader> text_readers_;  // of the columns that have some
  std::vector<Source> features_;                      // [feature]
};

}  // namespace traind
