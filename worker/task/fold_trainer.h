// A fold trainer trains one fold. This is the contract between the machinery of a process that
// works for a Worker (worker/task/task_process.h) and whatever learns in it. A network keeps it
// (worker/train/trainer.h); so may anything else that can be resumed and can predict. Nothing
// here needs LibTorch.
//
// A trainer tells of itself through its EventSink, in this order. Messages in parentheses may be
// missing; those with a star may come any number of times.
//
//   Start()              Started      first_step is above 0 after a resume
//   TrainUntilStopped()  (Probe)      once, from real steps, before the first Epoch
//                        Progress*    at most ten a second; they may get lost
//                        Epoch*       their `epoch` grows by one
//                        CheckpointSaved*   each once its file is durable
//                        FoldSaved*   last = false: answers of the best weights so far
//   Finish()             CheckpointSaved*, and where `predict` is wanted:
//                        FoldSaved    last = true: answers for the rows that the fold validates
//                                     (oof) and for the test rows; no other follows
//
// Decision and LogText may come at any time. Finished and Failed are the machinery's.
//
// Files: all go to AttemptDir() of the state folder (common/base/job_layout.h). Train::resume
// names a manifest that a trainer of the same program has told of in a CheckpointSaved. A damaged
// one is warned of and an older one is taken; without any the fold starts from its beginning.
//
// tests/contract/fold_trainer_contract.h holds every program to this.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include "common/facts/reasons.h"

namespace traind {

// How training ended.
struct Ending {
  StopCause cause = StopCause::kEpochs;
  bool predict = true;  // false: the checkpoint alone is wanted
};

// One fold in one Attempt. It is made with its Train message, a TaskControl, an EventSink and a
// Clock, which outlive it.
// Threads: confined to one; the TaskControl changes under it.
// Errors: FailureReason() (worker/task/failure.h) names each. After one nothing else is called
// but Rescue().
class FoldTrainer {
 public:
  virtual ~FoldTrainer() = default;

  // Reads what Train names, and goes on from its checkpoint where there is one.
  virtual absl::Status Start() = 0;

  // Trains until the Plan's epochs are done, patience runs out, TaskControl's stop_at is reached
  // or a stop is ordered. It looks at TaskControl::version() at least ten times a second, and
  // takes new epochs, rows and times into account from then on.
  virtual absl::StatusOr<Ending> TrainUntilStopped() = 0;

  // Saves a last checkpoint and, where the ending asks for it, the fold's answers.
  virtual absl::Status Finish(const Ending& ending) = 0;

  // TrainUntilStopped() failed: saves the answers of the best weights where there are some.
  virtual void Rescue() {}
};

// The way of a fold through it.
absl::Status TrainFold(FoldTrainer& trainer);

}  // namespace traind
