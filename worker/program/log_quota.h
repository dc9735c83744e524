// How much of a program's output goes into its log: one that prints without end would keep its
// reader busy with nothing else, and push out what is worth reading.
#pragma once

#include <absl/time/time.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace traind {

// A token bucket of lines. Threads: confined to one.
class LogQuota {
 public:
  static constexpr double kAtOnce = 20'000;
  static constexpr double kPerSecond = 5'000;
  static constexpr absl::Duration kTellEvery = absl::Seconds(1);

  // Whether the log takes a line now; one that it does not counts as left out. Times are of one
  // monotonic clock.
  bool Takes(absl::Duration now) {
    left_ = std::min(kAtOnce, left_ + kPerSecond * absl::ToDoubleSeconds(now - at_));
    at_ = now;
    if (left_ < 1) {
      ++left_out_;
      return false;
    }
    --left_;
    return true;
  }
  // Returns the lines that were left out since it last returned some, which it does once in
  // kTellEvery.
  int64_t TakeLeftOut(absl::Duration now) {
    if (left_out_ == 0 || now < tell_at_) return 0;
    tell_at_ = now + kTellEvery;
    return std::exchange(left_out_, 0);
  }

 private:
  double left_ = kAtOnce;
  absl::Duration at_;
  absl::Duration tell_at_ = -absl::InfiniteDuration();
  int64_t left_out_ = 0;
};

}  // namespace traind
