// The learning rate over a run.
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>

#include "proto/plain/job.h"

namespace traind {

// After the warm-up, with t the optimizer steps since its end and T those planned;
// each has the values of PyTorch's scheduler of that name.
enum class ScheduleKind {
  kCosine,          // CosineAnnealingLR: half a cosine from the peak to `least` at T
  kConstant,        // ConstantLR with factor 1
  kStep,            // StepLR: times gamma every `period` steps
  kCosineRestarts,  // CosineAnnealingWarmRestarts: T_0 = period, T_mult = period_growth
  kOneCycle,        // OneCycleLR: up for `rise` of T, then down, both by half a cosine
  kPolynomial,      // PolynomialLR: (1 - t / T) ^ power of what is above `least`
};
std::optional<ScheduleKind> ScheduleByName(absl::string_view name);

// Linear warm-up (LinearLR from 1 / warmup_steps on), then one of the kinds. A new plan
// moves the end; the part behind stays as it was. Values depend on the position alone,
// so a resumed run finds its place.
struct Schedule {
  double peak = 1e-3;
  int64_t warmup_steps = 0;
  int64_t total_steps = 1;  // warm-up included
  ScheduleKind kind = ScheduleKind::kCosine;
  double least = 0;           // cosine, cosine restarts, polynomial: the rate at the end
  int64_t period = 1;         // steps
  double gamma = 1;           // step
  int64_t period_growth = 1;  // cosine restarts: each period is so many times the last
  double power = 1;           // polynomial
  double rise = 0;            // one cycle: share of the steps
  double start_divisor = 1;   // one cycle: begins at peak / start_divisor,
  double end_divisor = 1;     // ends at that / end_divisor

  // Returns the rate of optimizer step `step`, which counts from 0; it is never negative. Steps
  // beyond the last have the rate that is planned for the end (cosine, polynomial: `least`).
  double LearningRate(int64_t step) const;
};

// spec: at most one of its warm-ups is set; none: WarmupSteps(), or 0 for one cycle.
// epochs: the spec's; a Plan's moves total_steps afterwards.
// REQUIRES: ScheduleByName knows its kind.
Schedule MakeSchedule(const plain::ScheduleSpec& spec, double peak, int64_t steps_per_epoch,
                      int64_t epochs);

// min(100, steps of one epoch): long enough for AdamW's second moments to settle,
// and never more than a pass. Does not depend on the planned epochs.
int64_t WarmupSteps(int64_t steps_per_epoch);

// Rows per optimizer step, over all ranks, where the spec leaves it open: about 50
// steps an epoch, a power of two in 32..1024.
int64_t DefaultGangBatch(int64_t training_rows);

}  // namespace traind
