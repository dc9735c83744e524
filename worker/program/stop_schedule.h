// When a program that is to stop is told how. Pure.
#pragma once

#include <absl/time/time.h>

#include "worker/program/keeper.h"

namespace traind {

// A program that is told to stop at one moment and whose answers must stand at a later one. First
// it is asked (soft stop), then it has a third of the time to save by itself, then SIGTERM asks for
// its end, then SIGKILL ends it. What is left is for its files.
struct StopSchedule {
  absl::Duration soft_at;  // by Clock::MonotonicNow(), like the others
  absl::Duration terminate_at;
  absl::Duration kill_at;
  absl::Duration predict_by;  // when a command that answers for a cut fold is killed
};

// now: the moment of the soft stop. deadline: InfiniteDuration() where there is none; the program
// then has kPatience. saves: whether its answer is wanted; else its end comes soon.
// predicts: another command answers for it, so that it has half of that time.
inline constexpr absl::Duration kStopPatience = absl::Seconds(30);
inline constexpr absl::Duration kDropPatience = absl::Seconds(8);
StopSchedule ScheduleStop(absl::Duration now, absl::Duration deadline, bool saves,
                          bool predicts = false);

}  // namespace traind
