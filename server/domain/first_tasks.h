// The tasks that a Job begins with. The store keeps rows only of those that have changed since.
#pragma once

#include <cstddef>
#include <vector>

#include "server/domain/job.h"

namespace traind {

// Returns a task that does `first`, then one for each of the spec's folds, which trains it.
inline std::vector<Task> FirstTasks(const Spec& spec, TaskKind first = TaskKind::kPrepare) {
  std::vector<Task> tasks(1 + static_cast<size_t>(spec.folds));
  tasks[0].kind = first;
  for (int fold = 0; fold < spec.folds; ++fold) {
    tasks[1 + fold].fold = fold;
    tasks[1 + fold].epochs_planned = spec.epochs;
  }
  return tasks;
}

}  // namespace traind
