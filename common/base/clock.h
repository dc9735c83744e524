// All code that needs the time gets it through this interface.
#pragma once

#include <absl/time/time.h>

namespace traind {

// Tells the time.
// Threads: implementations are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Wall-clock time (UTC), which an operator may move.
  virtual absl::Time WallNow() const = 0;
  // Time since some fixed point; it never goes back. It includes the time that the machine was
  // suspended (CLOCK_BOOTTIME), as a deadline does.
  virtual absl::Duration MonotonicNow() const = 0;
};

// The machine's clocks. The object is never destroyed.
const Clock& SystemClock();

// A clock that stands still until a test moves it.
// Threads: confined to one.
class SimulatedClock final : public Clock {
 public:
  explicit SimulatedClock(absl::Time start) : wall_(start) {}
  absl::Time WallNow() const override { return wall_; }
  absl::Duration MonotonicNow() const override { return elapsed_; }
  void Advance(absl::Duration by) {
    elapsed_ += by;
    wall_ += by;
  }
  // Moves the wall clock alone, as an operator or NTP does.
  void JumpWall(absl::Duration by) { wall_ += by; }

 private:
  absl::Time wall_;
  absl::Duration elapsed_;
};

}  // namespace traind
