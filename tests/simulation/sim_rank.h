// One of a SimWorker's Ranks, or its PREPARE process.
#pragma once

#include <memory>

#include "tests/simulation/sim_worker.h"

namespace traind::simulation {

struct SimWorker::Rank {
  int64_t attempt = 0;
  std::shared_ptr<const Job> job;
  const JobTruth* truth = nullptr;
  TaskKind kind = TaskKind::kTrain;
  int fold = -1;
  int trial = 0;
  int seed = 0;
  absl::Time deadline, stop_at;
  int epochs = 0;
  double row_share = 1;
  bool plan_cut = false;

  // Whether its gang spans Workers.
  bool spans = false;
  int first_rank = 0;
  bool gathered = false;  // waits for the others, or has met them
  bool met = false;
  std::shared_ptr<JobTruth> smaller;  // with the times of a gang of fewer ranks

  bool over = false;
  int chain = 0;         // grows when what it is at is interrupted
  bool stepped = false;  // has made a step
  bool stopping = false;
  bool hung = false;
  bool damaged = false;  // the checkpoint that it was given cannot be read
  bool probing = false;
  double epochs_done = 0;  // of all rows, where one is not done
  absl::Time epoch_began;
  double epoch_from = 0, epoch_s = 0;
  bool in_epoch = false;
  bool complete = false;
  absl::Time checkpoint_at;
  AttemptEndReason stopped_for = AttemptEndReason::kStoppedInTime;
};

}  // namespace traind::simulation
