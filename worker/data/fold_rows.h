// Which rows a fold trains on, and which it validates.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "common/data/table/folds.h"
#include "common/data/table/table.h"

namespace traind {

struct FoldRows {
  // Ascending; rows without a target are left out.
  std::vector<int32_t> training;
  // Ascending; all rows of the fold, as its out-of-fold predictions have them.
  std::vector<int32_t> validation;
};

// folds: [train_rows], the fold that validates each row (folds.npy).
// `split`: which rows may be trained on, and before which others (TrainingRows).
// Errors: DataLoss where folds are not those of this table; InvalidArgument where
// nothing is left to train on or to validate.
absl::StatusOr<FoldRows> SplitFold(const Table& table, absl::Span<const int16_t> folds, int fold,
                                   const SplitSpec& split = {});

}  // namespace traind
