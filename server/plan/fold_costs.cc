#include "server/plan/fold_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/job_rules/task_rules.h"

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

double SecondsLeft(const PlanInput& in, const FoldView& fold, double epochs, double rows) {
  const FoldCost& cost = fold.cost.known() ? fold.cost : in.cost;
  const double predict_s = cost.predict_s > 0 ? cost.predict_s : in.cost.predict_s;
  const double before = in.last ? in.last->rows : 1;
  const double left_s =
      EpochsLeft(epochs, fold.epochs_done, before, rows) * CostOfShare(cost, rows).epoch_s +
      predict_s;
  if (fold.state != TaskState::kRunning) return in.cost.overhead_s + left_s;
  // The start of one that has not made a step yet.
  const double used_s = std::max(0.0, absl::ToDoubleSeconds(in.now - fold.started_at));
  const double start_s = fold.cost.known() ? 0 : std::max(0.0, in.cost.overhead_s - used_s);
  return start_s + left_s;
}

double EpochsOfTheLongest(const PlanInput& in, int plan_epochs) {
  double most = 0;
  for (const FoldView& fold : in.folds) {
    if (fold.state == TaskState::kPartial) return plan_epochs;
    if (fold.state == TaskState::kDone) most = std::max(most, fold.epochs_done);
  }
  return most > 0 ? std::min<double>(most, plan_epochs) : plan_epochs;
}

bool AnswersAtAnyTime(const Spec& spec) {
  return !spec.trials.empty() && IsTrees(spec.trials[0].kind);
}

int UsualEpochs(const Spec& spec) {
  // Boosted trees ask for so many rounds that early stopping comes first. On the shared tables it
  // comes after a quarter of them in the mean.
  constexpr double kShareOfRounds = 0.35;
  if (!AnswersAtAnyTime(spec) || spec.trials[0].patience == 0) return spec.epochs;
  return static_cast<int>(std::ceil(kShareOfRounds * spec.epochs));
}

namespace {

// The longest of the folds that are done; one that is not done, and has more, goes on.
double ExpectedOfTrees(const PlanInput& in) {
  constexpr double kAtMostLonger = 1.2, kGoesOn = 1.5;
  double done = 0;
  for (const FoldView& fold : in.folds) {
    if (fold.state == TaskState::kDone) done = std::max(done, kAtMostLonger * fold.epochs_done);
  }
  const double like = done > 0 ? done : UsualEpochs(*in.spec);
  double most = like;
  for (const FoldView& fold : in.folds) {
    if (fold.epochs_done > like) most = std::max(most, kGoesOn * fold.epochs_done);
  }
  return most;
}

double ExpectedOfOthers(const PlanInput& in, int plan_epochs) {
  // A fold may take so many times the epochs of the longest one before it.
  constexpr double kAtMostLonger = 1.2;
  const double like = EpochsOfTheLongest(in, plan_epochs);
  for (const FoldView& fold : in.folds) {
    if (fold.state == TaskState::kRunning && fold.epochs_done >= like) return plan_epochs;
  }
  return kAtMostLonger * like;
}

}  // namespace

int ExpectedEpochs(const PlanInput& in, int plan_epochs) {
  const double expected =
      AnswersAtAnyTime(*in.spec) ? ExpectedOfTrees(in) : ExpectedOfOthers(in, plan_epochs);
  return std::min(plan_epochs, static_cast<int>(std::ceil(expected)));
}

}  // namespace traind
