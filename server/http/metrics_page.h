// The page of metrics in Prometheus' text format.
#pragma once

#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/training_service.pb.h"
#include "server/domain/job.h"
#include "server/loop/figures.h"

namespace traind {

struct MetricsInput {
  std::string version;
  absl::Time now;
  std::vector<std::shared_ptr<const Job>> active;
  LoopFigures::Counts loop;
  CallFigures::Counts grpc, http;
  int http_connections = 0;
  int event_streams = 0;
  v1::ListWorkersReply workers;  // those that are not attached are left out
};

// All names begin with traind_, but for those of the process; units are seconds, bytes and ratios.
// Figures of single Jobs are told of the kMostJobsTold whose deadlines come first.
std::string MetricsPage(const MetricsInput& input);

inline constexpr size_t kMostJobsTold = 50;

// The figures of this process in /proc.
struct ProcessFigures {
  double cpu_s = 0;
  double started_s = 0;  // since the epoch
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t open_files = 0;
  int64_t most_files = 0;
  int64_t threads = 0;
};
ProcessFigures ReadProcessFigures();

}  // namespace traind
