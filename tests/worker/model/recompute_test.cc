// What computing activations again saves: peaks of processes of their own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "worker/data/media_source.h"
#include "worker/device/process_memory.h"
#include "worker/model/learner.h"

namespace traind {
namespace {

constexpr int64_t kWindow = 256, kBatch = 16, kRows = 400;

// Texts of half the longest one's length to all of it.
class Texts final : public MediaSource {
 public:
  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override {
    out = MediaBatch();
    for (const int32_t row : request.rows) {
      const int32_t length = kWindow / 2 + row * 37 % (kWindow / 2);
      for (int32_t i = 0; i < length; ++i) out.tokens.push_back((row + i * i) % 100);
      out.ends.push_back(static_cast<int32_t>(out.tokens.size()));
    }
    return absl::OkStatus();
  }
};

// Bytes that two steps over a long window, or over texts, add to the process; < 0: failed.
int64_t PeakOfSteps(const std::string& architecture, bool by_hand, bool recompute) {
  SetTorchThreads(1);
  LearnerOptions options;
  options.model.architecture = architecture;
  options.model.transformer.layers = 4;
  options.model.dropout = 0.1;
  options.shape.numeric = 4;
  options.objective.loss = LossKind::kMse;
  options.paths.static_backward = by_hand;
  LearnerData data;
  data.rows.rows = kRows;
  if (architecture == "text") {
    options.shape.vocabulary = 100;
    options.shape.max_tokens = kWindow;
    data.rows.media = std::make_shared<Texts>();
  } else {
    options.shape.window = kWindow;
  }
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

int64_t PeakInAProcess(const std::string& architecture, bool by_hand, bool recompute) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int64_t peak = PeakOfSteps(architecture, by_hand, recompute);
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

void ExpectThreeTenthsLess(const std::string& architecture) {
  for (const bool by_hand : {true, false}) {
    const int64_t kept = PeakInAProcess(architecture, by_hand, false);
    const int64_t again = PeakInAProcess(architecture, by_hand, true);
    std::printf(
        "{\"model\": \"%s\", \"path\": \"%s\", \"kept_mb\": %.1f, \"recomputed_mb\": %.1f}\n",
        architecture.c_str(), by_hand ? "static" : "autograd", static_cast<double>(kept) / 1e6,
        static_cast<double>(again) / 1e6);
    ASSERT_GT(again, 0);
    EXPECT_LT(static_cast<double>(again), 0.7 * static_cast<double>(kept));
  }
}

TEST(RecomputeMemoryTest, ALongWindowTakesAtLeastThreeTenthsLess) {
  ExpectThreeTenthsLess("transformer");
}

TEST(RecomputeMemoryTest, LongTextsTakeAtLeastThreeTenthsLess) { ExpectThreeTenthsLess("text"); }

}  // namespace
}  // namespace traind
