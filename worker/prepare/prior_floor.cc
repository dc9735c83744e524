#include "worker/prepare/prior_floor.h"

namespace traind {
namespace {

// sums: float64 [folds, columns] over the rows of each fold; returns the mean over
// the rows of all folds but `without` (-1: of all).
std::vector<float> MeanOfOthers(const std::vector<double>& sums, const std::vector<double>& counts,
                                size_t columns, int without) {
  std::vector<double> total(columns);
  double count = 0;
  for (size_t fold = 0; fold < counts.size(); ++fold) {
    if (static_cast<int>(fold) == without) continue;
    count += counts[fold];
    for (size_t c = 0; c < columns; ++c) total[c] += sums[fold * columns + c];
  }
  std::vector<float> mean;
  for (const double sum : total) mean.push_back(static_cast<float>(sum / count));
  return mean;
}

}  // namespace

size_t PredictionColumns(const Table& table) {
  return table.schema().target_kind == TargetKind::kClasses ? table.schema().classes.size() : 1;
}

double OofScore(const Table& table, Metric metric, absl::Span<const float> oof) {
  if (table.schema().target_kind == TargetKind::kClasses) {
    return Score(metric, oof, static_cast<int>(PredictionColumns(table)),
                 table.TargetClass(Split::kTrain));
  }
  return Score(metric, oof, table.TargetValue(Split::kTrain));
}

Floor PriorFloor(const Table& table, absl::Span<const int16_t> fold_of, int folds, Metric metric) {
  const TableSchema& schema = table.schema();
  const bool classes = schema.target_kind == TargetKind::kClasses;
  const size_t columns = PredictionColumns(table);
  std::vector<double> sums(static_cast<size_t>(folds) * columns),
      counts(static_cast<size_t>(folds));
  for (size_t row = 0; row < fold_of.size(); ++row) {
    const auto fold = static_cast<size_t>(fold_of[row]);
    counts[fold] += 1;
    if (classes) {
      sums[fold * columns + static_cast<size_t>(table.TargetClass(Split::kTrain)[row])] += 1;
    } else {
      sums[fold] += table.TargetValue(Split::kTrain)[row];
    }
  }
  std::vector<std::vector<float>> of_fold;
  for (int fold = 0; fold < folds; ++fold) {
    of_fold.push_back(MeanOfOthers(sums, counts, columns, fold));
  }
  const std::vector<float> of_all = MeanOfOthers(sums, counts, columns, -1);

  Floor floor;
  floor.model = classes ? "prior" : "mean";
  floor.oof.shape = {schema.train_rows, static_cast<int64_t>(columns)};
  floor.oof.values.reserve(fold_of.size() * columns);
  for (const int16_t fold : fold_of) {
    const std::vector<float>& mean = of_fold[static_cast<size_t>(fold)];
    floor.oof.values.insert(floor.oof.values.end(), mean.begin(), mean.end());
  }
  floor.test.shape = {schema.test_rows, static_cast<int64_t>(columns)};
  floor.test.values.reserve(static_cast<size_t>(schema.test_rows) * columns);
  for (int64_t row = 0; row < schema.test_rows; ++row) {
    floor.test.values.insert(floor.test.values.end(), of_all.begin(), of_all.end());
  }
  floor.score = OofScore(table, metric, floor.oof.values);
  return floor;
}

}  // namespace traind
