// What a Job's folds cost: their start, their epochs, their answers, and files that travel to
// Workers with folders of their own, and back.
#include <algorithm>

#include "server/control/control_core_impl.h"
#include "server/plan/fold_costs.h"
#include "server/plan/transfers.h"

namespace traind {
namespace {

// The first epoch may take so much longer than the others: pages are read for the first time, and
// the machine still starts other Ranks.
constexpr double kWarmUpSeconds = 2;
// Share of the window in which steps become what they will be.
constexpr double kPacedShare = 0.05;

// Share of the window that may be kept for results on a slow link, so that training has the rest.
constexpr double kMostSending = 0.4;

// An epoch by the timed steps alone; 0: there were none.
double CostOfSteps(Measured measured) {
  measured.epoch_s = 0;
  return CostOf(measured).epoch_s;
}

}  // namespace

FoldCost ControlCore::Impl::CostOfFold(const JobEntry& entry, int index) const {
  const Task& task = entry.view().tasks[static_cast<size_t>(index)];
  FoldCost cost = CostOf(task.measured);
  std::vector<double> epochs = entry.pace.epochs_s[static_cast<size_t>(index)];
  if (epochs.empty() && task.live && task.live->steps_per_epoch > 0) {
    // Too slow for the probe, or slower than that: what it has done so far tells.
    const auto it = attempts_.find(task.attempt);
    if (it != attempts_.end() && task.live->step > it->second.first_step) {
      const LiveAttempt& live = it->second;
      const double steps = static_cast<double>(task.live->step - live.first_step);
      const double took_s = absl::ToDoubleSeconds(task.live->at - live.first_step_at);
      const bool paced = PacedWithinEpoch(entry, index);
      const double step_s = (cost.known() && !paced ? took_s - kWarmUpSeconds : took_s) / steps;
      const double epoch_s =
          step_s * static_cast<double>(task.live->steps_per_epoch) + (paced ? cost.evaluate_s : 0);
      if (paced || epoch_s > cost.epoch_s) {
        cost.step_s = step_s;
        cost.steps_per_epoch = task.live->steps_per_epoch;
        cost.epoch_s = epoch_s;
      }
    }
  }
  // One slow epoch says little: of the last three, the one in the middle; until
  // there are so many, the fastest, less what only the first ones take.
  if (!epochs.empty()) {
    std::sort(epochs.begin(), epochs.end());
    const double steps_s = CostOfSteps(task.measured);
    cost.epoch_s = epochs.size() >= 3 ? epochs[1]
                   : steps_s > 0
                       ? std::min(epochs[0], std::max(steps_s, epochs[0] - kWarmUpSeconds))
                       : epochs[0];
  }
  cost.overhead_s = StartSeconds(entry);
  if (cost.predict_s > 0) cost.predict_s += TransferCostOf(entry).send_s;
  return cost;
}

// Where epochs may be shortened the first may be too long to be waited for: once a fold has
// trained for a while, its steps are trusted.
bool ControlCore::Impl::PacedWithinEpoch(const JobEntry& entry, int index) const {
  const Job& job = entry.view();
  const Task& task = job.tasks[static_cast<size_t>(index)];
  const auto it = attempts_.find(task.attempt);
  if (!job.spec.subsample || !task.live || it == attempts_.end()) return false;
  if (task.live->step <= it->second.first_step) return false;
  const absl::Duration least =
      std::max(absl::Seconds(kWarmUpSeconds), kPacedShare * WindowOf(entry).length());
  return task.live->at - it->second.first_step_at >= least;
}

const FoldCost& ControlCore::Impl::TypicalFold(const JobEntry& entry) const {
  if (!entry.pace.typical) {
    std::vector<FoldCost> costs;
    for (size_t i = 1; i < entry.view().tasks.size(); ++i) {
      if (entry.view().tasks[i].trial > 0) continue;  // other models cost other times
      const FoldCost cost = CostOfFold(entry, static_cast<int>(i));
      if (cost.known()) costs.push_back(cost);
    }
    entry.pace.typical = costs.empty() ? FoldCost() : TypicalCost(costs);
  }
  return *entry.pace.typical;
}

// Returns the time that folds of that trial's kind took from their last epoch to their answers,
// which also tells how busy the machine is. A kind that has not ended yet may take twice as long as
// others. A time that a Worker told late, as it was away, counts no more than the share that is
// held back anyway.
double ControlCore::Impl::FinishingSeconds(const JobEntry& entry, int trial) const {
  const Spec& spec = entry.view().spec;
  const std::map<std::string, double>& finishing = entry.pace.finishing_s;
  const auto own = finishing.find(KindOf(spec, trial));
  double longest = 0;
  for (const auto& [kind, took_s] : finishing) longest = std::max(longest, took_s);
  double seconds = own != finishing.end() ? own->second : 2 * longest;
  // No epochs of trees are cut, so their folds all stop by the clock: the first ones by a
  // prediction that was only timed on a few rows.
  if (finishing.empty() && AnswersAtAnyTime(spec)) seconds = 2 * StopSeconds(TypicalFold(entry));
  const Window window = WindowOf(entry);
  if (!window.bounded()) return seconds;
  return std::min(seconds, spec.shares.reserve * absl::ToDoubleSeconds(window.length()));
}

void ControlCore::Impl::Apply(LiveAttempt& live, facts::Transfers& fact) {
  JobEntry& entry = *live.job;
  for (Attempt& row : Edit(entry).attempts) {
    if (row.id == live.id) row.transfers = fact;
  }
  entry.pace.replan_wanted = true;
}

const TransferCost& ControlCore::Impl::TransferCostOf(const JobEntry& entry) const {
  if (entry.pace.transfers) return *entry.pace.transfers;
  TransferCost& cost = entry.pace.transfers.emplace();
  const Job& job = entry.view();
  if (!FilesTravel(job.attempts)) return cost;
  // Any number of Workers may be there: only those of the Job's Attempts are looked at.
  GangShape shape = entry.shape;
  shape.slots = 1;
  const Capacity& capacity = board_.capacity();
  TransferPlaces places;
  places.slots = capacity.CountGangs(shape, /*may_span=*/false);
  places.own =
      places.slots - capacity.CountGangs(shape, /*may_span=*/false, /*in_shared_folders=*/true);
  for (const Attempt& attempt : job.attempts) {
    const WorkerSlots* const worker = board_.Find(attempt.worker);
    if (worker == nullptr || !worker->own_folder) continue;
    if (!HasLabels(worker->labels, shape.constraints)) continue;
    places.known[attempt.worker] = static_cast<int>(
        std::count_if(worker->slots.begin(), worker->slots.end(),
                      [&](const WorkerSlots::Slot& slot) { return SuitsSlot(shape, slot); }));
  }
  cost.fetch_s = FetchSeconds(job.attempts, places);
  cost.send_s = SendSeconds(job.attempts, ResultBytes(job));
  const Window window = WindowOf(entry);
  if (window.bounded()) {
    cost.send_s = std::min(cost.send_s, kMostSending * absl::ToDoubleSeconds(window.length()));
  }
  return cost;
}

double ControlCore::Impl::StartSeconds(const JobEntry& entry) const {
  return entry.pace.overhead_s + TransferCostOf(entry).fetch_s;
}

}  // namespace traind
