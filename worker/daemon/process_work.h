// Whether a process gets on, as the kernel counts it.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace traind::worker {

// What counts as work between two looks: as much as no idle process does by itself.
inline constexpr int64_t kSignOfWork = 50;

// Returns a number that grows with the work of the process: by one for each millisecond of a core,
// each 4 KiB that it reads and each page that comes from a disk. A process that is stopped or hangs
// in a read adds nothing. 0: there is no such process. Threads: safe.
int64_t WorkOf(pid_t pid);

}  // namespace traind::worker
