#include "worker/data/row_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "worker/data/known_targets.h"

namespace traind {
namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;  // population standard deviation
  int64_t present = 0;
};

// Two passes, because one pass loses precision if the mean is far from 0.
Moments MomentsOf(absl::Span<const float> values, absl::Span<const int32_t> rows) {
  Moments moments;
  for (const int32_t row : rows) {
    const float value = values[static_cast<size_t>(row)];
    if (!std::isfinite(value)) continue;
    moments.mean += value;
    ++moments.present;
  }
  if (moments.present == 0) return moments;
  moments.mean /= static_cast<double>(moments.present);
  double squares = 0;
  for (const int32_t row : rows) {
    const float value = values[static_cast<size_t>(row)];
    if (!std::isfinite(value)) continue;
    const double distance = value - moments.mean;
    squares += distance * distance;
  }
  moments.deviation = std::sqrt(squares / static_cast<double>(moments.present));
  return moments;
}

// The fourth standardised moment.
double KurtosisOf(absl::Span<const float> values, absl::Span<const int32_t> rows,
                  const Moments& moments) {
  double sum = 0;
  for (const int32_t row : rows) {
    const float value = values[static_cast<size_t>(row)];
    if (!std::isfinite(value)) continue;
    const double deviations = (value - moments.mean) / moments.deviation;
    sum += deviations * deviations * deviations * deviations;
  }
  return sum / static_cast<double>(moments.present);
}

// Below this threshold a column is a constant with rounding noise.
bool IsConstant(const Moments& moments) {
  return !(moments.deviation > 1e-7 * std::max(1e-30, std::fabs(moments.mean)));
}

float Clipped(float deviations, OutlierForm form) {
  if (form == OutlierForm::kClamp) return std::clamp(deviations, -kMaxDeviations, kMaxDeviations);
  const float ratio = deviations / kSmoothDeviations;  // the square of a large one overflows
  return std::fabs(ratio) < 1e18f ? deviations / std::sqrt(1 + ratio * ratio)
                                  : std::copysign(kSmoothDeviations, deviations);
}

TargetTransform FitOf(TransformKind kind, absl::Span<const float> values,
                      absl::Span<const int32_t> rows) {
  std::vector<float> of_rows;
  for (const int32_t row : rows) of_rows.push_back(values[static_cast<size_t>(row)]);
  return FitTransform(kind, of_rows);
}

Moments TransformedMoments(absl::Span<const float> values, absl::Span<const int32_t> rows,
                           const TargetTransform& transform) {
  std::vector<float> transformed(values.begin(), values.end());
  for (float& value : transformed) value = static_cast<float>(Transformed(transform, value));
  return MomentsOf(transformed, rows);
}

// Rows per block, so that a row-major block stays in the cache.
constexpr int64_t kBlockRows = 256;

}  // namespace

RowEncoder RowEncoder::Fit(std::shared_ptr<const Table> table,
                           absl::Span<const int32_t> training_rows, const SampleShape& shape,
                           TargetForm form, InputWidths widths, OutlierForm heavy_tails,
                           TransformKind transform) {
  RowEncoder encoder;
  encoder.widths_ = widths;
  encoder.heavy_tails_ = heavy_tails;
  encoder.table_ = std::move(table);
  encoder.shape_ = shape;
  const TableSchema& schema = encoder.table_->schema();
  for (size_t i = 0; i < schema.features.size(); ++i) {
    const int feature = static_cast<int>(i);
    if (schema.features[i].floor_only) continue;
    if (schema.features[i].kind == ColumnKind::kNumeric) {
      encoder.FitNumeric(feature, training_rows);
    } else {
      encoder.FitCategorical(feature, training_rows);
    }
  }
  if (schema.target_kind == TargetKind::kValue) {
    encoder.FitTarget(training_rows, form, transform);
    if (shape.horizon > 0) encoder.AddPast();
  }
  return encoder;
}

void RowEncoder::AddPast() {
  past_at_ = numeric_width_;
  numeric_width_ += 2 * static_cast<int64_t>(targets_.size());
}

RowEncoder::RowEncoder(State state, std::shared_ptr<const Table> table)
    : table_(std::move(table)),
      numeric_(std::move(state.numeric)),
      categorical_(std::move(state.categorical)),
      cardinalities_(std::move(state.cardinalities)),
      shape_(state.shape),
      targets_(std::move(state.targets)),
      target_mean_(std::move(state.target_mean)),
      target_scale_(std::move(state.target_scale)),
      transforms_(std::move(state.transforms)) {
  for (const Numeric& column : numeric_) numeric_width_ += column.indicator ? 2 : 1;
  if (!targets_.empty()) AddPast();
}

RowEncoder::State RowEncoder::state() const {
  State state = {numeric_,     categorical_,  cardinalities_, shape_,
                 target_mean_, target_scale_, transforms_,    {}};
  if (past_at_ >= 0) state.targets = targets_;
  return state;
}

void RowEncoder::FitNumeric(int feature, absl::Span<const int32_t> rows) {
  const auto values = table_->Numeric(feature, Split::kTrain);
  const Moments moments = MomentsOf(values, rows);
  Numeric column;
  column.feature = feature;
  column.mean = static_cast<float>(moments.mean);
  column.inverse_scale = IsConstant(moments) ? 0.0f : static_cast<float>(1.0 / moments.deviation);
  // A rare word would be many deviations away from its mean.
  const TextFeature& text = table_->schema().features[static_cast<size_t>(feature)].text_feature;
  if (text.kind == TextFeature::Kind::kWord && !IsConstant(moments)) column.inverse_scale = 1;
  const int64_t missing = static_cast<int64_t>(rows.size()) - moments.present;
  if (heavy_tails_ != OutlierForm::kClamp && !IsConstant(moments) &&
      KurtosisOf(values, rows, moments) > kHeavyTails) {
    column.outliers = heavy_tails_;
  }
  column.indicator = widths_ == InputWidths::kFold && missing > 0 && moments.present > 0;
  numeric_width_ += column.indicator ? 2 : 1;
  numeric_.push_back(column);
}

void RowEncoder::FitCategorical(int feature, absl::Span<const int32_t> rows) {
  Categorical column;
  column.feature = feature;
  const size_t known = table_->schema().features[static_cast<size_t>(feature)].categories.size();
  const auto codes = table_->Codes(feature, Split::kTrain);
  column.input_codes.assign(known, kUnseenInputCode);
  int32_t next = kFirstSeenCode;
  // Categories are numbered in order of appearance in these rows. The table's own numbers come
  // from all rows, so with them the validation rows would influence the initial
  // weights of categories.
  for (const int32_t row : rows) {
    const int32_t code = codes[static_cast<size_t>(row)];
    if (code < 0) continue;
    int32_t& input_code = column.input_codes[static_cast<size_t>(code)];
    if (input_code == kUnseenInputCode) input_code = next++;
  }
  cardinalities_.push_back(
      widths_ == InputWidths::kFold ? next : kFirstSeenCode + static_cast<int32_t>(known));
  categorical_.push_back(std::move(column));
}

void RowEncoder::FindKnown() {
  const size_t targets = table_->schema().targets();
  known_.reserve(static_cast<size_t>(table_->rows(Split::kTrain)) * targets);
  std::vector<float> row_targets(targets);
  size_t begin = 0;
  for (const uint64_t end : table_->SeriesEnds(Split::kTrain)) {
    KnownTargets series(shape_.horizon, targets);
    for (size_t row = begin; row < end; ++row) {
      for (size_t k = 0; k < targets; ++k) {
        row_targets[k] = table_->TargetValue(Split::kTrain, k)[row];
      }
      series.Append(row_targets);
      const auto known = series.Before(static_cast<int64_t>(row - begin));
      known_.insert(known_.end(), known.begin(), known.end());
    }
    begin = end;
  }
}

void RowEncoder::FitTarget(absl::Span<const int32_t> rows, TargetForm form,
                           TransformKind transform) {
  const size_t targets = table_->schema().targets();
  if (form == TargetForm::kAuto && shape_.horizon > 0) FindKnown();
  bool differences = false;
  for (size_t k = 0; k < targets; ++k) {
    const auto values = table_->TargetValue(Split::kTrain, k);
    const Moments moments = MomentsOf(values, rows);
    Target target;
    target.mean = moments.mean;
    target.scale = IsConstant(moments) ? 1.0 : moments.deviation;
    Moments learnt = moments;
    if (!known_.empty()) {
      std::vector<float> steps(values.begin(), values.end());
      for (size_t row = 0; row < steps.size(); ++row) {
        float& known = known_[row * targets + k];
        if (std::isnan(known)) known = static_cast<float>(target.mean);
        steps[row] -= known;
      }
      const Moments differing = MomentsOf(steps, rows);
      target.difference = differing.present > 0 && differing.deviation < moments.deviation;
      if (target.difference) learnt = differing;
    }
    if (transform != TransformKind::kNone) {
      learnt = TransformedMoments(values, rows,
                                  transforms_.emplace_back(FitOf(transform, values, rows)));
    }
    differences |= target.difference;
    float least = std::numeric_limits<float>::infinity(), most = -least;
    for (const int32_t row : rows) {
      if (std::isnan(values[static_cast<size_t>(row)])) continue;
      least = std::min(least, values[static_cast<size_t>(row)]);
      most = std::max(most, values[static_cast<size_t>(row)]);
    }
    target.least = least - (most - least);
    target.most = most + (most - least);
    targets_.push_back(target);
    target_mean_.push_back(learnt.mean);
    target_scale_.push_back(IsConstant(learnt) ? 1.0 : learnt.deviation);
  }
  if (!differences) known_.clear();
}

std::vector<float> RowEncoder::LearntTargets() const {
  const size_t targets = targets_.size();
  std::vector<float> learnt(static_cast<size_t>(table_->rows(Split::kTrain)) * targets);
  for (size_t k = 0; k < targets; ++k) {
    const auto values = table_->TargetValue(Split::kTrain, k);
    for (size_t row = 0; row < values.size(); ++row) {
      const size_t at = row * targets + k;
      learnt[at] = targets_[k].difference ? values[row] - known_[at] : values[row];
      if (!transforms_.empty()) {
        learnt[at] = static_cast<float>(Transformed(transforms_[k], values[row]));
      }
    }
  }
  return learnt;
}

std::vector<double> RowEncoder::error_scale() const {
  std::vector<double> scale = target_scale_;
  for (size_t k = 0; k < transforms_.size(); ++k) scale[k] = targets_[k].scale;
  return scale;
}

void RowEncoder::ToTargets(absl::Span<const float> known, absl::Span<float> answer) const {
  for (size_t k = 0; k < targets_.size(); ++k) {
    const Target& target = targets_[k];
    if (!target.difference) continue;
    const float from = std::isfinite(known[k]) ? known[k] : static_cast<float>(target.mean);
    answer[k] = std::clamp(from + answer[k], target.least, target.most);
  }
}

void RowEncoder::RowsToTargets(absl::Span<const int32_t> rows, absl::Span<float> answers) const {
  if (known_.empty()) return;
  const size_t targets = targets_.size();
  for (size_t i = 0; i < rows.size(); ++i) {
    ToTargets(absl::MakeConstSpan(known_).subspan(static_cast<size_t>(rows[i]) * targets, targets),
              answers.subspan(i * targets, targets));
  }
}

EncodedRows RowEncoder::Unknown(int64_t rows) const {
  EncodedRows encoded;
  encoded.rows = rows;
  encoded.numeric.assign(static_cast<size_t>(rows * numeric_width_), 0.0f);
  encoded.codes.assign(static_cast<size_t>(rows) * categorical_.size(), kMissingInputCode);
  for (int64_t row = 0; row < rows; ++row) {
    float* const cells = encoded.numeric.data() + row * numeric_width_;
    int64_t at = 0;
    for (const Numeric& column : numeric_) {
      if (column.indicator) cells[at + 1] = 1;
      at += column.indicator ? 2 : 1;
    }
    for (size_t target = 0; past_at_ >= 0 && target < targets_.size(); ++target) {
      cells[past_at_ + static_cast<int64_t>(2 * target) + 1] = 1;
    }
  }
  return encoded;
}

void RowEncoder::SetTargets(absl::Span<const float> targets, int64_t row, EncodedRows& rows) const {
  if (past_at_ < 0) return;
  float* const cells = rows.numeric.data() + row * numeric_width_ + past_at_;
  for (size_t target = 0; target < targets.size(); ++target) {
    const bool missing = !std::isfinite(targets[target]);
    const auto deviations =
        static_cast<float>((targets[target] - targets_[target].mean) / targets_[target].scale);
    cells[2 * target] = missing ? 0.0f : std::clamp(deviations, -kMaxDeviations, kMaxDeviations);
    cells[2 * target + 1] = missing ? 1.0f : 0.0f;
  }
}

FeatureRows RowEncoder::RowsOf(Split split) const {
  FeatureRows rows;
  rows.numbers.resize(table_->schema().features.size());
  rows.codes.resize(rows.numbers.size());
  for (const Numeric& column : numeric_) {
    rows.numbers[static_cast<size_t>(column.feature)] =
        table_->Numeric(column.feature, split).data();
  }
  for (const Categorical& column : categorical_) {
    rows.codes[static_cast<size_t>(column.feature)] = table_->Codes(column.feature, split).data();
  }
  return rows;
}

EncodedRows RowEncoder::Encode(Split split, int64_t begin, int64_t end) const {
  EncodedRows encoded = Encode(RowsOf(split), begin, end);
  if (past_at_ < 0) return encoded;
  std::vector<float> targets(targets_.size(), std::nanf(""));
  for (int64_t row = begin; row < end; ++row) {
    for (size_t target = 0; split == Split::kTrain && target < targets.size(); ++target) {
      targets[target] = table_->TargetValue(split, target)[static_cast<size_t>(row)];
    }
    SetTargets(targets, row - begin, encoded);
  }
  return encoded;
}

EncodedRows RowEncoder::Encode(const FeatureRows& rows, int64_t begin, int64_t end) const {
  EncodedRows encoded;
  encoded.rows = end - begin;
  encoded.numeric.resize(static_cast<size_t>(encoded.rows * numeric_width_));
  encoded.codes.resize(static_cast<size_t>(encoded.rows) * categorical_.size());
  const int64_t code_width = static_cast<int64_t>(categorical_.size());
  for (int64_t block = begin; block < end; block += kBlockRows) {
    const int64_t block_end = std::min(end, block + kBlockRows);
    EncodeNumeric(rows, block, block_end,
                  encoded.numeric.data() + (block - begin) * numeric_width_);
    EncodeCategorical(rows, block, block_end, encoded.codes.data() + (block - begin) * code_width);
  }
  return encoded;
}

void RowEncoder::EncodeNumeric(const FeatureRows& rows, int64_t begin, int64_t end,
                               float* out) const {
  for (const Numeric& column : numeric_) {
    const float* values = rows.numbers[static_cast<size_t>(column.feature)];
    float* cell = out++;
    for (int64_t row = begin; row < end; ++row, cell += numeric_width_) {
      const float value = values[row];
      const bool missing = !std::isfinite(value);
      const float deviations = (value - column.mean) * column.inverse_scale;
      *cell = missing || column.inverse_scale == 0 ? 0.0f : Clipped(deviations, column.outliers);
      if (column.indicator) cell[1] = missing ? 1.0f : 0.0f;
    }
    if (column.indicator) ++out;
  }
}

void RowEncoder::EncodeCategorical(const FeatureRows& rows, int64_t begin, int64_t end,
                                   int32_t* out) const {
  const int64_t width = static_cast<int64_t>(categorical_.size());
  for (const Categorical& column : categorical_) {
    const int32_t* codes = rows.codes[static_cast<size_t>(column.feature)];
    int32_t* cell = out++;
    const int32_t known = static_cast<int32_t>(column.input_codes.size());
    for (int64_t row = begin; row < end; ++row, cell += width) {
      const int32_t code = codes[row];
      if (code == kMissingCode) {
        *cell = kMissingInputCode;
      } else if (code < 0 || code >= known) {
        *cell = kUnseenInputCode;
      } else {
        *cell = column.input_codes[static_cast<size_t>(code)];
      }
    }
  }
}

}  // namespace traind
