#pragma once

#include <sys/types.h>

#include <cstdint>

namespace traind::worker {

// The fields of /proc/PID/stat that are used.
struct ProcessStat {
  bool exists = false;
  int64_t major_faults = 0;
  int64_t user_ticks = 0, system_ticks = 0;
  int64_t children_ticks = 0;  // user and system time of ended children
  int64_t resident_pages = 0;
};

// Threads: safe.
ProcessStat StatOf(pid_t pid);

}  // namespace traind::worker
