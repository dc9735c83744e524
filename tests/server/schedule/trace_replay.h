// Replays a trace on a simulated cluster, with the scheduler that the control core has, or with the
// rules that others have on the same placement.
// Threads: safe, pure.
#pragma once

#include <string>
#include <vector>

#include "tests/server/schedule/cluster_trace.h"

namespace traind {

enum class Policy {
  kFifo,            // the first in line waits, and all behind it do
  kEasy,            // as FIFO, but Jobs that end before the first could start go ahead
  kTraind,          // classes, deadlines, shares, backfill, preemption
  kTraindNoPreempt  // the same, but running Jobs are never stopped
};

struct Cluster {
  int workers = 16;
  int slots_each = 8;
};

struct Figures {
  int jobs = 0, done = 0;
  int with_deadline = 0, held = 0;             // done by it; the others leave at their deadlines
  double mean_slowdown = 0, p95_slowdown = 0;  // bounded: of at least 10 s, of those that are done
  double p95_slowdown_high = 0;                // of the highest priority
  double utilisation = 0;  // of what is done, of all slots until the last arrival
  double fairness = 0;     // Jain's index over owners, of the mean of 1 / slowdown
  int preemptions = 0;
  double wall_s = 0;  // that the replay took
};

Figures Replay(const std::vector<TraceJob>& trace, const Cluster& cluster, Policy policy);
const char* Name(Policy policy);

}  // namespace traind
