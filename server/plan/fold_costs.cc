// What a fold of a Job costs, by those measured, and how folds wait for each other.
#include <algorithm>
#include <utility>

#include "server/plan/planner.h"

namespace traind {
namespace {

double Median(std::vector<double> values) {
  values.erase(std::remove_if(values.begin(), values.end(), [](double v) { return v <= 0; }),
               values.end());
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

FoldCost TypicalCost(const std::vector<FoldCost>& costs) {
  const auto median = [&costs](auto field) {
    std::vector<double> values;
    for (const FoldCost& cost : costs) values.push_back(field(cost));
    return Median(std::move(values));
  };
  FoldCost typical;
  typical.step_s = median([](const FoldCost& c) { return c.step_s; });
  typical.step_p90_s = median([](const FoldCost& c) { return c.step_p90_s; });
  typical.steps_per_epoch = static_cast<int64_t>(
      median([](const FoldCost& c) { return static_cast<double>(c.steps_per_epoch); }));
  typical.epoch_s = median([](const FoldCost& c) { return c.epoch_s; });
  typical.evaluate_s = median([](const FoldCost& c) { return c.evaluate_s; });
  typical.overhead_s = median([](const FoldCost& c) { return c.overhead_s; });
  // Too little time for one fold's prediction loses the fold: the dearest counts.
  for (const FoldCost& cost : costs) {
    typical.predict_s = std::max(typical.predict_s, cost.predict_s);
  }
  return typical;
}

int FoldsBehind(int position, int running, int pending, int gangs) {
  gangs = std::max({gangs, running, 1});
  // Gangs without a fold take the first ones.
  pending -= std::min(pending, gangs - running);
  return pending <= position ? 0 : (pending - position + gangs - 1) / gangs;
}

}  // namespace traind
