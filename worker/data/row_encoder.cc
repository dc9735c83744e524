#include "worker/data/row_encoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace traind {
namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;  // population standard deviation
  int64_t present = 0;
};

// Two passes: one pass loses digits where the mean is far from 0.
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

// Below this a column is a constant with rounding noise.
bool IsConstant(const Moments& moments) {
  return !(moments.deviation > 1e-7 * std::max(1e-30, std::fabs(moments.mean)));
}

// Rows at a time, so that the row-major block stays in the cache.
constexpr int64_t kBlockRows = 256;

}  // namespace

RowEncoder RowEncoder::Fit(std::shared_ptr<const Table> table,
                           absl::Span<const int32_t> training_rows, const SampleShape& shape) {
  RowEncoder encoder;
  encoder.table_ = std::move(table);
  encoder.shape_ = shape;
  const TableSchema& schema = encoder.table_->schema();
  for (size_t i = 0; i < schema.features.size(); ++i) {
    const int feature = static_cast<int>(i);
    if (schema.features[i].kind == ColumnKind::kNumeric) {
      encoder.FitNumeric(feature, training_rows);
    } else {
      encoder.FitCategorical(feature, training_rows);
    }
  }
  if (schema.target_kind == TargetKind::kValue) {
    encoder.FitTarget(training_rows);
    if (shape.horizon > 0) {
      encoder.past_at_ = encoder.numeric_width_;
      encoder.numeric_width_ += 2 * static_cast<int64_t>(schema.targets());
    }
  }
  return encoder;
}

void RowEncoder::FitNumeric(int feature, absl::Span<const int32_t> rows) {
  const Moments moments = MomentsOf(table_->Numeric(feature, Split::kTrain), rows);
  Numeric column;
  column.feature = feature;
  column.mean = static_cast<float>(moments.mean);
  column.inverse_scale = IsConstant(moments) ? 0.0f : static_cast<float>(1.0 / moments.deviation);
  const int64_t missing = static_cast<int64_t>(rows.size()) - moments.present;
  column.indicator = missing > 0 && moments.present > 0;
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
  // Numbered as they appear: the table's own numbers come from all rows, and with
  // them the validation rows would have a say in who gets which initial weights.
  for (const int32_t row : rows) {
    const int32_t code = codes[static_cast<size_t>(row)];
    if (code < 0) continue;
    int32_t& input_code = column.input_codes[static_cast<size_t>(code)];
    if (input_code == kUnseenInputCode) input_code = next++;
  }
  cardinalities_.push_back(next);
  categorical_.push_back(std::move(column));
}

void RowEncoder::FitTarget(absl::Span<const int32_t> rows) {
  for (size_t target = 0; target < table_->schema().targets(); ++target) {
    const Moments moments = MomentsOf(table_->TargetValue(Split::kTrain, target), rows);
    target_mean_.push_back(moments.mean);
    target_scale_.push_back(IsConstant(moments) ? 1.0 : moments.deviation);
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
    for (size_t target = 0; past_at_ >= 0 && target < target_mean_.size(); ++target) {
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
        static_cast<float>((targets[target] - target_mean_[target]) / target_scale_[target]);
    cells[2 * target] = missing ? 0.0f : std::clamp(deviations, -kMaxDeviations, kMaxDeviations);
    cells[2 * target + 1] = missing ? 1.0f : 0.0f;
  }
}

EncodedRows RowEncoder::Encode(Split split, int64_t begin, int64_t end) const {
  EncodedRows encoded;
  encoded.rows = end - begin;
  encoded.numeric.resize(static_cast<size_t>(encoded.rows * numeric_width_));
  encoded.codes.resize(static_cast<size_t>(encoded.rows) * categorical_.size());
  const int64_t code_width = static_cast<int64_t>(categorical_.size());
  for (int64_t block = begin; block < end; block += kBlockRows) {
    const int64_t block_end = std::min(end, block + kBlockRows);
    EncodeNumeric(split, block, block_end,
                  encoded.numeric.data() + (block - begin) * numeric_width_);
    EncodeCategorical(split, block, block_end, encoded.codes.data() + (block - begin) * code_width);
  }
  if (past_at_ < 0) return encoded;
  std::vector<float> targets(target_mean_.size(), std::nanf(""));
  for (int64_t row = begin; row < end; ++row) {
    for (size_t target = 0; split == Split::kTrain && target < targets.size(); ++target) {
      targets[target] = table_->TargetValue(split, target)[static_cast<size_t>(row)];
    }
    SetTargets(targets, row - begin, encoded);
  }
  return encoded;
}

void RowEncoder::EncodeNumeric(Split split, int64_t begin, int64_t end, float* out) const {
  for (const Numeric& column : numeric_) {
    const float* values = table_->Numeric(column.feature, split).data();
    float* cell = out++;
    for (int64_t row = begin; row < end; ++row, cell += numeric_width_) {
      const float value = values[row];
      const bool missing = !std::isfinite(value);
      const float deviations = (value - column.mean) * column.inverse_scale;
      *cell = missing || column.inverse_scale == 0
                  ? 0.0f
                  : std::clamp(deviations, -kMaxDeviations, kMaxDeviations);
      if (column.indicator) cell[1] = missing ? 1.0f : 0.0f;
    }
    if (column.indicator) ++out;
  }
}

void RowEncoder::EncodeCategorical(Split split, int64_t begin, int64_t end, int32_t* out) const {
  const int64_t width = static_cast<int64_t>(categorical_.size());
  for (const Categorical& column : categorical_) {
    const int32_t* codes = table_->Codes(column.feature, split).data();
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
