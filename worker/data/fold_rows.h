// The rows that a fold trains on, and those that it validates.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "common/data/table/folds.h"
#include "common/data/table/table.h"

namespace traind {

struct FoldRows {
  // Ascending, without rows that have no target.
  std::vector<int32_t> training;
  // Ascending; all rows of the fold, in the order of its out-of-fold predictions.
  std::vector<int32_t> validation;
};

// folds: [train_rows], the fold that validates each row (folds.npy). split: the rows that may
// be used for training, and limits by time (see TrainingRows).
// Errors: DataLoss if `folds` does not belong to this table; InvalidArgument if no row is left
// to train on or to validate.
absl::StatusOr<FoldRows> SplitFold(const Table& table, absl::Span<const int16_t> folds, int fold,
                                   const SplitSpec& split = {});

// Returns a weight for each class, with which all classes of `rows` together weigh alike:
// rows / (outputs x rows of the class); 0 for a class without rows.
// classes: [table rows]. REQUIRES: the class of each of `rows` is in [0, outputs).
std::vector<float> BalancedClassWeights(absl::Span<const int32_t> classes,
                                        absl::Span<const int32_t> rows, int outputs);

}  // namespace traind
