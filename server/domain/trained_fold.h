// A fold's model that an earlier Job has trained, for a Job that wants the same.
#pragma once

#include <string>

#include "server/domain/job.h"

namespace traind {

struct TrainedFold {
  int fold = 0;
  int trial = 0;
  int seed = 0;
  std::string job;      // that trained it
  int64_t attempt = 0;  // of that Job
  // It had all epochs that are wanted now, or stopped early by patience: nothing is left
  // to train. Else training goes on from the checkpoint.
  bool whole = false;
  double epochs_done = 0;
  double row_share = 1;  // the least share of its training rows that an epoch of it had
  Boxed<Member> member;
  Boxed<Checkpoint> checkpoint;
};

}  // namespace traind
