// Converts a table's columns to the numbers that a network takes. It is fitted on a fold's
// training rows only.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "common/data/table/folds.h"
#include "common/data/table/table.h"
#include "worker/data/media_source.h"
#include "worker/data/target_transform.h"

namespace traind {

// Codes of categorical columns as the network sees them. The categories of the fold's training
// rows follow from kFirstSeenCode on.
inline constexpr int32_t kMissingInputCode = 0;
inline constexpr int32_t kUnseenInputCode = 1;
inline constexpr int32_t kFirstSeenCode = 2;

// OutlierForm::kClamp: standardised values are clamped to this many standard deviations.
inline constexpr float kMaxDeviations = 10;
// OutlierForm::kSmooth: the standard deviations that no value reaches.
inline constexpr float kSmoothDeviations = 3;
// The kurtosis from which a column has heavy tails; that of a normal distribution is 3.
inline constexpr double kHeavyTails = 4;

struct EncodedRows {
  int64_t rows = 0;
  std::vector<float> numeric;  // [rows, numeric_width], row-major
  std::vector<int32_t> codes;  // [rows, cardinalities.size()], row-major
  // The rows' media, from row media_begin on; null: there are none.
  std::shared_ptr<const MediaSource> media;
  int64_t media_begin = 0;
};

// The form in which a network learns a forecast's target.
enum class TargetForm {
  // The difference to the last known value (KnownTargets), if it varies less over the training
  // rows than the value itself; else the value.
  kAuto,
  kValue,
};

// The rule for the number of inputs per column.
enum class InputWidths {
  // The fold's training rows decide: there are indicators for columns with missing values in
  // these rows, and codes for the categories in them.
  kFold,
  // The table decides, so that every fold has the same widths: no indicators (a missing
  // number becomes the mean), and codes for all categories.
  kTable,
};

// What becomes of a column's standardised numbers far from the mean.
enum class OutlierForm {
  kClamp,
  // x / sqrt(1 + (x / 3)^2): the smooth clipping of RealMLP (Holzmueller et al. 2024). Values near
  // the mean hardly change, and those far from it keep their order. It bends products and
  // thresholds of values beyond one deviation, so it is for columns with heavy tails.
  kSmooth,
};

// Pointers to the first row of each feature of a table. Each feature is numeric or categorical;
// its other pointer is null.
struct FeatureRows {
  std::vector<const float*> numbers;     // [feature]
  std::vector<const int32_t*> codes;     // [feature], as Table::Codes
  std::vector<absl::string_view> texts;  // [row]; empty if rows have no texts
};

// Encodes rows of a table. Columns that only the floor uses are left out. Numeric columns are
// standardised, but words of texts are not scaled. A missing value becomes the mean (0), and a
// column with missing values in the training rows gets a second column, a 0/1 indicator of missing
// values. Columns that are constant on the training rows become 0.
// Threads: immutable. Ownership: keeps the table.
class RowEncoder {
 public:
  // If the horizon of `shape` is at least 1, each target's own past is an input: a number, and
  // a 0/1 indicator of missing values. heavy_tails: of the columns that have them in the training
  // rows; the others are clamped. transform: of targets that are values, with a horizon of 0.
  static RowEncoder Fit(std::shared_ptr<const Table> table, absl::Span<const int32_t> training_rows,
                        const SampleShape& shape = {}, TargetForm form = TargetForm::kAuto,
                        InputWidths widths = InputWidths::kFold,
                        OutlierForm heavy_tails = OutlierForm::kClamp,
                        TransformKind transform = TransformKind::kNone);

  // The result of fitting.
  struct Numeric {
    int feature = 0;
    float mean = 0;
    float inverse_scale = 0;
    bool indicator = false;
    OutlierForm outliers = OutlierForm::kClamp;
  };
  struct Categorical {
    int feature = 0;
    std::vector<int32_t> input_codes;  // indexed by the table's code
  };
  struct Target {
    double mean = 0, scale = 1;  // of the values, over the training rows
    bool difference = false;     // whether the difference is learnt
    float least = 0, most = 0;   // bounds of a value that is rebuilt from differences
  };
  struct State {
    std::vector<Numeric> numeric;
    std::vector<Categorical> categorical;
    std::vector<int64_t> cardinalities;  // [categorical]
    SampleShape shape;
    std::vector<double> target_mean, target_scale;
    std::vector<TargetTransform> transforms;  // [targets]; none: values are learnt as they are
    std::vector<Target> targets;  // regression with a horizon of 1 or more; their past is clamped
  };
  State state() const;
  // An encoder with the same state. table: later rows with the same features; null: only rows that
  // are not a table's are encoded.
  explicit RowEncoder(State state, std::shared_ptr<const Table> table = nullptr);

  // REQUIRES: the encoder has a table.
  const Table& table() const { return *table_; }
  // Number of numeric columns, including indicators.
  int64_t numeric_width() const { return numeric_width_; }
  // For each categorical column, the exclusive upper bound of its codes.
  const std::vector<int64_t>& cardinalities() const { return cardinalities_; }

  const SampleShape& shape() const { return shape_; }

  // Encodes rows begin..end-1 of a split. Targets of test rows count as missing until
  // SetTargets() sets them.
  EncodedRows Encode(Split split, int64_t begin, int64_t end) const;
  // Encodes rows that are not the table's. No target's past is an input.
  EncodedRows Encode(const FeatureRows& rows, int64_t begin, int64_t end) const;
  // Encodes rows of which nothing is known.
  EncodedRows Unknown(int64_t rows) const;
  // Sets the targets of a row, [targets] in their own units, which are inputs of later rows.
  // Does nothing if targets are no inputs.
  void SetTargets(absl::Span<const float> targets, int64_t row, EncodedRows& rows) const;

  // Regression: [rows of the training file, targets], the values that models learn: transformed
  // ones, or differences. NaN for rows without a target. If no value is known before a row, the
  // mean stands in for it.
  std::vector<float> LearntTargets() const;
  // Convert a network's answers, differences, to targets: RowsToTargets for rows of the training
  // file, [rows.size(), targets]; ToTargets for one row, [targets], whose known values are given.
  void RowsToTargets(absl::Span<const int32_t> rows, absl::Span<float> answers) const;
  void ToTargets(absl::Span<const float> known, absl::Span<float> answer) const;

  // Regression, [targets]: the mean and standard deviation (1 if constant) of the learnt values
  // over the training rows. Networks see (value - mean) / scale.
  const std::vector<double>& target_mean() const { return target_mean_; }
  const std::vector<double>& target_scale() const { return target_scale_; }
  // None, or what ToOwnUnit() inverts.
  const std::vector<TargetTransform>& transforms() const { return transforms_; }
  // [targets]: the unit of an answer's error. That of the learnt values, unless these are
  // transformed.
  std::vector<double> error_scale() const;

 private:
  RowEncoder() = default;
  void FitNumeric(int feature, absl::Span<const int32_t> rows);
  void FitCategorical(int feature, absl::Span<const int32_t> rows);
  void FitTarget(absl::Span<const int32_t> rows, TargetForm form, TransformKind transform);
  void FindKnown();
  // Adds the inputs of the targets' past.
  void AddPast();
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
  OutlierForm heavy_tails_ = OutlierForm::kClamp;
  // The first of the two columns of each target's past; -1: the past is no input.
  int64_t past_at_ = -1;
  std::vector<Target> targets_;  // regression
  std::vector<float> known_;     // [rows of the training file, targets] if a target is a difference
  std::vector<double> target_mean_;
  std::vector<double> target_scale_;
  std::vector<TargetTransform> transforms_;
};

}  // namespace traind
