#include "worker/program/stop_schedule.h"

#include <algorithm>

namespace traind {

StopSchedule ScheduleStop(absl::Duration now, absl::Duration deadline, bool saves, bool predicts) {
  constexpr double kPredict = 0.8;
  const double terminate = predicts ? 0.15 : 0.35, kill = predicts ? 0.3 : 0.55;
  const absl::Duration most = saves ? kStopPatience : kDropPatience;
  const absl::Duration left = std::clamp(deadline - now, absl::ZeroDuration(), most);
  return {now, now + terminate * left, now + kill * left, now + kPredict * left};
}

}  // namespace traind
