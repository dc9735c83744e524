#include "common/base/clock.h"

#include <absl/time/clock.h>
#include <time.h>

namespace traind {
namespace {

class MachineClock final : public Clock {
 public:
  absl::Time WallNow() const override { return absl::Now(); }
  absl::Duration MonotonicNow() const override {
    timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return absl::DurationFromTimespec(now);
  }
};

}  // namespace

const Clock& SystemClock() {
  static const MachineClock* const clock = new MachineClock();
  return *clock;
}

}  // namespace traind
