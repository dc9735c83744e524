// Where memory ran out once, processes that train get a share of it: their allocations then fail,
// which a Rank survives with a smaller batch, before the kernel ends a process.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "common/base/container.h"

namespace traind::worker {

// Bytes that each of the processes on `slots` slots may have. available: free memory; trains: that
// the processes have which train now.
inline int64_t MemoryShare(int64_t available, int64_t trains, int slots) {
  constexpr double kUsed = 0.9;
  return static_cast<int64_t>(kUsed * static_cast<double>(available + trains) / slots);
}

// Bytes of private data of a process: all that it has mapped, and what of it is in memory.
struct PrivateMemory {
  int64_t mapped = 0, resident = 0;
};
PrivateMemory PrivateMemoryOf(pid_t pid);

// Tells whether memory ran out, and limits processes.
// Threads: confined to one.
class MemoryGuard {
 public:
  // kills: processes that the kernel has ended so far because memory ran out.
  explicit MemoryGuard(std::function<int64_t()> kills = [] { return OutOfMemoryKills(); })
      : kills_(std::move(kills)), before_(kills_()), seen_(before_) {}

  // To be called about once a second: what the kernel ended before the last call but one, such as
  // a process of somebody else, explains no later death.
  void Look();
  // Whether the kernel has ended a process for lack of memory since then. Each one explains a
  // single death: the kernel may end two Ranks at once.
  bool RanOut();
  // Whether it ever did.
  bool short_of_memory() const { return short_; }
  // Lets the process have so many bytes of private memory (RLIMIT_DATA), and a little in any case.
  static void Limit(pid_t pid, int64_t share);
  // Where memory runs out the kernel ends this process before traind and the Worker, and after a
  // program of a user.
  static void EndFirst(pid_t pid);

 private:
  const std::function<int64_t()> kills_;
  // Kills at the last Look but one, and at the last, or with those that have explained a death.
  int64_t before_, seen_;
  bool short_ = false;
};

}  // namespace traind::worker
