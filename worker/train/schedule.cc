#include "worker/train/schedule.h"

#include <algorithm>
#include <cmath>

namespace traind {

double Schedule::LearningRate(int64_t step) const {
  if (step < warmup_steps) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  }
  if (step >= total_steps) return 0;
  constexpr double kPi = 3.141592653589793;
  const double done =
      static_cast<double>(step - warmup_steps) / static_cast<double>(total_steps - warmup_steps);
  return peak * 0.5 * (1 + std::cos(kPi * done));
}

int64_t WarmupSteps(int64_t steps_per_epoch) {
  return std::clamp<int64_t>(steps_per_epoch, 1, 100);
}

int64_t DefaultGangBatch(int64_t training_rows) {
  constexpr int64_t kLeast = 32, kMost = 1024, kStepsPerEpoch = 50;
  int64_t batch = kLeast;
  while (batch < kMost && batch * 2 * kStepsPerEpoch <= training_rows) batch *= 2;
  return batch;
}

}  // namespace traind
