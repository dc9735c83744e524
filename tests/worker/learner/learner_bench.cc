// Measures samples per second of a Learner's training, by path and precision.
//
//   learner_bench DATA_DIR mlp|lstm|encoder BATCH STEPS ROUNDS [THREADS]
//   learner_bench DATA_DIR ensemble ROUNDS
//   learner_bench folds ROUNDS
//
// folds: measures what five models of one shape could gain from training as one. It compares
// the products of a step in one call per model with one call for all five, by batch size. (The
// rest of a step handles as many bytes either way, and has no operators to be saved.)
//
// DATA_DIR holds tab_x, tab_y, ser_x and ser_y .npy (float32, C order). The paths take turns.
// Prints one JSON line each, with medians over the rounds by wall clock, and by this thread's
// CPU time, which other processes disturb less.
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randn_like.h>
#include <c10/core/InferenceMode.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/model/model_of.h"
#include "worker/data/random.h"
#include "worker/learner/learner.h"
#include "worker/model/kernels/gemm.h"

namespace traind {
namespace {

std::vector<float> ReadFloats(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char head[10];
  file.read(head, sizeof head);
  uint16_t header = 0;
  std::memcpy(&header, head + 8, sizeof header);
  file.ignore(header);
  std::vector<float> values;
  std::vector<float> part(1 << 16);
  while (file) {
    file.read(reinterpret_cast<char*>(part.data()), static_cast<std::streamsize>(part.size() * 4));
    values.insert(values.end(), part.begin(), part.begin() + file.gcount() / 4);
  }
  if (values.empty()) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    std::exit(1);
  }
  return values;
}

double CpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Mode {
  std::string name;
  std::unique_ptr<Learner> learner;
  std::vector<double> wall, cpu;  // seconds per step, by round
  double loss = 0;
};

struct Work {
  LearnerOptions options;
  LearnerData data;
  std::vector<int32_t> order;
};

Work Load(const std::string& dir, const std::string& name) {
  Work work;
  const bool series = name != "mlp";
  work.data.rows.numeric = ReadFloats(dir + (series ? "/ser_x.npy" : "/tab_x.npy"));
  work.data.values = ReadFloats(dir + (series ? "/ser_y.npy" : "/tab_y.npy"));
  const int64_t rows = static_cast<int64_t>(work.data.values.size());
  work.data.rows.rows = rows;
  LearnerOptions& options = work.options;
  options.model = ModelOf(name == "encoder" ? "transformer" : name);
  DropoutOf(options.model) = 0;
  options.shape.numeric = static_cast<int64_t>(work.data.rows.numeric.size()) / rows;
  options.shape.window = series ? 60 : 1;
  options.objective.loss = LossKind::kMse;
  options.clip_norm = 0;
  options.seed = 7;
  work.order.resize(static_cast<size_t>(rows - options.shape.window + 1));
  std::iota(work.order.begin(), work.order.end(), static_cast<int32_t>(options.shape.window - 1));
  Random random(7);
  for (size_t i = work.order.size(); !series && i > 1; --i) {
    std::swap(work.order[i - 1], work.order[random.Below(i)]);
  }
  return work;
}

Mode NewMode(const Work& work, std::string name, Precision precision, bool handwritten, bool full) {
  LearnerOptions options = work.options;
  options.precision = precision;
  options.paths.handwritten_backward = handwritten;
  if (full) {
    DropoutOf(options.model) = 0.1;
    options.clip_norm = 5;
  }
  LearnerData data = work.data;
  auto learner = Learner::Create(options, std::move(data));
  if (!learner.ok() || !(*learner)->SetOrder(work.order).ok()) {
    std::fprintf(stderr, "%s\n", learner.status().ToString().c_str());
    std::exit(1);
  }
  Mode mode;
  mode.name = std::move(name);
  mode.learner = *std::move(learner);
  return mode;
}

void Run(Mode& mode, const Work& work, int64_t batch, int64_t first, int64_t steps) {
  std::vector<double> wall, cpu;
  const int64_t batches = static_cast<int64_t>(work.order.size()) / batch;
  for (int64_t i = first; i < first + steps; ++i) {
    const double w = WallSeconds(), c = CpuSeconds();
    const absl::Status stepped =
        mode.learner->Step({i % batches * batch, batch, batch, 1e-3, static_cast<uint64_t>(i)});
    if (!stepped.ok()) {
      std::fprintf(stderr, "%s\n", stepped.ToString().c_str());
      std::exit(1);
    }
    wall.push_back(WallSeconds() - w);
    cpu.push_back(CpuSeconds() - c);
  }
  mode.wall.push_back(Median(wall));
  mode.cpu.push_back(Median(cpu));
  mode.loss = mode.learner->ConsumeLoss()->mean();
}

// Five MLPs predict 100,000 rows at once, and single rows one after the other.
int RunEnsemble(const std::string& dir, int rounds) {
  constexpr int64_t kModels = 5, kRows = 100'000, kSingles = 500;
  Work work = Load(dir, "mlp");
  EncodedRows rows;
  rows.rows = kRows;
  const size_t width = static_cast<size_t>(work.options.shape.numeric);
  rows.numeric.assign(work.data.rows.numeric.begin(),
                      work.data.rows.numeric.begin() + static_cast<int64_t>(kRows * width));
  EncodedRows one;
  one.rows = 1;
  one.numeric.assign(rows.numeric.begin(), rows.numeric.begin() + static_cast<int64_t>(width));
  for (const auto& [fast, precision] :
       {std::make_pair(false, Precision::kFp32), std::make_pair(true, Precision::kFp32),
        std::make_pair(false, Precision::kBf16), std::make_pair(true, Precision::kBf16)}) {
    work.options.paths.handwritten_forward = fast;
    std::vector<Mode> models;
    for (int64_t k = 0; k < kModels; ++k) {
      work.options.seed = static_cast<uint64_t>(k);
      models.push_back(NewMode(work, "", Precision::kFp32, true, false));
      models.back().learner->AnswerIn(precision);
    }
    std::vector<float> part(kRows), mean(kRows);
    const auto answer = [&](const EncodedRows& asked) {
      std::fill_n(mean.begin(), asked.rows, 0.0f);
      for (Mode& model : models) {
        if (!model.learner->Predict(Weights::kLast, asked, absl::MakeSpan(part)).ok()) {
          std::exit(1);
        }
        for (int64_t i = 0; i < asked.rows; ++i) {
          mean[static_cast<size_t>(i)] += part[static_cast<size_t>(i)] / kModels;
        }
      }
    };
    std::vector<double> wall, cpu, single;
    for (int round = 0; round < rounds; ++round) {
      const double w = WallSeconds(), c = CpuSeconds();
      answer(rows);
      wall.push_back(WallSeconds() - w);
      cpu.push_back(CpuSeconds() - c);
    }
    for (int64_t i = 0; i < kSingles; ++i) {
      const double c = CpuSeconds();
      answer(one);
      single.push_back(CpuSeconds() - c);
    }
    std::printf(
        "{\"work\": \"ensemble\", \"path\": \"%s %s\", \"rows_s\": %.0f, \"cpu_rows_s\": %.0f, "
        "\"row_us_p50\": %.1f}\n",
        std::string(PrecisionName(precision)).c_str(), fast ? "handwritten" : "operators",
        kRows / Median(wall), kRows / Median(cpu), Median(single) * 1e6);
  }
  return 0;
}

// Layers of 256, for five models side by side: the three products of a step, which give the
// output, the weight gradient and the input gradient.
int RunFolds(int rounds) {
  constexpr int64_t kModels = 5, kWidth = 256;
  c10::InferenceMode inference;
  for (const int64_t batch : {16, 64, 256}) {
    const at::Tensor x = at::randn({kModels, batch, kWidth}), d = at::randn_like(x);
    const at::Tensor w = at::randn({kModels, kWidth, kWidth});
    at::Tensor y = at::empty_like(x), dx = at::empty_like(x), dw = at::empty_like(w);
    const auto in_turn = [&] {
      for (int64_t k = 0; k < kModels; ++k) {
        const auto of = [k](const at::Tensor& t) {
          return Matrix<const float>{t.const_data_ptr<float>() + k * t.stride(0), kWidth, false};
        };
        const auto into = [k](const at::Tensor& t) {
          return t.mutable_data_ptr<float>() + k * t.stride(0);
        };
        const auto flip = [](Matrix<const float> m) {
          m.transposed = true;
          return m;
        };
        Multiply(batch, kWidth, kWidth, of(x), flip(of(w)), into(y), kWidth);
        Multiply(kWidth, kWidth, batch, flip(of(d)), of(x), into(dw), kWidth);
        Multiply(batch, kWidth, kWidth, of(d), of(w), into(dx), kWidth);
      }
    };
    const auto at_once = [&] {
      at::bmm_out(y, x, w.transpose(1, 2));
      at::bmm_out(dw, d.transpose(1, 2), x);
      at::bmm_out(dx, d, w);
    };
    constexpr int kRepeats = 40;
    std::vector<double> ratios, alone;
    for (int round = 0; round < rounds; ++round) {
      double spent[2];
      for (const bool batched : {round % 2 == 0, round % 2 != 0}) {
        const double c = CpuSeconds();
        for (int i = 0; i < kRepeats; ++i) batched ? at_once() : in_turn();
        spent[batched] = (CpuSeconds() - c) / kRepeats;
      }
      alone.push_back(spent[0]);
      ratios.push_back(spent[0] / spent[1]);
    }
    std::printf(
        "{\"work\": \"folds\", \"batch\": %lld, \"in_turn_ms\": %.3f, \"gflops\": %.1f, "
        "\"batched_gain\": %.3f}\n",
        static_cast<long long>(batch), Median(alone) * 1e3,
        6e-9 * static_cast<double>(kModels * batch * kWidth * kWidth) / Median(alone),
        Median(ratios));
  }
  return 0;
}

int Main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "folds") {
    SetTorchThreads(1);
    return RunFolds(std::atoi(argv[2]));
  }
  if (argc == 4 && std::string(argv[2]) == "ensemble") {
    SetTorchThreads(1);
    return RunEnsemble(argv[1], std::atoi(argv[3]));
  }
  if (argc < 6) {
    std::fprintf(stderr,
                 "usage: learner_bench DATA_DIR mlp|lstm|encoder BATCH STEPS ROUNDS [THREADS]\n");
    return 2;
  }
  const std::string name = argv[2];
  const int64_t batch = std::atoll(argv[3]), steps = std::atoll(argv[4]);
  const int rounds = std::atoi(argv[5]);
  SetTorchThreads(argc > 6 ? std::atoi(argv[6]) : 1);
  const Work work = Load(argv[1], name);
  std::vector<Mode> modes;
  modes.push_back(NewMode(work, "fp32 autograd", Precision::kFp32, false, false));
  modes.push_back(NewMode(work, "fp32 handwritten", Precision::kFp32, true, false));
  modes.push_back(
      NewMode(work, "fp32 handwritten, dropout and clipping", Precision::kFp32, true, true));
  if (__builtin_cpu_supports("avx512bf16") != 0) {
    modes.push_back(NewMode(work, "bf16 autograd", Precision::kBf16, false, false));
    modes.push_back(NewMode(work, "bf16 handwritten", Precision::kBf16, true, false));
  }
  for (Mode& mode : modes) {
    Run(mode, work, batch, 0, 3);
    mode.wall.clear();
    mode.cpu.clear();
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t k = 0; k < modes.size(); ++k) {
      Run(modes[(k + static_cast<size_t>(round)) % modes.size()], work, batch, 3 + round * steps,
          steps);
    }
  }
  for (const Mode& mode : modes) {
    const double wall = Median(mode.wall), cpu = Median(mode.cpu);
    std::printf(
        "{\"work\": \"%s\", \"path\": \"%s\", \"batch\": %lld, \"samples_s\": %.1f, "
        "\"step_ms_p50\": %.4f, \"cpu_step_ms_p50\": %.4f, \"loss\": %.6f}\n",
        name.c_str(), mode.name.c_str(), static_cast<long long>(batch),
        static_cast<double>(batch) / wall, wall * 1e3, cpu * 1e3, mode.loss);
  }
  return 0;
}

}  // namespace
}  // namespace traind

int main(int argc, char** argv) { return traind::Main(argc, argv); }
