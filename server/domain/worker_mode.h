// Which tasks a Worker takes, and the facts about it besides its slots.
#pragma once

#include <absl/time/time.h>

#include <string>

#include "proto/plain/training_service_enums.h"

namespace traind {

// kNone: whatever comes.
using plain::WorkerMode;

struct WorkerNote {
  std::string id, hostname;
  WorkerMode mode = WorkerMode::kNone;
  absl::Time drain_at = absl::InfiniteFuture();  // of kDraining
  // While traind ran and waited for it, nothing was heard of it for so long; 0: it was heard.
  absl::Duration silent = absl::ZeroDuration();
};

}  // namespace traind
