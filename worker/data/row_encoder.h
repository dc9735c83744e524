// From a table's columns to the numbers a network takes, fitted on a fold's
// training rows and on nothing else.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "common/data/table/folds.h"
#include "common/data/table/table.h"
#include "worker/data/media_source.h"

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
  // What these rows have besides: rows media_begin... of it; null: nothing.
  std::shared_ptr<const MediaSource> media;
  int64_t media_begin = 0;
};

// What a network learns of a forecast's target.
enum class TargetForm {
  // The difference to the last value that is known (KnownTargets), where that varies
  // less over the training rows than the value itself; else the value.
  kAuto,
  kValue,
};

// How many inputs a column has.
enum class InputWidths {
  // What the fold's training rows need: indicators where they lack values, codes of the
  // categories that they have.
  kFold,
  // What the table tells, so that it is the same for every fold: no indicators (a missing
  // number is the mean), codes for all categories.
  kTable,
};

// A table's features: where each one's rows begin. Of the two the other is null.
struct FeatureRows {
  std::vector<const float*> numbers;     // [feature]
  std::vector<const int32_t*> codes;     // [feature], as Table::Codes
  std::vector<absl::string_view> texts;  // [row]; empty where rows have none
};

// Columns that are the floor's alone are left out. Numeric columns are standardised; a missing
// value becomes the mean (0), and a column of which the training rows lack values has a second, 0/1
// column that tells so. Columns that are constant on the training rows are all 0. Threads:
// immutable. Ownership: keeps the table.
class RowEncoder {
 public:
  // Where the horizon of `shape` is 1 or more, each target's own past is an input:
  // a number, and a 0/1 column that tells where it is missing.
  static RowEncoder Fit(std::shared_ptr<const Table> table, absl::Span<const int32_t> training_rows,
                        const SampleShape& shape = {}, TargetForm form = TargetForm::kAuto,
                        InputWidths widths = InputWidths::kFold);

  // What fitting found out of plain rows (without a history).
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
  struct State {
    std::vector<Numeric> numeric;
    std::vector<Categorical> categorical;
    std::vector<int64_t> cardinalities;  // [categorical]
    SampleShape shape;
    std::vector<double> target_mean, target_scale;
  };
  State state() const;
  // Encodes rows as the encoder that the state is of; has no table. REQUIRES: the state's
  // shape has no history.
  explicit RowEncoder(State state);

  // REQUIRES: it was fitted.
  const Table& table() const { return *table_; }
  // Numeric columns and their indicators.
  int64_t numeric_width() const { return numeric_width_; }
  // Of each categorical column: codes are below it.
  const std::vector<int64_t>& cardinalities() const { return cardinalities_; }

  const SampleShape& shape() const { return shape_; }

  // Rows begin..end-1 of a split. Of the test rows the targets count as missing:
  // SetTargets says what they are taken to be.
  EncodedRows Encode(Split split, int64_t begin, int64_t end) const;
  // Rows that are not the table's; no targets' past is an input.
  EncodedRows Encode(const FeatureRows& rows, int64_t begin, int64_t end) const;
  // Rows of which nothing is known.
  EncodedRows Unknown(int64_t rows) const;
  // The targets of a row, [targets] in their own units, as an input of later rows.
  // Does nothing where they are no input.
  void SetTargets(absl::Span<const float> targets, int64_t row, EncodedRows& rows) const;

  // Regression: [training file's rows, targets], what networks learn of each row; NaN
  // where the row has no target. Where nothing is known before a row, the mean is.
  std::vector<float> LearntTargets() const;
  // Makes targets of what a network answers, [rows.size(), targets], for rows of the
  // training file; or, [targets], for a row of which these targets are known.
  void RowsToTargets(absl::Span<const int32_t> rows, absl::Span<float> answers) const;
  void ToTargets(absl::Span<const float> known, absl::Span<float> answer) const;

  // Regression, [targets]: the mean and standard deviation (1 if constant) over the
  // training rows of what networks learn; they see (it - mean) / scale.
  const std::vector<double>& target_mean() const { return target_mean_; }
  const std::vector<double>& target_scale() const { return target_scale_; }

 private:
  RowEncoder() = default;
  void FitNumeric(int feature, absl::Span<const int32_t> rows);
  void FitCategorical(int feature, absl::Span<const int32_t> rows);
  void FitTarget(absl::Span<const int32_t> rows, TargetForm form);
  void FindKnown();
  FeatureRows RowsOf(Split split) const;
  void EncodeNumeric(const FeatureRows& rows, int64_t begin, int64_t end, float* out) const;
  void EncodeCategorical(const FeatureRows& rows, int64_t begin, int64_t end, int32_t* out) const;

  std::shared_ptr<const Table> table_;
  std::vector<Numeric> numeric_;
  std::vector<Categorical> categorical_;
  std::vector<int64_t> cardinalities_;
  int64_t numeric_width_ = 0;
  SampleShape shape_;
  InputWidths widths_ = InputWidths::kFold;
  // The first of two columns of each target's past; -1: it is no input.
  int64_t past_at_ = -1;
  struct Target {
    double mean = 0, scale = 1;  // of the values, over the training rows
    bool difference = false;     // what is learnt
    float least = 0, most = 0;   // of the differences' sums; so that none runs away
  };
  std::vector<Target> targets_;  // regression
  std::vector<float> known_;     // [training file's rows, targets] if some target is a difference
  std::vector<double> target_mean_;
  std::vector<double> target_scale_;
};

}  // namespace traind
