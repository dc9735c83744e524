// Jobs of a cluster over time: drawn, or read from a file.
// Threads: safe, pure.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct TraceJob {
  absl::Time arrives;
  absl::Duration runs;  // on all of its slots
  absl::Duration asks;  // what the scheduler takes it for: at least `runs`
  absl::Time deadline = absl::InfiniteFuture();
  int slots = 1;
  int priority = 0;
  std::string owner;
};

// Arrivals are a Poisson process, durations lognormal, most gangs small, and a few owners send most
// of the Jobs.
struct TraceShape {
  int jobs = 5'000;
  int slots = 128;    // of the cluster, which the load is for
  double load = 0.9;  // slot-seconds asked per slot-second
  absl::Duration median = absl::Minutes(15);
  double sigma = 1.3;          // of the logarithm of durations
  double with_deadline = 0.4;  // share of the Jobs
  int owners = 12;
  uint64_t seed = 1;
};
std::vector<TraceJob> DrawTrace(const TraceShape& shape);

// Reads CSV with a header. Columns, in any order: submit_time and duration; num_gpu, num_gpus or
// gpu_num; optional user or vc, priority, and deadline (seconds after submit_time). Times are
// seconds or "2017-10-09 05:47:12". So are the Philly trace in the form of Tiresias and the Helios
// traces. Rows without a GPU or a duration are left out. InvalidArgument: a column is missing, or a
// row is damaged.
absl::StatusOr<std::vector<TraceJob>> ReadTrace(absl::string_view csv, uint64_t seed);

}  // namespace traind
