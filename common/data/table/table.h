// A table as the trainer wants it: typed columns in one memory-mapped file.
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

namespace traind {

enum class ColumnKind { kNumeric, kCategorical };
enum class Split { kTrain, kTest };

// Codes of a categorical value. Codes >= 0 index Column::categories.
inline constexpr int32_t kMissingCode = -1;
// In the test rows only: a value that no training row has.
inline constexpr int32_t kUnseenCode = -2;

struct Column {
  std::string name;
  ColumnKind kind = ColumnKind::kNumeric;
  // Categorical: the distinct values of *all* training rows, most frequent
  // first. A fold must itself treat as unseen whatever its own training rows lack.
  std::vector<std::string> categories;
  // Of what a date tells: the file's column, and which part (date_parts.h); else empty, and -1.
  std::string source;
  int date_part = -1;
  // Made from media (pixels, texts): what the floor sees of them. No network's input; such
  // columns stand behind all others.
  bool floor_only = false;

  const std::string& file_column() const { return date_part < 0 ? name : source; }
};

enum class TargetKind { kClasses, kValue };

// What a table holds, without its rows.
struct TableSchema {
  int64_t train_rows = 0;
  int64_t test_rows = 0;         // 0: no test file
  std::vector<Column> features;  // in the training file's order; neither target nor id
  std::string target;            // name of the target column
  TargetKind target_kind = TargetKind::kClasses;
  std::vector<std::string> classes;       // kClasses: sorted (numerically if all are numbers)
  std::vector<std::string> more_targets;  // kValue: names of further target columns
  bool test_has_target = false;
  std::string id;                     // name of the id column; empty: rows count from 0
  std::string content_sha256;         // over the bytes of both files and the reading options
  std::vector<std::string> warnings;  // such as ignored columns; for the user
  // Rows are in the order of (series, time), a series' test rows following its
  // training rows. Rows of it may lack the target (NaN): they are history.
  bool ordered = false;
  // Names of the series, in the order of their rows; one without a name where no
  // column tells them apart.
  std::vector<std::string> series;
  // Columns kept as the texts that stand there: free text, names of files. No features.
  std::vector<std::string> text_columns;

  // Target columns.
  size_t targets() const { return 1 + more_targets.size(); }
};

// An immutable table, mapped read-only. File: 8 bytes magic "TRTABLE1", u64 LE
// header size, JSON header (schema, and for each array its offset, dtype and
// length), then the arrays, each aligned to 64 bytes.
// Threads: safe to share. Ownership: spans live as long as the Table.
class Table {
 public:
  // NotFound; DataLoss where the file is cut, or its header is not what it should be.
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
  // int32 [rows], indices into classes; of test rows kUnseenCode where the test
  // file's value is no class, kMissingCode where it is blank.
  // REQUIRES: target_kind is kClasses; for kTest: test_has_target.
  absl::Span<const int32_t> TargetClass(Split split) const;
  // float32 [rows]. REQUIRES: target_kind is kValue; for kTest: test_has_target
  // (there NaN = missing).
  absl::Span<const float> TargetValue(Split split, size_t target = 0) const;
  // uint64 [series]: the row behind each series' last one. Empty unless ordered.
  absl::Span<const uint64_t> SeriesEnds(Split split) const;
  // float64 [train_rows]: when each row was, in seconds since 1970 or in the
  // file's own numbers. Empty unless ordered.
  absl::Span<const double> Times() const;
  // int64 [test_rows]: where in the test file each row stands, from 0. Empty: they
  // are as in the file.
  absl::Span<const int64_t> TestOrder() const;
  // int32 [train_rows]: rows with the same number are of one group. Empty: no
  // column of groups.
  absl::Span<const int32_t> Groups() const;
  // int32 [train_rows]: the fold that the file gives each row, from 0; -1: none.
  // Empty: no column of folds.
  absl::Span<const int32_t> GivenFolds() const;
  // The test rows' ids in the test file's order; empty without an id column.
  std::vector<std::string> TestIds() const;
  // Of schema().text_columns[column]; empty where it is missing.
  // REQUIRES: 0 <= row < rows(split).
  absl::string_view Text(size_t column, Split split, int64_t row) const;
  // All of a row's texts, a line each.
  std::string RowText(Split split, int64_t row) const;

  // Reads everything: DataLoss where a byte is not as it was written. Open alone
  // checks what memory safety needs: sizes, offsets and the range of all codes.
  absl::Status VerifyDigest() const;

 private:
  struct Impl;
  explicit Table(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace traind
