// Measures samples per second of a Learner's training on a GPU, by path and precision: operator
// by operator, or as a graph that is launched as a whole. Prints one JSON line per mode, with
// medians over rounds. The modes follow one another, because the precision of products is a
// setting of the process. Nothing is read from disk.
// Large works take a tenth of the steps.
//   gpu_bench [STEPS [ROUNDS [WORK]]]                                  200 5 all
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
#include "worker/data/media_source.h"
#include "worker/data/random.h"
#include "worker/device/cuda_api.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr int64_t kRows = 32768;
constexpr int64_t kLarge = 10;

struct Work {
  const char* name;
  const char* architecture;
  const char* settings;
  int64_t batch, window = 1;
  std::vector<int64_t> image = {};
  bool large = false;
};
const Work kWorks[] = {
    {"mlp512", "mlp", "{}", 512},
    {"mlp64", "mlp", "{}", 64},
    {"lstm", "lstm", "{}", 128, 60},
    {"encoder", "transformer", "{}", 128, 60},
    {"resnet18", "cnn", R"({"architecture":"resnet18"})", 64, 1, {3, 64, 64}},
    {"wide", "mlp", R"({"hidden":[8192,8192,8192]})", 8192, 1, {}, true},
    {"resnet50", "cnn", R"({"architecture":"resnet50"})", 128, 1, {3, 224, 224}, true},
};

// Images that cost a copy.
class StillImages final : public MediaSource {
 public:
  explicit StillImages(const std::vector<int64_t>& image)
      : shape_({0, image[1], image[2], image[0]}),
        pixels_(static_cast<size_t>(image[0] * image[1] * image[2]), 0.5f) {}

  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    out.shape = shape_;
    out.shape[0] = static_cast<int64_t>(request.rows.size());
    out.values.clear();
    for (size_t row = 0; row < request.rows.size(); ++row) {
      out.values.insert(out.values.end(), pixels_.begin(), pixels_.end());
    }
    return absl::OkStatus();
  }

 private:
  const std::vector<int64_t> shape_;
  const std::vector<float> pixels_;
};

struct Mode {
  const char* name;
  Precision precision;
  bool graph;
};
constexpr Mode kModes[] = {
    {"fp32", Precision::kFp32, false},      {"fp32 graph", Precision::kFp32, true},
    {"bf16", Precision::kBf16, false},      {"bf16 graph", Precision::kBf16, true},
    {"tf32 graph", Precision::kTf32, true},
};

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

std::unique_ptr<Learner> MakeLearner(const CudaApi* cuda, const Work& work, const Mode& mode) {
  LearnerOptions options;
  options.model = ModelOf(work.architecture, work.settings);
  DropoutOf(options.model) = 0;
  options.shape.numeric = !work.image.empty() ? 0 : work.window > 1 ? 8 : 64;
  options.shape.image = work.image;
  options.shape.window = work.window;
  options.objective.loss = LossKind::kMse;
  options.precision = mode.precision;
  options.paths.cuda_graph = mode.graph;
  options.paths.cudnn_benchmark = false;  // it takes seconds for each convolution
  options.cuda = cuda;
  LearnerData data;
  data.rows.rows = kRows;
  if (!work.image.empty()) data.rows.media = std::make_shared<StillImages>(work.image);
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
  const std::string only = argc > 3 ? argv[3] : "";
  if ((argc > 1 && !absl::SimpleAtoi(argv[1], &steps)) ||
      (argc > 2 && !absl::SimpleAtoi(argv[2], &rounds)) || steps < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: gpu_bench [STEPS [ROUNDS [WORK]]]\n");
    return 2;
  }
  const auto cuda = LoadCuda();
  if (!cuda.ok()) {
    std::printf("skipped: %s\n", cuda.status().ToString().c_str());
    return 0;
  }
  for (const Work& work : kWorks) {
    if (!only.empty() && only != work.name) continue;
    for (const Mode& mode : kModes) {
      const auto learner = MakeLearner(*cuda, work, mode);
      RateOf(*learner, work, work.large ? 6 : 20);
      std::vector<double> rates;
      for (int round = 0; round < rounds; ++round) {
        rates.push_back(
            RateOf(*learner, work, work.large ? std::max<int64_t>(1, steps / kLarge) : steps));
      }
      std::sort(rates.begin(), rates.end());
      std::printf("{\"device\": \"%s\", \"work\": \"%s\", \"mode\": \"%s\", \"samples_s\": %.0f}\n",
                  (*cuda)->DeviceName().c_str(), work.name, mode.name, rates[rates.size() / 2]);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
