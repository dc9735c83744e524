// Memory that activation checkpointing saves: the peaks of separate processes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/model/made_media.h"
#include "tests/worker/model/model_of.h"
#include "worker/device/process_memory.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr int64_t kWindow = 256, kBatch = 16, kRows = 400;

struct Case {
  LearnerOptions options;
  LearnerData data;
  int64_t batch = kBatch;
};

Case SetupOf(const std::string& architecture) {
  Case setup;
  LearnerOptions& options = setup.options;
  LearnerData& data = setup.data;
  options.objective.loss = LossKind::kMse;
  data.rows.rows = kRows;
  if (architecture == "unet3d" || architecture == "supervised") {
    options.model = architecture == "unet3d"
                        ? ModelOf("unet3d")
                        : ModelOf("unet3d", R"({"norm":"instance","deep_supervision":true})");
    options.shape.image = {1, 16, 64, 64};
    options.shape.outputs = 3;
    options.objective.loss = LossKind::kDiceCe;
    setup.batch = 2;
  } else if (architecture == "cnn") {
    options.model = ModelOf("cnn", R"({"blocks":[2,2,2]})");
    options.shape.image = {3, 48, 48};
  } else {
    options.model = architecture == "text" ? ModelOf("text", R"({"layers":4,"feedforward":512})")
                                           : ModelOf(architecture, R"({"layers":4})");
    options.shape.numeric = 4;
  }
  if (!options.shape.image.empty())
    data.rows.media = std::make_shared<MadeImages>(options.shape.image);
  if (architecture == "text") {
    options.shape.vocabulary = 100;
    options.shape.max_tokens = kWindow;
    data.rows.media = std::make_shared<MadeTexts>(kWindow);
  } else if (architecture == "transformer") {
    options.shape.window = kWindow;
  }
  for (int64_t i = 0; i < kRows * options.shape.numeric; ++i) {
    data.rows.numeric.push_back(std::sin(static_cast<float>(i)));
  }
  data.values.assign(static_cast<size_t>(kRows * options.shape.outputs), 0.5f);
  return setup;
}

// Makes a learner whose order has two batches; null if that failed.
std::unique_ptr<Learner> LearnerOf(Case setup, bool handwritten, bool recompute) {
  SetTorchThreads(1);
  setup.options.paths.handwritten_backward = handwritten;
  auto learner = Learner::Create(setup.options, std::move(setup.data));
  if (!learner.ok() || !(*learner)->SetRecompute(recompute)) return nullptr;
  std::vector<int32_t> order(static_cast<size_t>(2 * setup.batch));
  std::iota(order.begin(), order.end(), static_cast<int32_t>(kWindow));
  if (!(*learner)->SetOrder(order).ok()) return nullptr;
  return *std::move(learner);
}

// Returns the bytes that two steps add to the process; < 0: failed.
int64_t PeakOfSteps(const std::string& architecture, bool handwritten, bool recompute) {
  Case setup = SetupOf(architecture);
  const int64_t batch = setup.batch;
  const auto learner = LearnerOf(std::move(setup), handwritten, recompute);
  if (learner == nullptr) return -1;
  ResetPeakResident();
  const int64_t before = PeakResidentBytes();
  for (int64_t step = 0; step < 2; ++step) {
    if (!learner->Step({step * batch, batch, batch, 1e-3, 7}).ok()) return -1;
  }
  return PeakResidentBytes() - before;
}

int64_t PeakInAProcess(const std::string& architecture, bool handwritten, bool recompute) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const int64_t peak = PeakOfSteps(architecture, handwritten, recompute);
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

void ExpectLess(const std::string& architecture, double most) {
  for (const bool handwritten : {true, false}) {
    const int64_t kept = PeakInAProcess(architecture, handwritten, false);
    const int64_t again = PeakInAProcess(architecture, handwritten, true);
    std::printf(
        "{\"model\": \"%s\", \"path\": \"%s\", \"kept_mb\": %.1f, \"recomputed_mb\": %.1f}\n",
        architecture.c_str(), handwritten ? "handwritten" : "autograd",
        static_cast<double>(kept) / 1e6, static_cast<double>(again) / 1e6);
    ASSERT_GT(again, 0);
    EXPECT_LT(static_cast<double>(again), most * static_cast<double>(kept));
  }
}

TEST(RecomputeMemoryTest, ALongWindowTakesAtLeastThreeTenthsLess) {
  ExpectLess("transformer", 0.7);
}

TEST(RecomputeMemoryTest, LongTextsTakeAtLeastThreeTenthsLess) { ExpectLess("text", 0.7); }

// Most of the remaining memory belongs to the one block that is recomputed, the last one.
TEST(RecomputeMemoryTest, PatchesOfVolumesTakeLess) { ExpectLess("unet3d", 0.85); }

TEST(RecomputeMemoryTest, ImagesTakeAtLeastThreeTenthsLess) { ExpectLess("cnn", 0.7); }

// Weights and running statistics are equal to the bit; a step updates the statistics once.
TEST(RecomputeTest, ConvolutionsTrainTheSame) {
  for (const std::string architecture : {"unet3d", "supervised", "cnn"}) {
    for (const bool loops : {true, false}) {
      std::map<std::string, std::vector<float>> slots[2];
      for (const bool recompute : {false, true}) {
        Case setup = SetupOf(architecture);
        if (architecture != "cnn") setup.options.shape.image = {1, 8, 16, 16};
        setup.data.rows.media = std::make_shared<MadeImages>(setup.options.shape.image);
        setup.options.optimizer.kind =
            OptimizerKind::kSgd;  // the difference of weights shows the gradients' length
        const int64_t batch = setup.batch;
        const auto learner = LearnerOf(std::move(setup), loops, recompute);
        ASSERT_NE(learner, nullptr);
        for (int64_t step = 0; step < 2; ++step) {
          ASSERT_TRUE(learner->Step({step * batch, batch, batch, 0.1, 7}).ok());
        }
        slots[recompute ? 1 : 0] = learner->Save()->slots;
      }
      EXPECT_EQ(slots[0], slots[1]) << architecture << (loops ? ", loops" : ", operators");
    }
  }
}

}  // namespace
}  // namespace traind
