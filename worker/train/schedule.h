// The learning rate over a run.
#pragma once

#include <cstdint>

namespace traind {

// Linear warm-up, then a cosine to 0 at the end of the planned steps. A new plan
// moves the end; the part behind stays as it was. Values depend on the position
// alone, so a resumed run finds its place.
struct Schedule {
  double peak = 1e-3;
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;

  // Of optimizer step `step`, from 0. Never negative; 0 past the end.
  double LearningRate(int64_t step) const;
};

// min(100, steps of one epoch): long enough for AdamW's second moments to settle,
// and never more than a pass. Does not depend on the planned epochs.
int64_t WarmupSteps(int64_t steps_per_epoch);

// Rows per optimizer step, over all ranks, where the spec leaves it open: about 50
// steps an epoch, a power of two in 32..1024.
int64_t DefaultGangBatch(int64_t training_rows);

}  // namespace traind
