// Compares traind's scheduler with FIFO and EASY backfill on one trace:
//   bazel run -c opt //tests/server/schedule:trace_replay -- --jobs 5000 --load 0.9
//   bazel run -c opt //tests/server/schedule:trace_replay -- --trace philly.csv --workers 64
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/server/schedule/trace_replay.h"

namespace traind {
namespace {

int Main(int argc, char** argv) {
  TraceShape shape;
  Cluster cluster;
  std::string file;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    int seed = 1;
    const bool read = flag == "--jobs"      ? absl::SimpleAtoi(value, &shape.jobs)
                      : flag == "--load"    ? absl::SimpleAtod(value, &shape.load)
                      : flag == "--workers" ? absl::SimpleAtoi(value, &cluster.workers)
                      : flag == "--slots"   ? absl::SimpleAtoi(value, &cluster.slots_each)
                      : flag == "--owners"  ? absl::SimpleAtoi(value, &shape.owners)
                      : flag == "--seed"    ? absl::SimpleAtoi(value, &seed)
                                            : flag == "--trace";
    if (!read) {
      std::fprintf(stderr, "%s %s: not understood\n", argv[i], argv[i + 1]);
      return 2;
    }
    if (flag == "--trace") file = value;
    if (flag == "--seed") shape.seed = static_cast<uint64_t>(seed);
  }
  shape.slots = cluster.workers * cluster.slots_each;
  std::vector<TraceJob> trace = DrawTrace(shape);
  if (!file.empty()) {
    std::ifstream in(file);
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    auto read = ReadTrace(text, shape.seed);
    if (!read.ok() || read->empty()) {
      std::fprintf(stderr, "%s: %s\n", file.c_str(), read.status().ToString().c_str());
      return 2;
    }
    trace = *std::move(read);
  }
  std::printf("%zu Jobs on %d x %d slots\n\n", trace.size(), cluster.workers, cluster.slots_each);
  std::printf(
      "| policy | deadlines held | mean slowdown | 95th | 95th, highest class | utilisation | "
      "fairness | preemptions | replay |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- "
      "|\n");
  for (const Policy policy :
       {Policy::kFifo, Policy::kEasy, Policy::kTraindNoPreempt, Policy::kTraind}) {
    const Figures f = Replay(trace, cluster, policy);
    const double held = f.with_deadline > 0 ? 100.0 * f.held / f.with_deadline : 100.0;
    std::printf("| %s | %.1f %% of %d | %.2f | %.1f | %.1f | %.1f %% | %.3f | %d | %.1f s |\n",
                Name(policy), held, f.with_deadline, f.mean_slowdown, f.p95_slowdown,
                f.p95_slowdown_high, 100 * f.utilisation, f.fairness, f.preemptions, f.wall_s);
  }
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
