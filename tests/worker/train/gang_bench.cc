// Measures the cost of training in a gang: an MLP (64 inputs, 2 x 256, one output) or an LSTM (8
// inputs over 60 steps, 2 x 128) on R ranks of one thread against one rank alone, the same
// rows per rank. One JSON line.
//   gang_bench [BATCH [RANKS [TRANSPORT [ROUNDS [mlp|lstm]]]]]        512 2 auto 7 mlp
// Rounds alternate: all ranks together, then rank 0 alone while the others sleep.
// efficiency = seconds alone / seconds together, for as many steps; cpu_efficiency the
// same in CPU seconds of rank 0, which other programs disturb less; exchange_ms: of a
// step in the gang, adding up and waiting for the others; medians.
#include <absl/strings/numbers.h>
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

#include "common/base/reserved_port.h"
#include "tests/worker/model/model_of.h"
#include "worker/data/random.h"
#include "worker/device/collective.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr int64_t kRows = 16384;
constexpr double kRoundSeconds = 0.5;

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

std::unique_ptr<Learner> MakeLearner(Group* group, const std::string& architecture) {
  LearnerOptions options;
  const bool series = architecture == "lstm";
  options.model = ModelOf(architecture);
  DropoutOf(options.model) = 0;
  options.objective.loss = LossKind::kMse;
  options.shape.numeric = series ? 8 : 64;
  options.shape.window = series ? 60 : 1;
  options.group = group;
  LearnerData data;
  data.rows.rows = kRows;
  Random random(7);
  for (int64_t i = 0; i < kRows * options.shape.numeric; ++i) {
    data.rows.numeric.push_back(static_cast<float>(random.Normal()));
  }
  for (int64_t i = 0; i < kRows; ++i) data.values.push_back(static_cast<float>(random.Normal()));
  auto learner = Learner::Create(options, std::move(data));
  Check(learner.status());
  // The first have no whole window before them.
  std::vector<int32_t> rows(static_cast<size_t>(kRows));
  std::iota(rows.begin(), rows.end(), 0);
  std::rotate(rows.begin(), rows.begin() + options.shape.window - 1, rows.end());
  rows.resize(rows.size() - static_cast<size_t>(options.shape.window - 1));
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

// Measures so many steps.
Cost RunSteps(Learner& learner, int64_t batch, int64_t gang_rows, int64_t steps) {
  const auto started = std::chrono::steady_clock::now();
  const double cpu = CpuSeconds();
  for (int64_t step = 0; step < steps; ++step) {
    StepInput input;
    input.begin = step % ((kRows - 64) / batch) * batch;
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

int RunRank(const GroupOptions& options, int64_t batch, int rounds,
            const std::string& architecture) {
  SetTorchThreads(1);
  auto joined = Group::Join(options);
  Check(joined.status());
  Group& group = **joined;
  const auto together = MakeLearner(&group, architecture);
  const auto alone = MakeLearner(nullptr, architecture);
  constexpr int64_t kFirst = 4;
  RunSteps(*together, batch, batch * options.world_size, kFirst);
  RunSteps(*alone, batch, batch, kFirst);
  const double step_s = RunSteps(*alone, batch, batch, kFirst).wall_s / kFirst;
  std::vector<int64_t> steps{1 + static_cast<int64_t>(kRoundSeconds / step_s)};
  Check(group.Broadcast(absl::MakeSpan(steps)));
  std::vector<double> gang_s, alone_s, ratios, cpu_ratios, exchange_s;
  for (int round = 0; round < rounds; ++round) {
    Check(group.Barrier());
    group.ConsumeTime();
    const Cost gang = RunSteps(*together, batch, batch * options.world_size, steps[0]);
    gang_s.push_back(gang.wall_s);
    exchange_s.push_back(absl::ToDoubleSeconds(group.ConsumeTime()));
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
        "{\"model\": \"%s\", \"batch\": %lld, \"ranks\": %d, \"transport\": \"%s\", "
        "\"gang_step_ms\": %.3f, "
        "\"alone_step_ms\": %.3f, \"exchange_ms\": %.3f, \"efficiency\": %.3f, \"cpu_efficiency\": "
        "%.3f, \"rounds\": %d, "
        "\"steps\": %lld}\n",
        architecture.c_str(), static_cast<long long>(batch), options.world_size,
        TransportName(group.transport()), Median(gang_s) / n * 1e3, Median(alone_s) / n * 1e3,
        Median(exchange_s) / n * 1e3, Median(ratios), Median(cpu_ratios), rounds,
        static_cast<long long>(steps[0]));
  }
  return 0;
}

int Main(int argc, char** argv) {
  GroupOptions options;
  int64_t batch = 512;
  int rounds = 7;
  const std::string architecture = argc > 5 ? argv[5] : "mlp";
  const auto transport = TransportByName(argc > 3 ? argv[3] : "auto");
  if ((argc > 1 && !absl::SimpleAtoi(argv[1], &batch)) ||
      (argc > 2 && !absl::SimpleAtoi(argv[2], &options.world_size)) || !transport.has_value() ||
      (argc > 4 && !absl::SimpleAtoi(argv[4], &rounds)) || batch < 1 || batch > kRows / 2 ||
      options.world_size < 2 || rounds < 1 || (architecture != "mlp" && architecture != "lstm")) {
    std::fprintf(stderr, "usage: gang_bench [BATCH [RANKS [TRANSPORT [ROUNDS [mlp|lstm]]]]]\n");
    return 2;
  }
  options.transport = *transport;
  options.port = ReservePort();
  for (options.rank = 1; options.rank < options.world_size; ++options.rank) {
    if (fork() == 0) _exit(RunRank(options, batch, rounds, architecture));
  }
  options.rank = 0;
  int failed = RunRank(options, batch, rounds, architecture), status = 0;
  while (wait(&status) > 0) failed |= status;
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
