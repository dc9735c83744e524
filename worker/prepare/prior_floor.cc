#include "worker/prepare/prior_floor.h"

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

void AppendRow(const std::vector<float>& row, std::vector<float>& values) {
  values.insert(values.end(), row.begin(), row.end());
}

}  // namespace

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

std::vector<float> PriorOfAllRows(const Table& table, const FloorFolds& folds) {
  // An index beyond the folds selects all usable rows.
  return MeanOf(table, TrainingRows(table, folds.fold_of, folds.split.folds, folds.split));
}

Floor PriorFloor(const Table& table, const FloorFolds& folds, Metric metric) {
  const TableSchema& schema = table.schema();
  const size_t columns = PredictionColumns(table);
  std::vector<std::vector<float>> fold_means;
  for (int fold = 0; fold < folds.split.folds; ++fold) {
    fold_means.push_back(MeanOf(table, TrainingRows(table, folds.fold_of, fold, folds.split)));
  }
  const std::vector<float> overall_mean = PriorOfAllRows(table, folds);

  Floor floor;
  floor.model = schema.target_kind == TargetKind::kClasses ? "prior" : "mean";
  floor.oof.shape = {schema.train_rows, static_cast<int64_t>(columns)};
  floor.oof.values.reserve(folds.fold_of.size() * columns);
  for (const int16_t fold : folds.fold_of) {
    AppendRow(fold < 0 ? overall_mean : fold_means[static_cast<size_t>(fold)], floor.oof.values);
  }
  floor.test.shape = {schema.test_rows, static_cast<int64_t>(columns)};
  floor.test.values.reserve(static_cast<size_t>(schema.test_rows) * columns);
  for (int64_t row = 0; row < schema.test_rows; ++row) AppendRow(overall_mean, floor.test.values);
  floor.score = OofScore(table, folds, metric, floor.oof.values);
  return floor;
}

}  // namespace traind
