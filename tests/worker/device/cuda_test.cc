// A GPU must compute the same results as the CPU. Skipped on machines without a GPU.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/worker/model/model_of.h"
#include "worker/device/cuda_api.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr int64_t kRows = 4096, kNumeric = 37, kBatch = 256;

std::unique_ptr<Learner> NewLearner(const CudaApi* cuda, bool classification, Precision precision,
                                    const char* architecture = "mlp", const SpeedPaths& paths = {},
                                    double dropout = 0) {
  LearnerOptions options;
  options.model = ModelOf(architecture);
  if (options.model.mlp.has_value()) options.model.mlp->hidden = {64, 32};
  DropoutOf(options.model) = dropout;
  options.paths = paths;
  options.shape.numeric = kNumeric;
  options.shape.cardinalities = {11, 3};
  options.shape.outputs = classification ? 4 : 1;
  if (!classification) options.objective.loss = LossKind::kMse;
  options.precision = precision;
  options.seed = 3;
  options.cuda = cuda;
  LearnerData data;
  data.rows.rows = kRows;
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t f = 0; f < kNumeric; ++f) {
      data.rows.numeric.push_back(std::sin(static_cast<float>(i * (f + 1))));
    }
    data.rows.codes.push_back(static_cast<int32_t>(i % 11));
    data.rows.codes.push_back(static_cast<int32_t>(i % 3));
    data.classes.push_back(static_cast<int32_t>(i % 4));
    data.values.push_back(std::cos(static_cast<float>(i)));
  }
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status().ToString();
  // Every other row, backwards, so that the gather is not the identity.
  std::vector<int32_t> order;
  for (int64_t i = kRows - 1; i >= 0; i -= 2) order.push_back(static_cast<int32_t>(i));
  EXPECT_TRUE((*learner)->SetOrder(order).ok());
  return *std::move(learner);
}

void ExpectSameLosses(bool classification, Precision precision, double tolerance) {
  const auto cuda = LoadCuda();
  if (!cuda.ok()) GTEST_SKIP() << cuda.status().ToString();
  const auto host = NewLearner(nullptr, classification, Precision::kFp32);
  const auto device = NewLearner(*cuda, classification, precision);
  for (int64_t step = 0; step < 8; ++step) {
    const StepInput input{step * kBatch, kBatch, kBatch, 1e-3, 1};
    ASSERT_TRUE(host->Step(input).ok());
    const absl::Status stepped = device->Step(input);
    ASSERT_TRUE(stepped.ok()) << stepped.ToString();
    const double wanted = host->ConsumeLoss()->mean();
    EXPECT_NEAR(device->ConsumeLoss()->mean(), wanted, tolerance * wanted) << "step " << step;
  }
  std::vector<int32_t> rows(100);
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> a(rows.size() * (classification ? 4 : 1)), b(a.size());
  ASSERT_TRUE(host->Predict(Weights::kLast, rows, absl::MakeSpan(a)).ok());
  ASSERT_TRUE(device->Predict(Weights::kLast, rows, absl::MakeSpan(b)).ok());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 10 * tolerance) << i;
}

TEST(CudaTest, Float32TrainsAsOnTheCpu) {
  ExpectSameLosses(true, Precision::kFp32, 1e-4);
  ExpectSameLosses(false, Precision::kFp32, 1e-4);
}

// cuDNN takes TF32 unless it is told not to.
TEST(CudaTest, TensorFloat32IsTakenWhereItIsAskedFor) {
  const auto cuda = LoadCuda();
  if (!cuda.ok()) GTEST_SKIP() << cuda.status().ToString();
  for (const Precision precision : {Precision::kFp32, Precision::kTf32}) {
    NewLearner(*cuda, /*classification=*/true, precision);
    EXPECT_EQ(at::globalContext().allowTF32CuDNN(), precision == Precision::kTf32);
  }
}

TEST(CudaTest, Bf16StaysNear) { ExpectSameLosses(true, Precision::kBf16, 0.02); }

TEST(CudaTest, Fp16WithScalingStaysNear) { ExpectSameLosses(true, Precision::kFp16, 0.02); }

// Two epochs with a schedule, and with batches of another size in between.
TEST(CudaTest, AGraphTrainsAsStepByStep) {
  const auto cuda = LoadCuda();
  if (!cuda.ok()) GTEST_SKIP() << cuda.status().ToString();
  for (const char* architecture : {"mlp", "lstm", "transformer"}) {
    for (const Precision precision : {Precision::kFp32, Precision::kBf16, Precision::kFp16}) {
      SCOPED_TRACE(std::string(architecture) + " " + std::string(PrecisionName(precision)));
      std::unique_ptr<Learner> learners[2];
      for (const bool graph : {false, true}) {
        SpeedPaths paths;
        paths.cuda_graph = graph;
        // A graph must draw the same random numbers as the plain path.
        const double dropout = 0.2;
        learners[graph] = NewLearner(*cuda, true, precision, architecture, paths, dropout);
      }
      for (int64_t step = 0; step < 16; ++step) {
        const int64_t rows = step == 7 ? kBatch / 3 : kBatch;
        const StepInput input{step % 8 * kBatch, rows, rows, 1e-3 / static_cast<double>(1 + step),
                              static_cast<uint64_t>(step)};
        for (const auto& learner : learners) {
          const absl::Status stepped = learner->Step(input);
          ASSERT_TRUE(stepped.ok()) << stepped.ToString();
        }
        const auto wanted = learners[0]->ConsumeLoss(), loss = learners[1]->ConsumeLoss();
        const double tolerance = precision == Precision::kFp32 ? 1e-4 : 1e-2;
        EXPECT_NEAR(loss->mean(), wanted->mean(), tolerance * wanted->mean()) << "step " << step;
        EXPECT_EQ(loss->weight, wanted->weight);
        if (precision == Precision::kFp16) continue;  // its first steps overflow
        EXPECT_NEAR(loss->gradient_norm, wanted->gradient_norm,
                    10 * tolerance * wanted->gradient_norm)
            << "step " << step;
      }
      // Else both would have trained operator by operator.
      EXPECT_EQ(learners[0]->graph_launches(), 0);
      EXPECT_EQ(learners[1]->graph_launches(), 12);  // not the first three, and not step 7
    }
  }
}

TEST(CudaTest, EpochsOfFewStepsAreRecorded) {
  const auto cuda = LoadCuda();
  if (!cuda.ok()) GTEST_SKIP() << cuda.status().ToString();
  const auto learner = NewLearner(*cuda, true, Precision::kFp32);
  for (int64_t step = 0; step < 12; ++step) {
    const int64_t rows = step % 4 == 3 ? kBatch / 3 : kBatch;
    ASSERT_TRUE(learner->Step({step * kBatch, rows, rows, 1e-3, 1}).ok());
  }
  EXPECT_EQ(learner->graph_launches(), 6);  // of nine whole steps but the first three
}

TEST(CudaTest, StepsGoOnAfterARecordingThatFails) {
  const auto cuda = LoadCuda();
  if (!cuda.ok()) GTEST_SKIP() << cuda.status().ToString();
  const auto learner = NewLearner(*cuda, true, Precision::kFp32, "mlp", {}, /*dropout=*/0.2);
  const at::Tensor one = at::ones({1}, at::kCUDA);
  for (int time = 0; time < 40; ++time) {  // more often than there are streams
    EXPECT_THROW((*cuda)->Record([&] { one.item<float>(); }), c10::Error);
    ASSERT_TRUE(learner->Step({time % 8 * kBatch, kBatch, kBatch, 1e-3, 1}).ok()) << time;
    ASSERT_TRUE(learner->Synchronize().ok());
  }
  EXPECT_GT(learner->graph_launches(), 0);
}

TEST(CudaTest, WarmUpLoadsTheContext) {
  const auto cuda = LoadCuda();
  if (!cuda.ok()) GTEST_SKIP() << cuda.status().ToString();
  EXPECT_FALSE((*cuda)->DeviceName().empty());
  EXPECT_GE((*cuda)->ComputeCapability(), 50);
  const absl::Status warm = WarmUpTorch(*cuda);
  EXPECT_TRUE(warm.ok()) << warm.ToString();
}

// On any machine the library opens and has the expected entry point.
TEST(CudaLibraryTest, ItLoadsWithoutADriver) {
  void* library = dlopen("worker/device/libtraind_cuda.so", RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, kCudaEntryPoint), nullptr);
}

}  // namespace
}  // namespace traind
