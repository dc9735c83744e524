// Distances between tries.
#pragma once

#include <absl/random/bit_gen_ref.h>
#include <absl/random/random.h>
#include <absl/time/time.h>

#include <algorithm>

namespace traind::worker {

// first, 2*first, ... up to max, each between half and the whole of that, so that
// many Workers do not come at once. Threads: confined to one.
class Backoff {
 public:
  Backoff(absl::Duration first, absl::Duration max) : first_(first), max_(max), next_(first) {}

  absl::Duration Next(absl::BitGenRef random) {
    const absl::Duration wait = next_ * absl::Uniform(random, 0.5, 1.0);
    next_ = std::min(max_, 2 * next_);
    return wait;
  }
  void Reset() { next_ = first_; }

 private:
  absl::Duration first_, max_, next_;
};

}  // namespace traind::worker
