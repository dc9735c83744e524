// Which tasks a Worker takes, and the facts about it besides its slots.
#pragma once

#include <absl/time/time.h>

#include <string>

namespace traind {

enum class WorkerMode {
  kOpen = 0,
  kCordoned = 1,  // nothing new; what it runs goes on
  kDraining = 2,  // nothing new; what it runs at drain_at goes on elsewhere
  kLeaving = 3,   // nothing new: it was told to stop, and says so itself
};

struct WorkerNote {
  std::string id, hostname;
  WorkerMode mode = WorkerMode::kOpen;
  absl::Time drain_at = absl::InfiniteFuture();  // of kDraining
};

}  // namespace traind
