#include "worker/prepare/linear_floor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/data/table/folds.h"
#include "worker/prepare/linear_model.h"
#include "worker/prepare/prior_floor.h"

namespace traind {
namespace {

constexpr size_t kBuckets = 256;  // per categorical column
constexpr float kFarthest = 8;    // maximum distance from the mean, in standard deviations
constexpr size_t kMaxWeights = 4'000'000;
constexpr size_t kMaxSampleValues = 4'000'000;
constexpr size_t kFewestRows = 200;
constexpr size_t kBlockRows = 256;
constexpr double kFitShare = 0.6;  // of the time; the rest is for prediction

// FNV-1a, which gives the same bucket on every machine.
uint64_t HashOf(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Maps a table's columns to numbers and switches, in the same way for all folds.
class Layout {
 public:
  explicit Layout(const Table& table) : table_(table) {
    const std::vector<Column>& features = table.schema().features;
    for (size_t f = 0; f < features.size(); ++f) {
      if (features[f].kind == ColumnKind::kNumeric) {
        numeric_.push_back(static_cast<int>(f));
        continue;
      }
      Categorical column;
      column.feature = static_cast<int>(f);
      column.first = switches_;
      const size_t count = features[f].categories.size();
      for (size_t code = 0; code < count; ++code) {
        column.bucket.push_back(static_cast<int32_t>(
            count <= kBuckets ? code : HashOf(features[f].categories[code]) % kBuckets));
      }
      column.missing = static_cast<int32_t>(std::min(count, kBuckets));
      switches_ += column.missing + 1;
      categorical_.push_back(std::move(column));
    }
    first_gap_ = switches_;
    switches_ += static_cast<int32_t>(numeric_.size());
  }

  size_t numbers() const { return numeric_.size(); }
  size_t switches() const { return static_cast<size_t>(switches_); }
  size_t places() const { return categorical_.size() + numeric_.size(); }
  const std::vector<int>& numeric() const { return numeric_; }
  const Table& table() const { return table_; }

  // Fills out's switches for the given rows. A missing number turns its indicator on.
  void Switches(Split split, absl::Span<const size_t> rows, DesignRows& out) const;

 private:
  struct Categorical {
    int feature = 0;
    int32_t first = 0;            // index of its first switch
    int32_t missing = 0;          // index of the indicator of missing values
    std::vector<int32_t> bucket;  // [code]
  };

  const Table& table_;
  std::vector<int> numeric_;
  std::vector<Categorical> categorical_;
  int32_t switches_ = 0;
  int32_t first_gap_ = 0;
};

void Layout::Switches(Split split, absl::Span<const size_t> rows, DesignRows& out) const {
  out.places = places();
  out.on.assign(rows.size() * out.places, DesignRows::kOff);
  for (size_t i = 0; i < categorical_.size(); ++i) {
    const Categorical& column = categorical_[i];
    const auto codes = table_.Codes(column.feature, split);
    int32_t* to = out.on.data() + i;
    for (const size_t row : rows) {
      const int32_t code = codes[row];
      if (code >= 0) {
        *to = column.first + column.bucket[static_cast<size_t>(code)];
      } else if (code == kMissingCode) {
        *to = column.first + column.missing;
      }
      to += out.places;
    }
  }
  for (size_t i = 0; i < numeric_.size(); ++i) {
    const auto numbers = table_.Numeric(numeric_[i], split);
    int32_t* to = out.on.data() + categorical_.size() + i;
    for (const size_t row : rows) {
      if (std::isnan(numbers[row])) *to = first_gap_ + static_cast<int32_t>(i);
      to += out.places;
    }
  }
}

// Scaling fitted on the training rows of a fold.
class Scaling {
 public:
  Scaling(const Layout& layout, absl::Span<const size_t> rows) {
    for (const int feature : layout.numeric()) {
      const auto numbers = layout.table().Numeric(feature, Split::kTrain);
      double sum = 0, squares = 0, count = 0;
      for (const size_t row : rows) {
        if (std::isnan(numbers[row])) continue;
        sum += numbers[row];
        count += 1;
      }
      const double mean = count > 0 ? sum / count : 0;
      for (const size_t row : rows) {
        if (std::isnan(numbers[row])) continue;
        squares += (numbers[row] - mean) * (numbers[row] - mean);
      }
      const double deviation = count > 0 ? std::sqrt(squares / count) : 0;
      mean_.push_back(mean);
      // A column that is constant in these rows carries no information.
      scale_.push_back(deviation > 1e-12 * std::abs(mean) ? 1 / deviation : 0);
    }
  }

  void Numbers(const Layout& layout, Split split, absl::Span<const size_t> rows,
               DesignRows& out) const {
    out.rows = rows.size();
    out.numbers = layout.numbers();
    out.values.assign(out.rows * out.numbers, 0);
    for (size_t i = 0; i < out.numbers; ++i) {
      const auto numbers = layout.table().Numeric(layout.numeric()[i], split);
      float* to = out.values.data() + i;
      for (const size_t row : rows) {
        if (!std::isnan(numbers[row])) {
          const auto scaled = static_cast<float>((numbers[row] - mean_[i]) * scale_[i]);
          *to = std::min(std::max(scaled, -kFarthest), kFarthest);
        }
        to += out.numbers;
      }
    }
  }

 private:
  std::vector<double> mean_;
  std::vector<double> scale_;
};

// Converts targets to the model's scale and back.
class Targets {
 public:
  Targets(const Table& table, size_t target, absl::Span<const size_t> rows) {
    if (table.schema().target_kind == TargetKind::kClasses) {
      const auto classes = table.TargetClass(Split::kTrain);
      for (const size_t row : rows) scaled_.push_back(static_cast<float>(classes[row]));
      return;
    }
    values_ = true;
    const auto values = table.TargetValue(Split::kTrain, target);
    double sum = 0, squares = 0;
    for (const size_t row : rows) {
      sum += values[row];
      low_ = std::min(low_, values[row]);
      high_ = std::max(high_, values[row]);
    }
    mean_ = sum / static_cast<double>(rows.size());
    for (const size_t row : rows) squares += (values[row] - mean_) * (values[row] - mean_);
    deviation_ = std::sqrt(squares / static_cast<double>(rows.size()));
    if (deviation_ == 0) deviation_ = 1;
    for (const size_t row : rows) {
      scaled_.push_back(static_cast<float>((values[row] - mean_) / deviation_));
    }
  }

  absl::Span<const float> scaled() const { return scaled_; }
  // Converts back to the target's unit, clamped to the range that the rows show to be possible.
  void Restore(absl::Span<float> predicted) const {
    if (!values_) return;
    for (float& x : predicted) {
      x = std::min(std::max(static_cast<float>(x * deviation_ + mean_), low_), high_);
    }
  }

 private:
  bool values_ = false;
  double mean_ = 0, deviation_ = 1;
  float low_ = std::numeric_limits<float>::max();
  float high_ = std::numeric_limits<float>::lowest();
  std::vector<float> scaled_;
};

class LinearFloorFit {
 public:
  LinearFloorFit(const Table& table, const FloorFolds& folds, const LinearFloorOptions& options,
                 const Clock& clock)
      : table_(table),
        layout_(table),
        folds_(folds),
        options_(options),
        clock_(clock),
        begin_(clock.MonotonicNow()),
        classes_(table.schema().target_kind == TargetKind::kClasses),
        columns_(PredictionColumns(table)),
        outputs_(!classes_ || columns_ == 2 ? 1 : columns_) {}

  bool TooLarge() const {
    return (1 + layout_.numbers() + layout_.switches()) * outputs_ > kMaxWeights;
  }
  // Returns false if time is over.
  bool FitFold(int fold, Floor& floor);

 private:
  std::vector<size_t> SampleOthers(int fold) const;
  bool PredictRows(const LinearModel& model, const Scaling& scaling, const Targets& targets,
                   Split split, absl::Span<const size_t> rows, std::vector<float>& out) const;
  absl::Duration Spent() const { return clock_.MonotonicNow() - begin_; }
  Link ModelLink() const {
    if (!classes_) return Link::kIdentity;
    return columns_ == 2 ? Link::kLogistic : Link::kSoftmax;
  }

  const Table& table_;
  const Layout layout_;
  const FloorFolds& folds_;
  const LinearFloorOptions& options_;
  const Clock& clock_;
  const absl::Duration begin_;
  const bool classes_;
  const size_t columns_;
  const size_t outputs_;  // per model; there is one model per target
};

std::vector<size_t> LinearFloorFit::SampleOthers(int fold) const {
  std::vector<size_t> rows;
  for (const int32_t row : TrainingRows(table_, folds_.fold_of, fold, folds_.split)) {
    rows.push_back(static_cast<size_t>(row));
  }
  const size_t width = layout_.numbers() + layout_.places() + 1;
  const size_t fitting = std::max(kFewestRows, kMaxSampleValues / width);
  const size_t wanted = std::min(static_cast<size_t>(options_.rows_per_fold), fitting);
  if (rows.size() <= wanted) return rows;
  SeededRandom random(options_.seed + static_cast<uint64_t>(fold) + 1);
  for (size_t i = 0; i < wanted; ++i) {
    std::swap(rows[i], rows[i + random.Below(rows.size() - i)]);
  }
  rows.resize(wanted);
  std::sort(rows.begin(), rows.end());
  return rows;
}

bool LinearFloorFit::PredictRows(const LinearModel& model, const Scaling& scaling,
                                 const Targets& targets, Split split, absl::Span<const size_t> rows,
                                 std::vector<float>& out) const {
  const size_t width = model.width();
  out.resize(rows.size() * width);
  DesignRows block;
  for (size_t begin = 0; begin < rows.size(); begin += kBlockRows) {
    if (Spent() > options_.time) return false;
    const absl::Span<const size_t> some = rows.subspan(begin, kBlockRows);
    scaling.Numbers(layout_, split, some, block);
    layout_.Switches(split, some, block);
    const auto to = absl::MakeSpan(out).subspan(begin * width, some.size() * width);
    model.Predict(block, to);
    targets.Restore(to);
  }
  return true;
}

bool LinearFloorFit::FitFold(int fold, Floor& floor) {
  const std::vector<size_t> sample = SampleOthers(fold);
  if (sample.empty()) return false;
  DesignRows rows;
  const Scaling scaling(layout_, sample);
  scaling.Numbers(layout_, Split::kTrain, sample, rows);
  layout_.Switches(Split::kTrain, sample, rows);
  std::vector<size_t> mine, test(static_cast<size_t>(table_.schema().test_rows));
  for (size_t row = 0; row < folds_.fold_of.size(); ++row) {
    if (folds_.fold_of[row] == fold) mine.push_back(row);
  }
  std::iota(test.begin(), test.end(), size_t{0});
  const size_t models = classes_ ? 1 : columns_;
  for (size_t target = 0; target < models; ++target) {
    const Targets targets(table_, target, sample);
    LinearModel model(ModelLink(), layout_.numbers(), layout_.switches(), outputs_);
    FitOptions fit;
    fit.l2 = options_.l2;
    const double share =
        (fold * static_cast<double>(models) + static_cast<double>(target) + kFitShare) /
        (folds_.split.folds * static_cast<double>(models));
    const absl::Duration until = options_.time * share;
    fit.stop = [&] { return Spent() > until; };
    model.Fit(rows, targets.scaled(), fit);

    const size_t width = model.width();
    std::vector<float> predicted;
    if (!PredictRows(model, scaling, targets, Split::kTrain, mine, predicted)) return false;
    for (size_t i = 0; i < mine.size(); ++i) {
      std::copy_n(predicted.begin() + static_cast<ptrdiff_t>(i * width), width,
                  floor.oof.values.begin() + static_cast<ptrdiff_t>(mine[i] * columns_ + target));
    }
    if (!PredictRows(model, scaling, targets, Split::kTest, test, predicted)) return false;
    const float part = 1.0f / static_cast<float>(folds_.split.folds);
    for (size_t i = 0; i < predicted.size(); ++i) {
      floor.test.values[i / width * columns_ + target + i % width] += part * predicted[i];
    }
  }
  return true;
}

}  // namespace

std::optional<Floor> LinearFloor(const Table& table, const FloorFolds& folds, Metric metric,
                                 const LinearFloorOptions& options, const Clock& clock) {
  LinearFloorFit fit(table, folds, options, clock);
  if (fit.TooLarge()) return std::nullopt;
  // Rows without a fold keep the values of the prior floor.
  Floor floor = PriorFloor(table, folds, metric);
  floor.model = table.schema().target_kind == TargetKind::kClasses ? "logistic" : "ridge";
  std::fill(floor.test.values.begin(), floor.test.values.end(), 0.0f);
  for (int fold = 0; fold < folds.split.folds; ++fold) {
    if (!fit.FitFold(fold, floor)) return std::nullopt;
  }
  for (const std::vector<float>* values : {&floor.oof.values, &floor.test.values}) {
    if (!std::all_of(values->begin(), values->end(), [](float x) { return std::isfinite(x); })) {
      return std::nullopt;
    }
  }
  floor.score = OofScore(table, folds, metric, floor.oof.values);
  return floor;
}

}  // namespace traind
