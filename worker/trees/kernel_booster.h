// Kernel ridge regression behind the interface of boosters: a round tries one of the settings, and
// the round that answers best predicts.
//
// Numbers are standardised and cut at 4 standard deviations, a missing one is the mean; a category
// is a column of zeros and a one. Columns that do not vary, or have more than 256 categories, are
// not used.
#pragma once

#include <memory>
#include <string>

#include "worker/trees/booster.h"

namespace traind {

// Errors: InvalidArgument: no column can be used.
absl::StatusOr<std::unique_ptr<Booster>> NewKernel(const BoosterOptions& options, BoosterData data);
// bytes: a safetensors file, of Booster::Save(). Errors: DataLoss.
absl::StatusOr<std::unique_ptr<TreeModel>> LoadKernel(const std::string& bytes, int outputs);

}  // namespace traind
