// The feature columns of a training file while it is read.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cstdint>
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

namespace traind {

// "column 'a'" or "columns 'a', 'b', 'c', 'd', 'e' and 7 more".
std::string NameColumns(const std::vector<std::string>& names);

// "FILE: row R (line L), column 'C'".
std::string Place(absl::string_view file, int64_t row, int64_t line, absl::string_view column);

// "FILE: row R, column 'C'".
std::string Place(absl::string_view file, int64_t row, absl::string_view column);

// Keeps the values at the given places, in their order.
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

// Order of calls: Finish, AddTestRows.
class FeatureColumns {
 public:
  // `columns`: of the training file, read; those that are skipped are no
  // features. It outlives this, and is moved from by Finish.
  FeatureColumns(std::string file, std::vector<std::string> names, FileColumns& columns)
      : file_(std::move(file)), names_(std::move(names)), columns_(columns) {}

  // This column of the file is no feature.
  void Skip(size_t at) { skipped_.insert(at); }

  // Of this column of dates, only what comes again each year, week or day.
  void OnlyCycles(size_t at) { only_cycles_ = at; }
  // There need be no column at all.
  void MayBeNone() { may_be_none_ = true; }

  // Keeps the given rows in their order, leaves out columns that are of no use,
  // orders categories, makes numbers of dates. InvalidArgument: a value that is
  // not finite, or no column is left.
  absl::Status Finish(const std::vector<uint32_t>& kept, std::vector<Column>& schema,
                      std::vector<ColumnRows>& rows, std::vector<std::string>& warnings);

  // [feature]: its place among the training file's columns.
  std::vector<size_t> Places() const {
    std::vector<size_t> places;
    for (const Source& source : features_) places.push_back(source.at);
    return places;
  }

  // Appends rows of the test file; feature f stands at feature_at[f] of `columns`
  // fields. `before`: rows of the file before these.
  // Texts in numeric columns are counted in `strays`, by feature.
  // InvalidArgument: a value in a numeric column that is not finite.
  absl::Status AddTestRows(const CsvRows& test, size_t columns,
                           const std::vector<size_t>& feature_at, absl::string_view file,
                           int64_t before, std::vector<ColumnRows>& rows,
                           std::vector<StrayTexts>& strays) const;
  // After the last row. Warns of texts that count as missing. InvalidArgument: a numeric column has
  // too many texts.
  absl::Status CheckTestRows(absl::string_view file, const std::vector<StrayTexts>& strays,
                             std::vector<std::string>& warnings) const;

 private:
  enum class Verdict { kFeature, kEmpty, kConstant, kFreeText };
  // Where a feature comes from.
  struct Source {
    size_t at = 0;  // in columns_
    int part = 0;   // of a date: see DateParts
  };

  void AddDateFeatures(size_t at, std::vector<Column>& schema, std::vector<ColumnRows>& rows,
                       std::vector<std::string>& dates);

  std::vector<FeatureField> TestFields(const std::vector<size_t>& feature_at) const;
  Verdict Judge(size_t at);
  static void OrderCategories(ColumnValues& column);

  const std::string file_;
  const std::vector<std::string> names_;
  FileColumns& columns_;
  std::set<size_t> skipped_;
  std::optional<size_t> only_cycles_;
  bool may_be_none_ = false;
  std::vector<Source> features_;  // [feature]
};

}  // namespace traind
