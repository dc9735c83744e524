// The boosters of either library.
#pragma once

#include <memory>
#include <string>

#include "worker/trees/booster.h"

namespace traind {

absl::StatusOr<std::unique_ptr<Booster>> NewLightgbm(const BoosterOptions& options,
                                                     BoosterData data);
absl::StatusOr<std::unique_ptr<TreeModel>> LoadLightgbmTrees(const std::string& bytes, int outputs,
                                                             int threads);
absl::StatusOr<std::unique_ptr<Booster>> NewXgboost(const BoosterOptions& options,
                                                    BoosterData data);
absl::StatusOr<std::unique_ptr<TreeModel>> LoadXgboostTrees(const std::string& bytes, int outputs,
                                                            int threads);

// So that it is read as the same number.
std::string ParameterText(double value);

}  // namespace traind
