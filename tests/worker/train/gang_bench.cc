// What training in a gang costs: an MLP (64 inputs, 2 x 256, one output) on R ranks of
// one thread against one rank alone, the same rows per rank. One JSON line.
//   gang_bench [BATCH [RANKS [TRANSPORT [ROUNDS]]]]        512 2 auto 7
// Rounds alternate: all ranks together, then rank 0 alone while the others sleep.
// efficiency = seconds alone / seconds together, for as many steps; cpu_efficiency the
// same in CPU seconds of rank 0, which other programs disturb less; medians.
#include <absl/strings/numbers.h>
#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "worker/data/random.h"
#include "worker/device/collective.h"
#include "worker/model/learner.h"

namespace traind {
namespace {

constexpr int64_t kInputs = 64, kRows = 16384;
constexpr double kRoundSeconds = 0.5;

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  close(fd);
  return ntohs(address.sin_port);
}

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

std::unique_ptr<Learner> MakeLearner(Group* group) {
  LearnerOptions options;
  options.objective.loss = LossKind::kMse;
  options.model.hidden = {256, 256};
  options.model.dropout = 0;
  options.shape.numeric = kInputs;
  options.group = group;
  LearnerData data;
  data.rows.rows = kRows;
  Random random(7);
  for (int64_t i = 0; i < kRows * kInputs; ++i) {
    data.rows.numeric.push_back(static_cast<float>(random.Normal()));
  }
  for (int64_t i = 0; i < kRows; ++i) data.values.push_back(static_cast<float>(random.Normal()));
  auto learner = Learner::Create(options, std::move(data));
  Check(learner.status());
  std::vector<int32_t> rows(static_cast<size_t>(kRows));
  std::iota(rows.begin(), rows.end(), 0);
  Check((*learner)->SetOrder(rows));
  return *std::move(learner);
}

struct Cost {
  double wall_s = 0, cpu_s = 0;
};

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Of so many steps.
Cost RunSteps(Learner& learner, int64_t batch, int64_t gang_rows, int64_t steps) {
  const auto started = std::chrono::steady_clock::now();
  const double cpu = CpuSeconds();
  for (int64_t step = 0; step < steps; ++step) {
    StepInput input;
    input.begin = step % (kRows / batch) * batch;
    input.rows = batch;
    input.gang_rows = gang_rows;
    input.learning_rate = 1e-3;
    Check(learner.Step(input));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  return {took.count(), CpuSeconds() - cpu};
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int RunRank(const GroupOptions& options, int64_t batch, int rounds) {
  SetTorchThreads(1);
  auto joined = Group::Join(options);
  Check(joined.status());
  Group& group = **joined;
  const auto together = MakeLearner(&group), alone = MakeLearner(nullptr);
  RunSteps(*together, batch, batch * options.world_size, 20);
  std::vector<int64_t> steps{
      static_cast<int64_t>(20 * kRoundSeconds / RunSteps(*alone, batch, batch, 20).wall_s)};
  Check(group.Broadcast(absl::MakeSpan(steps)));
  std::vector<double> gang_s, alone_s, ratios, cpu_ratios;
  for (int round = 0; round < rounds; ++round) {
    Check(group.Barrier());
    const Cost gang = RunSteps(*together, batch, batch * options.world_size, steps[0]);
    gang_s.push_back(gang.wall_s);
    if (options.rank == 0) {
      const Cost solo = RunSteps(*alone, batch, batch, steps[0]);
      alone_s.push_back(solo.wall_s);
      ratios.push_back(solo.wall_s / gang.wall_s);
      cpu_ratios.push_back(solo.cpu_s / gang.cpu_s);
    }
  }
  Check(group.Barrier());
  if (options.rank == 0) {
    const double n = static_cast<double>(steps[0]);
    std::printf(
        "{\"batch\": %lld, \"ranks\": %d, \"transport\": \"%s\", \"gang_step_ms\": %.3f, "
        "\"alone_step_ms\": %.3f, \"efficiency\": %.3f, \"cpu_efficiency\": %.3f, \"rounds\": %d, "
        "\"steps\": %lld}\n",
        static_cast<long long>(batch), options.world_size, TransportName(group.transport()),
        Median(gang_s) / n * 1e3, Median(alone_s) / n * 1e3, Median(ratios), Median(cpu_ratios),
        rounds, static_cast<long long>(steps[0]));
  }
  return 0;
}

int Main(int argc, char** argv) {
  GroupOptions options;
  int64_t batch = 512;
  int rounds = 7;
  const auto transport = TransportByName(argc > 3 ? argv[3] : "auto");
  if ((argc > 1 && !absl::SimpleAtoi(argv[1], &batch)) ||
      (argc > 2 && !absl::SimpleAtoi(argv[2], &options.world_size)) || !transport.has_value() ||
      (argc > 4 && !absl::SimpleAtoi(argv[4], &rounds)) || batch < 1 || batch > kRows ||
      options.world_size < 2 || rounds < 1) {
    std::fprintf(stderr, "usage: gang_bench [BATCH [RANKS [TRANSPORT [ROUNDS]]]]\n");
    return 2;
  }
  options.transport = *transport;
  options.port = FreePort();
  for (options.rank = 1; options.rank < options.world_size; ++options.rank) {
    if (fork() == 0) _exit(RunRank(options, batch, rounds));
  }
  options.rank = 0;
  int failed = RunRank(options, batch, rounds), status = 0;
  while (wait(&status) > 0) failed |= status;
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
