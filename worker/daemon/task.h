// Plain values, without Protobuf, that the parts of the Worker daemon exchange.
// Moments are readings of Clock::MonotonicNow(), "never" is InfiniteDuration().
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "common/facts/facts.h"
#include "common/publish/prediction.h"
#include "worker/rank_protocol/messages.h"

namespace traind::worker {

// One execution of a Task, as traind asks for it.
struct TaskStart {
  int64_t attempt = 0;
  std::string job;
  TaskKind kind = TaskKind::kPrepare;
  std::string spec_json;
  std::string model;  // its kind, as the spec or its trial names it; empty: none
  absl::Duration deadline_at = absl::InfiniteDuration();

  // TRAIN only.
  int fold = 0;
  int trial = 0;  // which of the spec's trials
  int seed = 0;   // which of the fold's models with it
  std::vector<int> slots;
  int world_size = 1;
  int first_rank = 0;
  std::string rendezvous_host;
  int rendezvous_port = 0;
  std::string table;
  int epochs = 0;
  double row_share = 1;  // of the training rows, that an epoch sees
  int batch = 0;
  std::string precision;
  std::string resume;
  absl::Duration stop_at = absl::InfiniteDuration();
  absl::Duration checkpoint_every = absl::Seconds(60);

  // Publishing without traind needs these; for PREPARE they are from the spec.
  std::string metric;
  int spec_folds = 0;
  bool plan_cut = false;
};

using facts::Ended;
using facts::Fact;

// Whether the gang has ranks on other Workers, too: where they meet is told when all are ready.
inline bool AwaitsMeeting(const TaskStart& task) {
  return task.kind == TaskKind::kTrain && task.rendezvous_port == 0 &&
         task.world_size > static_cast<int>(task.slots.size());
}

// See programs.h.
struct Program;

// The Worker's own number for a process that it started; never used twice.
using ProcessId = int64_t;

// How a process ended.
struct ExitStatus {
  enum Kind { kExited, kSignalled, kNotStarted } kind = kExited;
  int code = 0;           // exit status, signal, or errno
  std::string last_line;  // of its stderr; may be empty
  // Where the kernel has ended it because memory ran out: the bytes that there are; else 0.
  int64_t memory = 0;
};
// "signal 9 (Killed)", "exit status 1", "cannot start: No such file or directory".
std::string ExitText(const ExitStatus& status);

// ---- What the core wants done -----------------------------------------------

struct SpawnAction {
  ProcessId process = 0;
  const Program* program = nullptr;
  int slot = -1;  // the GPU that it gets to see; -1: none
};
struct SendAction {
  ProcessId process = 0;
  rank_protocol::ToProcess message;
};
// SIGKILL to its process group.
struct KillAction {
  ProcessId process = 0;
};
// From now on its stderr goes to this file, relative to the state folder; empty:
// to the Worker's own log.
struct LogFileAction {
  ProcessId process = 0;
  std::string path;
};
// A line for the Worker's own log.
struct LogAction {
  enum Level { kInfo, kWarning, kError } level = kInfo;
  std::string text;
};
struct PublishAction {
  PublishRequest request;  // without state_dir
};
struct ReportAction {
  int64_t attempt = 0;
  Fact fact;
};
struct ReportPublishedAction {
  std::string job;
  int number = 0;
};
// Tells traind what a serving Rank answered, or what became of the question.
struct AnswerAction {
  rank_protocol::Answered answer;
};
// Fetches what the Attempt reads; Brought() tells the end. Only where the state folder is the
// Worker's own.
struct BringAction {
  TaskStart task;
};
// Tells traind that the Ranks here of a gang that spans Workers wait for the others.
struct GangReadyAction {
  int64_t attempt = 0;
  int port = 0;  // free here; rank 0 could listen there
};
using Action =
    std::variant<GangReadyAction, SpawnAction, SendAction, KillAction, LogFileAction, LogAction,
                 PublishAction, ReportAction, ReportPublishedAction, AnswerAction, BringAction>;

}  // namespace traind::worker
