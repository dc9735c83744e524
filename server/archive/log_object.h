// The copy of a log of the state folder as an object of a bucket, which cannot grow: it is written
// anew.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <string>

#include "server/archive/log_copy.h"
#include "server/objects/object_store.h"

namespace traind {

// Threads: confined to one. Ownership: the store outlives it.
class LogObject {
 public:
  LogObject(const ObjectStore* objects, std::string folder, LogNames names);

  // Writes the log, and the older one where it has become another, if they have changed. For a
  // large log that is done less often, a second for each MB after the last time, unless `all`. now:
  // on a monotonic clock. Errors: those of the system and the store; then it is tried again.
  absl::Status CatchUp(absl::Duration now, bool all);

 private:
  absl::Status Give(const std::string& name, std::string* given);

  const ObjectStore* const objects_;
  const std::string folder_;
  const LogNames names_;
  std::string given_, given_older_;  // how the files looked that the store has
  absl::Duration next_ = -absl::InfiniteDuration();
};

}  // namespace traind
