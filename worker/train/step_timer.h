// Durations of steps: of the first ones for the probe, and a running figure.
#pragma once

#include <absl/time/time.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace traind {

// Threads: confined to one.
class StepTimer {
 public:
  void Add(absl::Duration step) {
    ++steps_;
    total_ += step;
    recent_ = steps_ == 1 ? step : recent_ * 0.9 + step * 0.1;
    if (first_.size() < kKept) first_.push_back(step);
  }

  int64_t steps() const { return steps_; }
  absl::Duration total() const { return total_; }
  absl::Duration recent() const { return recent_; }

  // Returns a quantile of the first steps but for the very first ones, which allocate and select
  // kernels (all of them where there are no others).
  // REQUIRES: steps() > 0. share: 0.5 = the median.
  absl::Duration Quantile(double share, int64_t but = 1) const {
    const int64_t left_out = static_cast<int64_t>(first_.size()) > but ? but : 0;
    std::vector<absl::Duration> sorted(first_.begin() + left_out, first_.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
  }

 private:
  static constexpr size_t kKept = 256;
  int64_t steps_ = 0;
  absl::Duration total_, recent_;
  std::vector<absl::Duration> first_;
};

}  // namespace traind
