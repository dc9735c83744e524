// From a table's columns to the numbers a network takes, fitted on a fold's
// training rows and on nothing else.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "common/table/table.h"

namespace traind {

// Codes of categorical columns as the network sees them. Categories that the
// fold's training rows have follow from kFirstSeenCode on.
inline constexpr int32_t kMissingInputCode = 0;
inline constexpr int32_t kUnseenInputCode = 1;
inline constexpr int32_t kFirstSeenCode = 2;

// Standardised values beyond this many standard deviations are cut there.
inline constexpr float kMaxDeviations = 10;

struct EncodedRows {
  int64_t rows = 0;
  std::vector<float> numeric;  // [rows, numeric_width], row-major
  std::vector<int32_t> codes;  // [rows, cardinalities.size()], row-major
};

// Numeric columns are standardised; a missing value becomes the mean (0), and a
// column of which the training rows lack values has a second, 0/1 column that
// tells so. Columns that are constant on the training rows are all 0.
// Threads: immutable. Ownership: keeps the table.
class RowEncoder {
 public:
  static RowEncoder Fit(std::shared_ptr<const Table> table,
                        absl::Span<const int32_t> training_rows);

  const Table& table() const { return *table_; }
  // Numeric columns and their indicators.
  int64_t numeric_width() const { return numeric_width_; }
  // Of each categorical column: codes are below it.
  const std::vector<int64_t>& cardinalities() const { return cardinalities_; }

  // Rows begin..end-1 of a split.
  EncodedRows Encode(Split split, int64_t begin, int64_t end) const;

  // Regression: the mean and standard deviation (1 if constant) of the training
  // rows' target; networks learn (target - mean) / scale.
  double target_mean() const { return target_mean_; }
  double target_scale() const { return target_scale_; }

 private:
  struct Numeric {
    int feature = 0;
    float mean = 0;
    float inverse_scale = 0;
    bool indicator = false;
  };
  struct Categorical {
    int feature = 0;
    std::vector<int32_t> input_codes;  // by the table's code
  };

  RowEncoder() = default;
  void FitNumeric(int feature, absl::Span<const int32_t> rows);
  void FitCategorical(int feature, absl::Span<const int32_t> rows);
  void FitTarget(absl::Span<const int32_t> rows);
  void EncodeNumeric(Split split, int64_t begin, int64_t end, float* out) const;
  void EncodeCategorical(Split split, int64_t begin, int64_t end, int32_t* out) const;

  std::shared_ptr<const Table> table_;
  std::vector<Numeric> numeric_;
  std::vector<Categorical> categorical_;
  std::vector<int64_t> cardinalities_;
  int64_t numeric_width_ = 0;
  double target_mean_ = 0;
  double target_scale_ = 1;
};

}  // namespace traind
