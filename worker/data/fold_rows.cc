#include "worker/data/fold_rows.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <cmath>
#include <limits>

namespace traind {

absl::StatusOr<FoldRows> SplitFold(const Table& table, absl::Span<const int16_t> folds, int fold,
                                   const SplitSpec& split) {
  const TableSchema& schema = table.schema();
  if (static_cast<int64_t>(folds.size()) != schema.train_rows) {
    return absl::DataLossError(absl::StrCat("folds.npy has ", folds.size(),
                                            " rows, but the table has ", schema.train_rows));
  }
  if (schema.train_rows > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the table has ", schema.train_rows, " training rows; the maximum is 2^31-1"));
  }
  FoldRows rows;
  for (size_t i = 0; i < folds.size(); ++i) {
    if (folds[i] == fold) rows.validation.push_back(static_cast<int32_t>(i));
  }
  if (rows.validation.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("fold ", fold, " has no rows to validate"));
  }
  rows.training = TrainingRows(table, folds, fold, split);
  if (rows.training.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("fold ", fold, " has no rows to train on"));
  }
  return rows;
}

std::vector<float> BalancedClassWeights(absl::Span<const int32_t> classes,
                                        absl::Span<const int32_t> rows, int outputs) {
  std::vector<double> counts(static_cast<size_t>(outputs));
  for (const int32_t row : rows) ++counts[static_cast<size_t>(classes[static_cast<size_t>(row)])];
  std::vector<float> weights;
  for (const double count : counts) {
    const double share = count * static_cast<double>(outputs);
    weights.push_back(count > 0 ? static_cast<float>(static_cast<double>(rows.size()) / share) : 0);
  }
  return weights;
}

}  // namespace traind
