#include "worker/prepare/linear_floor.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "common/data/table/folds.h"
#include "worker/prepare/prior_floor.h"

namespace traind {
namespace {

constexpr size_t kMaxWeights = 4'000'000;
constexpr size_t kMaxWords = 1'000'000;  // weights of words
constexpr size_t kMaxSampleValues = 4'000'000;
constexpr size_t kFewestRows = 200;
constexpr size_t kBlockRows = 256;
constexpr double kFitShare = 0.6;  // of the time; the rest is for prediction
constexpr double kFlatWithWords = 1e-3;
// Texts are read within a part of the time, on a slow machine, too.
constexpr double kTextBytesPerSecond = 8e6;
constexpr size_t kFewestTextBytes = 200;
// How much words may count, from the strongest penalty of their weights to the weakest.
constexpr float kWordScales[] = {1, 4, 16};
// Penalties beside the given one, as its multiples: weaker ones are tried first, then stronger
// ones, each while it wins. None where a fit reads many values: then the penalty matters little.
constexpr double kWeaker[] = {0.1, 0.001};
constexpr double kStronger[] = {10, 100, 1000};
constexpr size_t kMostPenaltyValues = 300'000;
constexpr size_t kParts = 4;  // of a fold's sample, each of which judges once

FloorRows RowsOf(const Table& table, Split split, const NgramCounts* ngrams) {
  FloorRows rows;
  rows.ngrams = ngrams;
  for (size_t f = 0; f < table.schema().features.size(); ++f) {
    const bool numeric = table.schema().features[f].kind == ColumnKind::kNumeric;
    const int feature = static_cast<int>(f);
    rows.numbers.push_back(numeric ? table.Numeric(feature, split).data() : nullptr);
    rows.codes.push_back(numeric ? nullptr : table.Codes(feature, split).data());
  }
  return rows;
}

// Converts the targets of some rows to a model's scale, and says how to convert back.
std::vector<float> ScaledTargets(const Table& table, size_t target, absl::Span<const size_t> rows,
                                 ValueScale* scale) {
  std::vector<float> scaled;
  if (scale == nullptr) {
    const auto classes = table.TargetClass(Split::kTrain);
    for (const size_t row : rows) scaled.push_back(static_cast<float>(classes[row]));
    return scaled;
  }
  const auto values = table.TargetValue(Split::kTrain, target);
  double sum = 0, squares = 0;
  scale->low = std::numeric_limits<float>::max();
  scale->high = std::numeric_limits<float>::lowest();
  for (const size_t row : rows) {
    sum += values[row];
    scale->low = std::min(scale->low, values[row]);
    scale->high = std::max(scale->high, values[row]);
  }
  scale->mean = sum / static_cast<double>(rows.size());
  for (const size_t row : rows) {
    squares += (values[row] - scale->mean) * (values[row] - scale->mean);
  }
  scale->deviation = std::sqrt(squares / static_cast<double>(rows.size()));
  if (scale->deviation == 0) scale->deviation = 1;
  for (const size_t row : rows) {
    scaled.push_back(static_cast<float>((values[row] - scale->mean) / scale->deviation));
  }
  return scaled;
}

class LinearFloorFit {
 public:
  LinearFloorFit(const Table& table, const FloorFolds& folds, Metric metric,
                 const LinearFloorOptions& options, const Clock& clock)
      : table_(table),
        layout_(table.schema().features),
        folds_(folds),
        quantile_(WantedQuantile(metric)),
        options_(options),
        clock_(clock),
        begin_(clock.MonotonicNow()),
        classes_(table.schema().target_kind == TargetKind::kClasses),
        columns_(PredictionColumns(table)) {
    model_.input = InputSchemaOf(table.schema());
    model_.table_sha256 = table.schema().content_sha256;
    model_.name = classes_ ? "logistic" : "ridge";
    outputs_ = FloorModel::OutputsOf(model_.input);
  }

  bool TooLarge() const {
    return (1 + layout_.numbers() + layout_.switches()) * outputs_ > kMaxWeights;
  }
  // Fits all folds. Returns false if time is over.
  bool Run(Floor& floor);
  FloorModel TakeModel() { return std::move(model_); }

 private:
  bool ReadTexts();
  size_t MostTextBytes() const;
  bool ReadTexts(Split split, NgramCounts& ngrams) const;
  bool FitFold(int fold, Floor& floor);
  std::vector<size_t> SampleOthers(int fold) const;
  std::vector<LinearModel> FitModels(const FloorFold& fold, const DesignRows& rows,
                                     const std::vector<std::vector<float>>& targets, double l2,
                                     const std::function<bool()>& stop) const;
  std::vector<LinearModel> FitInTurn(const FloorFold& fold, const DesignRows& rows,
                                     const std::vector<std::vector<float>>& targets, double l2);
  double ChoosePenalty(FloorFold& fold, absl::Span<const size_t> sample,
                       const std::vector<std::vector<float>>& targets) const;
  void ChooseWordScale(FloorFold& fold, absl::Span<const size_t> sample,
                       const std::vector<std::vector<float>>& targets,
                       absl::Span<const size_t> mine);
  double LossOf(const FloorFold& fold, absl::Span<const size_t> rows) const;
  void ShiftToQuantile(FloorFold& fold, const DesignRows& rows,
                       absl::Span<const size_t> sample) const;
  bool PredictRows(const FloorFold& fold, const FloorRows& from, absl::Span<const size_t> rows,
                   std::vector<float>& out) const;
  absl::Duration Spent() const { return clock_.MonotonicNow() - begin_; }
  bool Late() const { return Spent() > options_.time; }

  const Table& table_;
  const FloorLayout layout_;
  const FloorFolds& folds_;
  const std::optional<double> quantile_;
  const LinearFloorOptions& options_;
  const Clock& clock_;
  const absl::Duration begin_;
  const bool classes_;
  const size_t columns_;  // of the answer
  size_t outputs_ = 0;    // per model; there is one model per target
  FloorModel model_;
  NgramCounts train_ngrams_, test_ngrams_;
  FloorRows train_, test_;
  absl::Duration fit_begin_;  // after the texts were read
  int fits_done_ = 0, fits_ = 0;
  std::optional<float> word_scale_;
};

// The bytes to read of each text, so that all texts can be read in time.
size_t LinearFloorFit::MostTextBytes() const {
  std::vector<size_t> sizes;
  for (const Split split : {Split::kTrain, Split::kTest}) {
    for (int64_t row = 0; row < table_.rows(split); ++row) {
      size_t size = 0;
      for (size_t i = 0; i < table_.schema().text_columns.size(); ++i) {
        size += table_.Text(i, split, row).size() + 1;
      }
      sizes.push_back(size);
    }
  }
  const auto total =
      static_cast<size_t>(absl::ToDoubleSeconds(options_.time) * kTextBytesPerSecond);
  size_t most = *std::max_element(sizes.begin(), sizes.end());
  const auto bytes = [&] {
    return std::accumulate(sizes.begin(), sizes.end(), size_t{0},
                           [&](size_t sum, size_t size) { return sum + std::min(size, most); });
  };
  while (most > kFewestTextBytes && bytes() > total) most = most / 4 * 3;
  return std::max(most, kFewestTextBytes);
}

bool LinearFloorFit::ReadTexts(Split split, NgramCounts& ngrams) const {
  for (int64_t row = 0; row < table_.rows(split); ++row) {
    if (row % static_cast<int64_t>(kBlockRows) == 0 && Late()) return false;
    ngrams.Add(table_.RowText(split, row), model_.most_text_bytes);
  }
  return true;
}

bool LinearFloorFit::ReadTexts() {
  if (!options_.texts) return true;
  model_.most_text_bytes = MostTextBytes();
  return ReadTexts(Split::kTrain, train_ngrams_) && ReadTexts(Split::kTest, test_ngrams_);
}

bool LinearFloorFit::Run(Floor& floor) {
  if (!ReadTexts()) return false;
  train_ = RowsOf(table_, Split::kTrain, options_.texts ? &train_ngrams_ : nullptr);
  test_ = RowsOf(table_, Split::kTest, options_.texts ? &test_ngrams_ : nullptr);
  fit_begin_ = Spent();
  const int models = classes_ ? 1 : static_cast<int>(columns_);
  fits_ = folds_.split.folds * models;
  if (options_.texts) fits_ += models * static_cast<int>(std::size(kWordScales));
  for (int fold = 0; fold < folds_.split.folds; ++fold) {
    if (!FitFold(fold, floor)) return false;
  }
  return true;
}

std::vector<size_t> LinearFloorFit::SampleOthers(int fold) const {
  std::vector<size_t> rows;
  for (const int32_t row : TrainingRows(table_, folds_.fold_of, fold, folds_.split)) {
    rows.push_back(static_cast<size_t>(row));
  }
  size_t width = layout_.numbers() + layout_.places() + 1;
  if (train_ngrams_.texts() > 0) width += train_ngrams_.size() / train_ngrams_.texts();
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

// One model per list of targets.
std::vector<LinearModel> LinearFloorFit::FitModels(const FloorFold& fold, const DesignRows& rows,
                                                   const std::vector<std::vector<float>>& targets,
                                                   double l2,
                                                   const std::function<bool()>& stop) const {
  std::vector<LinearModel> models;
  for (const std::vector<float>& target : targets) {
    LinearModel& model = models.emplace_back(FloorModel::LinkOf(model_.input), layout_.numbers(),
                                             layout_.switches(), fold.encoder.words(), outputs_);
    FitOptions fit;
    fit.l2 = l2;
    if (fold.encoder.words() > 0) fit.flat = kFlatWithWords;
    fit.stop = stop;
    model.Fit(rows, target, fit);
  }
  return models;
}

// One of the planned fits, which ends when its share of the time is over.
std::vector<LinearModel> LinearFloorFit::FitInTurn(const FloorFold& fold, const DesignRows& rows,
                                                   const std::vector<std::vector<float>>& targets,
                                                   double l2) {
  std::vector<LinearModel> models;
  for (const std::vector<float>& target : targets) {
    const double share = (fits_done_ + kFitShare) / fits_;
    const absl::Duration until = fit_begin_ + (options_.time - fit_begin_) * share;
    models.push_back(
        FitModels(fold, rows, {target}, l2, [this, until] { return Spent() > until; }).front());
    ++fits_done_;
  }
  return models;
}

// The penalty with the least loss on rows of the sample that it was not fitted on. The fold's own
// rows have no say. Ends early, with the best so far, when half of the fold's share of the time is
// over.
double LinearFloorFit::ChoosePenalty(FloorFold& fold, absl::Span<const size_t> sample,
                                     const std::vector<std::vector<float>>& targets) const {
  const size_t values = sample.size() * (layout_.numbers() + layout_.places() + 1) * outputs_ *
                        targets.size() * static_cast<size_t>(folds_.split.folds);
  if (options_.texts || values > kMostPenaltyValues) return options_.l2;
  struct Part {
    std::vector<size_t> held;
    DesignRows rows;  // the others
    std::vector<std::vector<float>> targets;
  };
  std::vector<Part> parts(kParts);
  for (size_t p = 0; p < kParts; ++p) {
    std::vector<size_t> fitted;
    parts[p].targets.resize(targets.size());
    for (size_t i = 0; i < sample.size(); ++i) {
      (i % kParts == p ? parts[p].held : fitted).push_back(sample[i]);
      for (size_t k = 0; i % kParts != p && k < targets.size(); ++k) {
        parts[p].targets[k].push_back(targets[k][i]);
      }
    }
    fold.encoder.Encode(layout_, train_, fitted, parts[p].rows);
  }
  const double share = (fits_done_ + kFitShare / 2) / fits_;
  const absl::Duration until = fit_begin_ + (options_.time - fit_begin_) * share;
  const auto over = [this, until] { return Spent() > until; };
  double chosen = options_.l2, least = std::numeric_limits<double>::infinity();
  const auto wins = [&](double multiple) {
    double loss = 0;
    for (const Part& part : parts) {
      fold.models = FitModels(fold, part.rows, part.targets, options_.l2 * multiple, over);
      loss += LossOf(fold, part.held);
      if (over()) return false;
    }
    if (!(loss < least)) return false;
    least = loss;
    chosen = options_.l2 * multiple;
    return true;
  };
  const auto win_in_turn = [&wins](absl::Span<const double> multiples) {
    return std::find_if_not(multiples.begin(), multiples.end(), wins) != multiples.begin();
  };
  wins(1);
  if (!win_in_turn(kWeaker)) win_in_turn(kStronger);
  return chosen;
}

// The loss that the models minimize, without the penalty, summed over rows.
double LinearFloorFit::LossOf(const FloorFold& fold, absl::Span<const size_t> rows) const {
  std::vector<float> predicted;
  if (!PredictRows(fold, train_, rows, predicted)) return 0;
  double loss = 0;
  if (classes_) {
    const auto classes = table_.TargetClass(Split::kTrain);
    for (size_t i = 0; i < rows.size(); ++i) {
      const float p = predicted[i * columns_ + static_cast<size_t>(classes[rows[i]])];
      loss -= std::log(std::max(static_cast<double>(p), 1e-12));
    }
    return loss;
  }
  for (size_t k = 0; k < columns_; ++k) {
    const auto values = table_.TargetValue(Split::kTrain, k);
    for (size_t i = 0; i < rows.size(); ++i) {
      const double error =
          (predicted[i * columns_ + k] - values[rows[i]]) / fold.scales[k].deviation;
      loss += error * error;
    }
  }
  return loss;
}

void LinearFloorFit::ChooseWordScale(FloorFold& fold, absl::Span<const size_t> sample,
                                     const std::vector<std::vector<float>>& targets,
                                     absl::Span<const size_t> mine) {
  double least = 0;
  for (const float scale : kWordScales) {
    fold.encoder.SetWordScale(scale);
    DesignRows rows;
    fold.encoder.Encode(layout_, train_, sample, rows);
    fold.models = FitInTurn(fold, rows, targets, options_.l2);
    const double loss = LossOf(fold, mine);
    if (word_scale_ && !(loss < least)) break;
    least = loss;
    word_scale_ = scale;
  }
}

// Least squares give the mean of a row's target. The quantile of what is left of the rows that the
// models were fitted on, added to it, gives the quantile of targets that scatter alike everywhere.
void LinearFloorFit::ShiftToQuantile(FloorFold& fold, const DesignRows& rows,
                                     absl::Span<const size_t> sample) const {
  if (!quantile_ || classes_) return;
  std::vector<float> predicted(sample.size() * columns_);
  fold.Predict(rows, columns_, absl::MakeSpan(predicted));
  for (size_t k = 0; k < columns_; ++k) {
    const auto values = table_.TargetValue(Split::kTrain, k);
    std::vector<float> left;
    for (size_t i = 0; i < sample.size(); ++i) {
      left.push_back(values[sample[i]] - predicted[i * columns_ + k]);
    }
    fold.scales[k].mean += QuantileOf(std::move(left), *quantile_);
  }
}

bool LinearFloorFit::PredictRows(const FloorFold& fold, const FloorRows& from,
                                 absl::Span<const size_t> rows, std::vector<float>& out) const {
  out.resize(rows.size() * columns_);
  DesignRows block;
  for (size_t begin = 0; begin < rows.size(); begin += kBlockRows) {
    if (Late()) return false;
    const absl::Span<const size_t> some = rows.subspan(begin, kBlockRows);
    fold.encoder.Encode(layout_, from, some, block);
    fold.Predict(block, columns_,
                 absl::MakeSpan(out).subspan(begin * columns_, some.size() * columns_));
  }
  return true;
}

bool LinearFloorFit::FitFold(int fold, Floor& floor) {
  const std::vector<size_t> sample = SampleOthers(fold);
  if (sample.empty()) return false;
  std::vector<size_t> mine, test(static_cast<size_t>(table_.schema().test_rows));
  for (size_t row = 0; row < folds_.fold_of.size(); ++row) {
    if (folds_.fold_of[row] == fold) mine.push_back(row);
  }
  std::iota(test.begin(), test.end(), size_t{0});

  FloorFold fitted{FloorEncoder(layout_, train_, sample, kMaxWords / outputs_), {}, {}};
  if (!classes_) fitted.scales.resize(columns_);
  std::vector<std::vector<float>> targets;
  for (size_t k = 0; k < (classes_ ? 1 : columns_); ++k) {
    targets.push_back(ScaledTargets(table_, k, sample, classes_ ? nullptr : &fitted.scales[k]));
  }
  if (fitted.encoder.words() > 0) {
    if (!word_scale_) ChooseWordScale(fitted, sample, targets, mine);
    fitted.encoder.SetWordScale(*word_scale_);
  }
  DesignRows rows;
  fitted.encoder.Encode(layout_, train_, sample, rows);
  const double l2 = ChoosePenalty(fitted, sample, targets);
  fitted.models = FitInTurn(fitted, rows, targets, l2);
  ShiftToQuantile(fitted, rows, sample);

  std::vector<float> predicted;
  if (!PredictRows(fitted, train_, mine, predicted)) return false;
  for (size_t i = 0; i < mine.size(); ++i) {
    std::copy_n(predicted.begin() + static_cast<ptrdiff_t>(i * columns_), columns_,
                floor.oof.values.begin() + static_cast<ptrdiff_t>(mine[i] * columns_));
  }
  if (!PredictRows(fitted, test_, test, predicted)) return false;
  const float part = 1.0f / static_cast<float>(folds_.split.folds);
  for (size_t i = 0; i < predicted.size(); ++i) floor.test.values[i] += part * predicted[i];
  model_.folds.push_back(std::move(fitted));
  return true;
}

}  // namespace

std::optional<LinearFloorResult> LinearFloor(const Table& table, const FloorFolds& folds,
                                             Metric metric, const LinearFloorOptions& options,
                                             const Clock& clock) {
  LinearFloorFit fit(table, folds, metric, options, clock);
  if (fit.TooLarge()) return std::nullopt;
  // Rows without a fold keep the values of the prior floor.
  Floor floor = PriorFloor(table, folds, metric);
  floor.model = table.schema().target_kind == TargetKind::kClasses ? "logistic" : "ridge";
  std::fill(floor.test.values.begin(), floor.test.values.end(), 0.0f);
  if (!fit.Run(floor)) return std::nullopt;
  for (const std::vector<float>* values : {&floor.oof.values, &floor.test.values}) {
    if (!std::all_of(values->begin(), values->end(), [](float x) { return std::isfinite(x); })) {
      return std::nullopt;
    }
  }
  floor.score = OofScore(table, folds, metric, floor.oof.values);
  return LinearFloorResult{std::move(floor), fit.TakeModel()};
}

}  // namespace traind
