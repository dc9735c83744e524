// A dry run of the planner.
#include <algorithm>
#include <utility>

#include "server/plan/fold_costs.h"
#include "server/plan/planner.h"

namespace traind {
namespace {

// Returns the shortest budget, at least `budget`, in which folds that are predicted after
// `trained` at this cost are ready before the reserve.
absl::Duration BudgetWithReserve(absl::Duration budget, absl::Duration trained, const PlanInput& in,
                                 const FoldCost& cost) {
  constexpr int kMostSteps = 100;  // the reserve grows slower than the window
  const absl::Duration predict = absl::Seconds(cost.predict_s);
  for (int i = 0; i < kMostSteps; ++i) {
    const Window window{in.window.start, in.window.start + budget};
    const absl::Duration reserve = Reserve(window, *in.spec, StopSeconds(cost), in.finalize);
    const absl::Time ready = TrainEnd(window, *in.spec, reserve) + predict;
    const absl::Duration late = in.window.start + trained - ready;
    if (late <= absl::ZeroDuration()) break;
    budget += late + absl::Milliseconds(1);
  }
  return budget;
}

}  // namespace

Preview PreviewPlan(const Spec& spec, const Assumptions& a, absl::Time now) {
  PlanInput in;
  in.spec = &spec;
  in.window = {now, DeadlineOf(spec, now)};
  in.now = now + absl::Seconds(a.prepare_s);
  in.trigger = Trigger::kMeasured;
  in.cost = CostOf(a.measured);
  in.cost.overhead_s = a.overhead_s;
  for (int fold = 0; fold < spec.folds; ++fold) {
    FoldView& view = in.folds.emplace_back();
    view.fold = fold;
  }
  in.gangs = a.gangs;
  in.sharing = a.sharing;
  in.finalize = absl::Seconds(3 * a.publish_s);
  PlanOutput out = MakePlan(in);
  Preview preview;
  preview.plan = out.plan;
  preview.cuts = std::move(out.decisions);
  const absl::Duration fixed = absl::Seconds(a.prepare_s + a.publish_s);
  const absl::Duration train = out.plan.estimate.value_or(absl::ZeroDuration());
  // Without a spread that was measured, half as much again.
  const double spread = a.measured.step_s > 0 && a.measured.step_p90_s > a.measured.step_s
                            ? a.measured.step_p90_s / a.measured.step_s
                            : 1.5;
  const absl::Duration most = in.window.bounded() ? in.window.length() : absl::InfiniteDuration();
  preview.estimate_p50 = std::min(fixed + train, most);
  preview.estimate_p90 = std::min(fixed + spread * train, most);
  preview.estimated_finish = now + preview.estimate_p50;
  const double fold_s = in.cost.overhead_s + in.cost.predict_s;
  const double train_s = std::min(out.plan.epochs, UsualEpochs(spec)) *
                         CostOfShare(in.cost, out.plan.row_share).epoch_s;
  const double slots = static_cast<double>(out.plan.models) * spec.slots;
  preview.device_s_p50 = slots * (fold_s + train_s);
  preview.device_s_p90 = slots * (fold_s + spread * train_s);
  // All that the spec asks for within the plan's share of the window (B2).
  WorkLeft work;
  work.gangs = a.gangs;
  work.sharing = a.sharing;
  work.pending.assign(static_cast<size_t>(spec.folds),
                      fold_s + spread * UsualEpochs(spec) * in.cost.epoch_s);
  const absl::Duration whole = absl::Seconds(EstimateSeconds(work));
  FoldCost slower = in.cost;
  slower.step_s *= spread;
  slower.step_p90_s *= spread;
  preview.full_budget = BudgetWithReserve((fixed + whole) / std::max(0.05, spec.shares.plan),
                                          absl::Seconds(a.prepare_s) + whole, in, slower);
  return preview;
}

}  // namespace traind
