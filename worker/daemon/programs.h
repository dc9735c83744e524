// The programs that work for a Worker: which tasks each takes, and how long it lives. To add a
// program is a line of kPrograms; it lies beside trainworker, and speaks worker/rank_protocol.
#pragma once

#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>

#include "worker/daemon/task.h"

namespace traind::worker {

struct Program {
  const char* name;  // of the binary
  // The kinds of model (model.KIND in the spec) that it trains, between commas; it takes TRAIN
  // alone. "": any kind, and the other tasks, too.
  const char* models;
  bool prepares;  // PREPARE, else TRAIN, PREDICT and SERVE
  // Takes one task, which is sent at once, and exits after it. Else it says Ready before each.
  bool one_task;
  bool kept_warm;      // idle ones wait for the next task
  bool started_ahead;  // and are started before there is one (spares.h)
  int nice;            // added to the Worker's own
  // An allocation that fails has it take a smaller batch (memory_guard.h).
  bool shrinks;
};

// Both give way to daemons, and training gives way to the floor.
inline constexpr Program kPrograms[] = {
    {"trainprep", "", /*prepares=*/true, /*one_task=*/true, /*kept_warm=*/false,
     /*started_ahead=*/false, /*nice=*/2, /*shrinks=*/false},
    {"trainrank", "", /*prepares=*/false, /*one_task=*/false, /*kept_warm=*/true,
     /*started_ahead=*/true, /*nice=*/5, /*shrinks=*/true},
    // It starts in milliseconds.
    {"traintree", "lightgbm,xgboost,kernel", /*prepares=*/false, /*one_task=*/false,
     /*kept_warm=*/true,
     /*started_ahead=*/false, /*nice=*/5, /*shrinks=*/false},
    // Programs of users may leave anything behind in a process.
    {"trainprog", "program,command", /*prepares=*/false, /*one_task=*/false, /*kept_warm=*/false,
     /*started_ahead=*/false, /*nice=*/5, /*shrinks=*/false},
};

// The first program that takes such a task: one that names the kind of model goes first.
inline const Program& ProgramFor(TaskKind kind, absl::string_view model) {
  const bool prepares = kind == TaskKind::kPrepare;
  const Program* any = nullptr;
  for (const Program& program : kPrograms) {
    if (program.prepares != prepares) continue;
    if (kind == TaskKind::kTrain && *program.models != '\0') {
      for (const absl::string_view trained : absl::StrSplit(program.models, ',')) {
        if (trained == model) return program;
      }
    }
    if (any == nullptr && *program.models == '\0') any = &program;
  }
  return *any;
}

}  // namespace traind::worker
