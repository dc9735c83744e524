// Extra seeds (B9): their tasks come into a Job as the Plan asks for them.
#include "server/control/control_core_impl.h"

namespace traind {

int ControlCore::Impl::FindOrAddTask(JobEntry& entry, int fold, int trial, int seed) {
  const std::vector<Task>& tasks = entry.view().tasks;
  for (size_t i = 1; i < tasks.size(); ++i) {
    if (tasks[i].fold == fold && tasks[i].trial == trial && tasks[i].seed == seed) {
      return static_cast<int>(i);
    }
  }
  Task task;
  task.fold = fold;
  task.trial = trial;
  task.seed = seed;
  Job& job = EditDurably(entry);
  job.tasks.push_back(std::move(task));
  entry.pace.epochs_s.resize(job.tasks.size());
  return static_cast<int>(job.tasks.size()) - 1;
}

// One seed after the other, each for all folds.
void ControlCore::Impl::AddExtraSeed(JobEntry& entry, int epochs) {
  const Spec& spec = entry.view().spec;
  for (int model = spec.folds; model < spec.folds * spec.seeds; ++model) {
    const size_t tasks = entry.view().tasks.size();
    const auto index =
        static_cast<size_t>(FindOrAddTask(entry, model % spec.folds, 0, model / spec.folds));
    const Task& task = entry.view().tasks[index];
    const bool made = index == tasks;
    if (!made && (task.state != TaskState::kDropped || task.attempts > 0)) continue;
    Task& next = EditDurably(entry).tasks[index];
    next.state = TaskState::kPending;
    next.message.clear();
    next.epochs_planned = epochs;
    return;
  }
}

void ControlCore::Impl::ApplyExtraSeeds(JobEntry& entry, const PlanOutput& out) {
  int planned = 0;
  for (const Task& task : entry.view().tasks) {
    planned += IsExtra(task) && task.state != TaskState::kDropped;
  }
  for (; planned < out.extra_seeds; ++planned) AddExtraSeed(entry, out.plan.epochs);
  for (size_t i = entry.view().tasks.size() - 1; i > 0 && planned > out.extra_seeds; --i) {
    const Task& task = entry.view().tasks[i];
    if (!IsExtra(task) || task.state != TaskState::kPending || task.attempts > 0) continue;
    SettleFold(entry, static_cast<int>(i), "no time left");
    --planned;
  }
}

}  // namespace traind
