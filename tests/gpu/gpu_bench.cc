// Measures samples per second of a Learner's training on a GPU, by path and precision: operator
// by operator, or as a graph that is launched as a whole. Prints one JSON line per mode, with
// medians over rounds in which the modes take turns. Nothing is read from disk.
//   gpu_bench [STEPS [ROUNDS]]                                         200 5
// Without a GPU it prints the reason and exits with 0.
#include <absl/strings/numbers.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/model/model_of.h"
#include "worker/data/random.h"
#include "worker/device/cuda_api.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr int64_t kRows = 32768;

struct Work {
  const char* name;
  const char* architecture;
  int64_t batch, window;
};
constexpr Work kWorks[] = {
    {"mlp512", "mlp", 512, 1},
    {"mlp64", "mlp", 64, 1},
    {"lstm", "lstm", 128, 60},
    {"encoder", "transformer", 128, 60},
};

struct Mode {
  const char* name;
  Precision precision;
  bool graph;
};
constexpr Mode kModes[] = {
    {"fp32", Precision::kFp32, false},
    {"fp32 graph", Precision::kFp32, true},
    {"bf16", Precision::kBf16, false},
    {"bf16 graph", Precision::kBf16, true},
};

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

std::unique_ptr<Learner> MakeLearner(const CudaApi* cuda, const Work& work, const Mode& mode) {
  LearnerOptions options;
  options.model = ModelOf(work.architecture);
  DropoutOf(options.model) = 0;
  options.shape.numeric = work.window > 1 ? 8 : 64;
  options.shape.window = work.window;
  options.objective.loss = LossKind::kMse;
  options.precision = mode.precision;
  options.paths.cuda_graph = mode.graph;
  options.cuda = cuda;
  LearnerData data;
  data.rows.rows = kRows;
  Random random(7);
  for (int64_t i = 0; i < kRows * options.shape.numeric; ++i) {
    data.rows.numeric.push_back(static_cast<float>(random.Normal()));
  }
  for (int64_t i = 0; i < kRows; ++i) data.values.push_back(static_cast<float>(random.Normal()));
  auto learner = Learner::Create(options, std::move(data));
  Check(learner.status());
  std::vector<int32_t> order(static_cast<size_t>(kRows - work.window));
  std::iota(order.begin(), order.end(), static_cast<int32_t>(work.window));
  Check((*learner)->SetOrder(order));
  return *std::move(learner);
}

// Returns samples per second.
double RateOf(Learner& learner, const Work& work, int64_t steps) {
  Check(learner.Synchronize());
  const auto started = std::chrono::steady_clock::now();
  for (int64_t step = 0; step < steps; ++step) {
    const int64_t begin = step % ((kRows - work.window) / work.batch) * work.batch;
    Check(learner.Step({begin, work.batch, work.batch, 1e-3, static_cast<uint64_t>(step)}));
  }
  Check(learner.Synchronize());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  return static_cast<double>(steps * work.batch) / took.count();
}

int Main(int argc, char** argv) {
  int64_t steps = 200;
  int rounds = 5;
  if ((argc > 1 && !absl::SimpleAtoi(argv[1], &steps)) ||
      (argc > 2 && !absl::SimpleAtoi(argv[2], &rounds)) || steps < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: gpu_bench [STEPS [ROUNDS]]\n");
    return 2;
  }
  const auto cuda = LoadCuda();
  if (!cuda.ok()) {
    std::printf("skipped: %s\n", cuda.status().ToString().c_str());
    return 0;
  }
  for (const Work& work : kWorks) {
    std::vector<std::unique_ptr<Learner>> learners;
    std::vector<std::vector<double>> rates(std::size(kModes));
    for (const Mode& mode : kModes) {
      learners.push_back(MakeLearner(*cuda, work, mode));
      RateOf(*learners.back(), work, 20);
    }
    for (int round = 0; round < rounds; ++round) {
      for (size_t k = 0; k < learners.size(); ++k) {
        const size_t mode = (k + static_cast<size_t>(round)) % learners.size();
        rates[mode].push_back(RateOf(*learners[mode], work, steps));
      }
    }
    for (size_t k = 0; k < learners.size(); ++k) {
      std::sort(rates[k].begin(), rates[k].end());
      std::printf("{\"device\": \"%s\", \"work\": \"%s\", \"mode\": \"%s\", \"samples_s\": %.0f}\n",
                  (*cuda)->DeviceName().c_str(), work.name, kModes[k].name,
                  rates[k][rates[k].size() / 2]);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
