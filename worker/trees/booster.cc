#include "worker/trees/booster.h"

#include <absl/strings/str_format.h>

#include <utility>

#include "worker/trees/kernel_booster.h"
#include "worker/trees/library_boosters.h"

namespace traind {
namespace {

constexpr char kLightgbm[] = "lightgbm", kKernel[] = "kernel";

}  // namespace

std::string ParameterText(double value) { return absl::StrFormat("%.17g", value); }

Continuation ContinuationOf(const TreeSpec& spec) {
  if (spec.kernel.has_value()) return Continuation::kExact;
  if (!spec.lightgbm.has_value()) {
    // The state of its draws is saved from version 3.3 on.
    const plain::XgboostSpec& model = *spec.xgboost;
    const bool draws = model.subsample < 1 || model.colsample_bytree < 1 ||
                       model.colsample_bylevel < 1 || model.colsample_bynode < 1 ||
                       model.booster != "gbtree";
    return draws ? Continuation::kOtherDraws : Continuation::kExact;
  }
  const plain::LightgbmSpec& model = *spec.lightgbm;
  // Dropout changes trees that stand already, and a forest is no sum.
  if (model.boosting != "gbdt") return Continuation::kNone;
  const bool bags = model.bagging_freq > 0 && model.bagging_fraction < 1;
  const bool draws = bags || model.feature_fraction < 1 || model.feature_fraction_bynode < 1 ||
                     model.extra_trees || model.linear_tree;
  return draws ? Continuation::kOtherDraws : Continuation::kExact;
}

absl::StatusOr<std::unique_ptr<Booster>> NewBooster(const BoosterOptions& options,
                                                    BoosterData data) {
  if (options.spec.lightgbm.has_value()) return NewLightgbm(options, std::move(data));
  if (options.spec.kernel.has_value()) return NewKernel(options, std::move(data));
  return NewXgboost(options, std::move(data));
}

absl::StatusOr<std::unique_ptr<TreeModel>> LoadTrees(absl::string_view kind,
                                                     const std::string& bytes, int outputs,
                                                     int threads) {
  if (kind == kKernel) return LoadKernel(bytes, outputs);
  return kind == kLightgbm ? LoadLightgbmTrees(bytes, outputs, threads)
                           : LoadXgboostTrees(bytes, outputs, threads);
}

}  // namespace traind
