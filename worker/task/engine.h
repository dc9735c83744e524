// The contract of a program that trains and predicts: the tasks that its process takes.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <memory>

#include "common/base/clock.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/event_sink.h"
#include "worker/task/fold_trainer.h"
#include "worker/task/inference_control.h"
#include "worker/task/task_control.h"

namespace traind {

// A program gives its process one Engine; worker/daemon/programs.h names the program and says
// which models it trains.
// Threads: its functions run on the process's task thread, one task at a time.
class Engine {
 public:
  virtual ~Engine() = default;

  // The references outlive the trainer.
  virtual std::unique_ptr<FoldTrainer> NewTrainer(const rank_protocol::Train& train,
                                                  TaskControl& control, EventSink& sink,
                                                  const Clock& clock) = 0;

  // PREDICT and SERVE, with models that this program has trained: their messages are those of
  // rank_protocol/messages.h from Predict and Serve on. A program that has neither says so with
  // Unimplemented.
  virtual absl::Status Predict(const rank_protocol::Predict& predict, InferenceControl& control,
                               EventSink& sink, const Clock& clock);
  virtual absl::Status Serve(const rank_protocol::Serve& serve, InferenceControl& control,
                             EventSink& sink, const Clock& clock);

  // Runs a task. Exceptions of libraries become statuses here: OUT_OF_MEMORY for bad_alloc,
  // INTERNAL for others.
  virtual absl::Status Guard(const std::function<absl::Status()>& task);

  // Gives memory that earlier tasks have freed back to the system and the device. Called once no
  // task has come for a while.
  virtual void ReleaseMemory();
};

}  // namespace traind
