#include "worker/prepare/prior_floor.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace traind {
namespace {

// The mean over the given rows: [C].
std::vector<float> MeanOf(const Table& table, absl::Span<const int32_t> rows) {
  const TableSchema& schema = table.schema();
  const size_t columns = PredictionColumns(table);
  std::vector<double> sums(columns);
  if (schema.target_kind == TargetKind::kClasses) {
    const auto classes = table.TargetClass(Split::kTrain);
    for (const int32_t row : rows) {
      sums[static_cast<size_t>(classes[static_cast<size_t>(row)])] += 1;
    }
  } else {
    for (size_t k = 0; k < columns; ++k) {
      const auto values = table.TargetValue(Split::kTrain, k);
      for (const int32_t row : rows) sums[k] += values[static_cast<size_t>(row)];
    }
  }
  std::vector<float> mean;
  for (const double sum : sums) {
    mean.push_back(rows.empty() ? 0 : static_cast<float>(sum / static_cast<double>(rows.size())));
  }
  return mean;
}

// The quantile of each target over the given rows: [C].
std::vector<float> QuantilesOf(const Table& table, absl::Span<const int32_t> rows, double level) {
  std::vector<float> quantiles;
  for (size_t k = 0; k < PredictionColumns(table); ++k) {
    const auto values = table.TargetValue(Split::kTrain, k);
    std::vector<float> known;
    known.reserve(rows.size());
    for (const int32_t row : rows) known.push_back(values[static_cast<size_t>(row)]);
    quantiles.push_back(QuantileOf(std::move(known), level));
  }
  return quantiles;
}

std::vector<float> PriorOf(const Table& table, absl::Span<const int32_t> rows, Metric metric) {
  const std::optional<double> level = WantedQuantile(metric);
  return level ? QuantilesOf(table, rows, *level) : MeanOf(table, rows);
}

void AppendRow(const std::vector<float>& row, std::vector<float>& values) {
  values.insert(values.end(), row.begin(), row.end());
}

}  // namespace

std::optional<double> WantedQuantile(Metric metric) {
  if (HasLevel(metric)) return metric.kind().level;
  if (MetricName(metric) == "mae") return 0.5;
  return std::nullopt;
}

float QuantileOf(std::vector<float> values, double level) {
  if (values.empty()) return 0;
  const auto place = static_cast<std::ptrdiff_t>(level * static_cast<double>(values.size()));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<size_t>(place)];
}

size_t PredictionColumns(const Table& table) {
  const TableSchema& schema = table.schema();
  return schema.target_kind == TargetKind::kClasses ? schema.classes.size() : schema.targets();
}

double OofScore(const Table& table, const FloorFolds& folds, Metric metric,
                absl::Span<const float> oof) {
  const size_t columns = PredictionColumns(table);
  const bool classes = table.schema().target_kind == TargetKind::kClasses;
  std::vector<float> predicted, targets;
  std::vector<int32_t> labels;
  predicted.reserve(oof.size());
  for (size_t row = 0; row < folds.fold_of.size(); ++row) {
    if (folds.fold_of[row] < 0) continue;
    const float* const values = oof.data() + row * columns;
    predicted.insert(predicted.end(), values, values + columns);
    if (classes) labels.push_back(table.TargetClass(Split::kTrain)[row]);
    for (size_t k = 0; !classes && k < columns; ++k) {
      targets.push_back(table.TargetValue(Split::kTrain, k)[row]);
    }
  }
  return classes ? Score(metric, predicted, static_cast<int>(columns), labels)
                 : Score(metric, predicted, targets, columns);
}

std::vector<float> PriorOfAllRows(const Table& table, const FloorFolds& folds, Metric metric) {
  // An index beyond the folds selects all usable rows.
  return PriorOf(table, TrainingRows(table, folds.fold_of, folds.split.folds, folds.split), metric);
}

Floor PriorFloor(const Table& table, const FloorFolds& folds, Metric metric) {
  const TableSchema& schema = table.schema();
  const size_t columns = PredictionColumns(table);
  std::vector<std::vector<float>> fold_priors;
  for (int fold = 0; fold < folds.split.folds; ++fold) {
    fold_priors.push_back(
        PriorOf(table, TrainingRows(table, folds.fold_of, fold, folds.split), metric));
  }
  const std::vector<float> overall_prior = PriorOfAllRows(table, folds, metric);

  Floor floor;
  floor.model = schema.target_kind == TargetKind::kClasses ? "prior"
                : WantedQuantile(metric)                   ? "quantile"
                                                           : "mean";
  floor.oof.shape = {schema.train_rows, static_cast<int64_t>(columns)};
  floor.oof.values.reserve(folds.fold_of.size() * columns);
  for (const int16_t fold : folds.fold_of) {
    AppendRow(fold < 0 ? overall_prior : fold_priors[static_cast<size_t>(fold)], floor.oof.values);
  }
  floor.test.shape = {schema.test_rows, static_cast<int64_t>(columns)};
  floor.test.values.reserve(static_cast<size_t>(schema.test_rows) * columns);
  for (int64_t row = 0; row < schema.test_rows; ++row) AppendRow(overall_prior, floor.test.values);
  floor.score = OofScore(table, folds, metric, floor.oof.values);
  return floor;
}

}  // namespace traind
