#include "server/plan/trial_work.h"

#include <algorithm>
#include <cmath>

#include "common/plain/plain_json.h"

namespace traind {
namespace {

constexpr double kUsualRounds = 100, kUsualLeaves = 31, kUsualDepth = 6;
constexpr double kStepsOfRounds = 10;  // rounds x learning rate
constexpr double kWithoutHandWrittenPass = 8;

double Rounds(int64_t most, double learning_rate) {
  const double wanted = learning_rate > 0 ? kStepsOfRounds / learning_rate : HUGE_VAL;
  return std::min(static_cast<double>(most), wanted) / kUsualRounds;
}

}  // namespace

double WorkOfModel(const plain::ModelSpec& model) {
  if (model.lightgbm.has_value()) {
    const plain::LightgbmSpec& trees = *model.lightgbm;
    const double size =
        std::sqrt(static_cast<double>(std::max<int64_t>(2, trees.num_leaves)) / kUsualLeaves);
    if (trees.boosting == "rf") {
      return size * static_cast<double>(trees.num_iterations) / kUsualRounds;
    }
    return size * Rounds(trees.num_iterations, trees.learning_rate);
  }
  if (model.xgboost.has_value()) {
    const plain::XgboostSpec& trees = *model.xgboost;
    const double depth =
        trees.max_depth > 0 ? static_cast<double>(trees.max_depth) : 2 * kUsualDepth;
    return depth / kUsualDepth * Rounds(trees.num_boost_round, trees.learning_rate);
  }
  if (model.mlp.has_value() &&
      (model.mlp->ensemble_members > 1 || model.mlp->numeric_embedding.has_value())) {
    return kWithoutHandWrittenPass;
  }
  return 1;
}

std::vector<double> WorkOfTrials(absl::string_view spec_json) {
  const auto spec = plain::FromJson<plain::JobSpec>(spec_json);
  std::vector<double> works;
  if (!spec.ok()) return works;
  for (const plain::TrialSpec& trial : spec->trials) works.push_back(WorkOfModel(trial.model));
  return works;
}

}  // namespace traind
