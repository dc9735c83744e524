// What computing activations again saves: peaks of processes of their own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

#include "worker/device/process_memory.h"
#include "worker/model/learner.h"

namespace traind {
namespace {

constexpr int64_t kWindow = 256, kBatch = 16, kRows = 400;

// Bytes that two steps of a Transformer over a long window add to the process; < 0: failed.
int64_t PeakOfSteps(bool by_hand, bool recompute) {
  SetTorchThreads(1);
  LearnerOptions options;
  options.model.architecture = "transformer";
  options.model.transformer.layers = 4;
  options.model.dropout = 0.1;
  options.shape.numeric = 4;
  options.shape.window = kWindow;
  options.objective.loss = LossKind::kMse;
  options.paths.static_backward = by_hand;
  LearnerData data;
  data.rows.rows = kRows;
  for (int64_t i = 0; i < kRows * options.shape.numeric; ++i) {
    data.rows.numeric.push_back(std::sin(static_cast<float>(i)));
  }
  data.values.assign(static_cast<size_t>(kRows), 0.5f);
  auto learner = Learner::Create(options, std::move(data));
  if (!learner.ok() || !(*learner)->SetRecompute(recompute)) return -1;
  std::vector<int32_t> order(static_cast<size_t>(2 * kBatch));
  std::iota(order.begin(), order.end(), static_cast<int32_t>(kWindow));
  if (!(*learner)->SetOrder(order).ok()) return -1;
  ResetPeakResident();
  const int64_t before = PeakResidentBytes();
  for (int64_t step = 0; step < 2; ++step) {
    if (!(*learner)->Step({step * kBatch, kBatch, kBatch, 1e-3, 7}).ok()) return -1;
  }
  return PeakResidentBytes() - before;
}

int64_t PeakInAProcess(bool by_hand, bool recompute) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int64_t peak = PeakOfSteps(by_hand, recompute);
    _exit(write(ends[1], &peak, sizeof peak) == sizeof peak ? 0 : 1);
  }
  int64_t peak = -1;
  EXPECT_EQ(read(ends[0], &peak, sizeof peak), static_cast<ssize_t>(sizeof peak));
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  close(ends[0]);
  close(ends[1]);
  return peak;
}

TEST(RecomputeMemoryTest, ALongWindowTakesAtLeastThreeTenthsLess) {
  for (const bool by_hand : {true, false}) {
    const int64_t kept = PeakInAProcess(by_hand, false), again = PeakInAProcess(by_hand, true);
    std::printf("{\"path\": \"%s\", \"kept_mb\": %.1f, \"recomputed_mb\": %.1f}\n",
                by_hand ? "static" : "autograd", static_cast<double>(kept) / 1e6,
                static_cast<double>(again) / 1e6);
    ASSERT_GT(again, 0);
    EXPECT_LT(static_cast<double>(again), 0.7 * static_cast<double>(kept));
  }
}

}  // namespace
}  // namespace traind
