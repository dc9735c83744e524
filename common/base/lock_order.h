// The order in which threads take locks.
#pragma once

#include <absl/synchronization/mutex.h>

namespace traind {

// Debian's Abseil notes for every pair of locks which of them was taken first, and tells of orders
// that might end in a deadlock. That takes a tenth of the time of a program that does little but
// hand messages on. Tests leave it on; programs call this before they start threads.
inline void IgnoreLockOrder() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace traind
