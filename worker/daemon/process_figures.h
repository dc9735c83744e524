// The resources that processes and the machine use, read from /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace traind::worker {

struct ProcessFigures {
  double cpu_s = 0;  // user and system time, of ended children that were waited for, too
  int64_t resident_bytes = 0;
};

// Sums over the process and its descendants; zeros: there is no such process. Threads: safe.
ProcessFigures FiguresOf(pid_t pid);

// Times of all cores of the machine since its start.
struct MachineTime {
  double all_s = 0;
  double steal_s = 0;  // that its host gave to others
};
MachineTime ReadMachineTime();

}  // namespace traind::worker
