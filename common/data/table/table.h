// A table as training needs it: typed columns in one memory-mapped file.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/text_feature.h"
#include "common/data/table/written_date.h"

namespace traind {

enum class ColumnKind { kNumeric, kCategorical };
enum class Split { kTrain, kTest };

// Codes of a categorical value. Codes >= 0 index Column::categories.
inline constexpr int32_t kMissingCode = -1;
// A value that is not among the categories: no training row has it, or it is a rare one of a column
// with more values than a column keeps (kMaxCategories in column_reader.h).
inline constexpr int32_t kUnseenCode = -2;

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::kNumeric;
  // For a categorical column, the distinct values of *all* training rows, most frequent first; of
  // very many, only the most frequent. Each fold must treat a value that its own training rows lack
  // as unseen.
  std::vector<std::string> categories;
  // For a feature made from a date or a text, the file's column; else empty.
  std::string source;
  int date_part = -1;  // of a date (date_parts.h)
  DateOrder date_order = DateOrder::kMonthFirst;
  TextFeature text_feature;
  // Numbers are the file's minus this, because float32 has not enough digits for the file's.
  double offset = 0;
  // Made from media (pixels, texts) for the floor alone. Networks ignore such columns, which come
  // after all others.
  bool floor_only = false;

  const std::string& file_column() const { return source.empty() ? name : source; }
};

enum class TargetKind { kClasses, kValue };

// The description of a table, without its rows.
struct TableSchema {
  int64_t train_rows = 0;
  int64_t test_rows = 0;         // 0: no test file
  std::vector<Column> features;  // in the training file's order, without target and id
  std::string target;            // name of the target column
  TargetKind target_kind = TargetKind::kClasses;
  std::vector<std::string> classes;       // kClasses: sorted (numerically if all are numbers)
  std::vector<std::string> more_targets;  // kValue: names of additional target columns
  bool test_has_target = false;
  std::string id;                     // name of the id column; empty: rows are numbered from 0
  std::string content_sha256;         // of both files' bytes and the reading options
  std::vector<std::string> warnings;  // for the user, such as ignored columns
  // Rows are sorted by (series, time), and a series' test rows follow its training rows. Rows
  // without a target (NaN) are possible: they are history.
  bool ordered = false;
  DateOrder time_order = DateOrder::kMonthFirst;  // of the column that orders the rows
  // Names of the series, in the order of their rows; a single empty name if no column separates
  // series.
  std::vector<std::string> series;
  // Columns kept as texts: free text, names of files. They are not features.
  std::vector<std::string> text_columns;

  // Number of target columns.
  size_t targets() const { return 1 + more_targets.size(); }
};

// An immutable table, mapped read-only. File format: 8 bytes magic "TRTABLE1", u64 LE header size,
// JSON header (schema, and for each array its offset, dtype and length), then the arrays, each
// aligned to 64 bytes.
// Threads: safe to share. Ownership: spans live as long as the Table.
class Table {
 public:
  // NotFound; DataLoss: the file is cut, or its header is invalid.
  static absl::StatusOr<std::shared_ptr<const Table>> Open(const std::string& path);
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  const TableSchema& schema() const;
  int64_t rows(Split split) const;

  // float32 [rows]; NaN = missing. REQUIRES: features[feature].kind is kNumeric.
  absl::Span<const float> Numeric(int feature, Split split) const;
  // int32 [rows]. REQUIRES: features[feature].kind is kCategorical.
  absl::Span<const int32_t> Codes(int feature, Split split) const;
  // int32 [rows], indices into classes. A test row has kUnseenCode if its value is not a class,
  // kMissingCode if it is blank. REQUIRES: target_kind is kClasses; for kTest: test_has_target.
  absl::Span<const int32_t> TargetClass(Split split) const;
  // float32 [rows]; in test rows NaN = missing. REQUIRES: target_kind is kValue; for kTest:
  // test_has_target.
  absl::Span<const float> TargetValue(Split split, size_t target = 0) const;
  // uint64 [series]: the end of each series' rows. Empty unless ordered.
  absl::Span<const uint64_t> SeriesEnds(Split split) const;
  // float64 [train_rows]: the time of each row, in seconds since 1970 or in the file's own numbers.
  // Empty unless ordered.
  absl::Span<const double> Times() const;
  // int64 [test_rows]: each row's index in the test file, from 0. Empty: rows are in the file's
  // order.
  absl::Span<const int64_t> TestOrder() const;
  // int32 [train_rows]: rows with the same number belong to the same group. Empty: there is no
  // group column.
  absl::Span<const int32_t> Groups() const;
  // int32 [train_rows]: the fold that the file assigns to each row, from 0; -1: none. Empty: there
  // is no fold column.
  absl::Span<const int32_t> GivenFolds() const;
  // The test rows' ids in the test file's order; empty without an id column.
  std::vector<std::string> TestIds() const;
  // The text in schema().text_columns[column]; empty where it is missing. REQUIRES: 0 <= row <
  // rows(split).
  absl::string_view Text(size_t column, Split split, int64_t row) const;
  // All texts of a row, one per line.
  std::string RowText(Split split, int64_t row) const;

  // Reads the whole file. DataLoss: a byte has changed since it was written. Open alone checks what
  // memory safety needs: sizes, offsets and the range of all codes.
  absl::Status VerifyDigest() const;

 private:
  struct Impl;
  explicit Table(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace traind
