// Measures a sum over the ranks of this host, through shared memory and over Gloo. Prints one
// JSON line per size, with medians over the rounds in milliseconds.
//   collective_bench [RANKS [ROUNDS]]
// Each rank is a process of its own, as in a gang.
#include <ATen/Parallel.h>
#include <absl/strings/numbers.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "common/base/reserved_port.h"
#include "worker/device/collective.h"

namespace traind {
namespace {

using Time = std::chrono::steady_clock;

// Returns milliseconds.
double MedianSum(Group& group, size_t floats, int rounds) {
  std::vector<float> values(floats, 1e-6f);
  std::vector<double> times;
  for (int i = 0; i < rounds + 3; ++i) {
    if (!group.Barrier().ok()) std::exit(1);
    const auto started = Time::now();
    if (!group.Sum(absl::MakeSpan(values)).ok()) std::exit(1);
    const std::chrono::duration<double, std::milli> took = Time::now() - started;
    if (i >= 3) times.push_back(took.count());
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int RunRank(GroupOptions options, const int ports[2], int rounds) {
  at::set_num_threads(1);
  std::unique_ptr<Group> groups[2];
  const Transport transports[2] = {Transport::kSharedMemory, Transport::kGloo};
  for (int i = 0; i < 2; ++i) {
    options.transport = transports[i];
    options.port = ports[i];
    auto joined = Group::Join(options);
    if (!joined.ok()) {
      std::fprintf(stderr, "%s\n", joined.status().ToString().c_str());
      return 1;
    }
    groups[i] = *std::move(joined);
  }
  for (const size_t bytes : {size_t{1} << 10, size_t{64} << 10, size_t{330} << 10, size_t{1} << 20,
                             size_t{10} << 20, size_t{100} << 20}) {
    const int repeats = bytes > (size_t{4} << 20) ? std::max(5, rounds / 10) : rounds;
    double ms[2];
    for (int i = 0; i < 2; ++i) ms[i] = MedianSum(*groups[i], bytes / sizeof(float), repeats);
    if (options.rank == 0) {
      std::printf("{\"ranks\": %d, \"bytes\": %zu, \"shm_ms\": %.4f, \"gloo_ms\": %.4f}\n",
                  options.world_size, bytes, ms[0], ms[1]);
      std::fflush(stdout);
    }
  }
  return groups[0]->Barrier().ok() ? 0 : 1;
}

int Main(int argc, char** argv) {
  GroupOptions options;
  int rounds = 200;
  if ((argc > 1 && !absl::SimpleAtoi(argv[1], &options.world_size)) ||
      (argc > 2 && !absl::SimpleAtoi(argv[2], &rounds)) || options.world_size < 2 || rounds < 1) {
    std::fprintf(stderr, "usage: collective_bench [RANKS [ROUNDS]]\n");
    return 2;
  }
  const int ports[2] = {ReservePort(), ReservePort()};
  for (options.rank = 1; options.rank < options.world_size; ++options.rank) {
    if (fork() == 0) _exit(RunRank(options, ports, rounds));
  }
  options.rank = 0;
  int failed = RunRank(options, ports, rounds);
  int status = 0;
  while (wait(&status) > 0) failed |= status;
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
