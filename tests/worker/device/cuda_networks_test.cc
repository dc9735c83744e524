// Each kind of network trains on a GPU as on the CPU, goes on from its saved state, and survives
// that memory runs out. What is named cuda is skipped without a GPU; the same code runs on the CPU
// everywhere, by the paths that the CPU takes.
#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/worker/device/limited_memory.h"
#include "tests/worker/model/made_media.h"
#include "tests/worker/model/model_of.h"
#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"
#include "worker/device/precision.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr int64_t kRows = 128, kOutputs = 3;

constexpr char kBert[] = R"({"model_type":"bert","vocab_size":100,"hidden_size":16,
    "num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":32,"hidden_act":"gelu",
    "max_position_embeddings":64,"type_vocab_size":2,"layer_norm_eps":1e-12,"pad_token_id":0})";

constexpr char kDeberta[] = R"({"model_type":"deberta-v2","vocab_size":100,"hidden_size":16,
    "num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":32,"hidden_act":"gelu",
    "max_position_embeddings":64,"type_vocab_size":0,"layer_norm_eps":1e-7,"relative_attention":true,
    "position_buckets":8,"max_relative_positions":-1,"share_att_key":true,"pos_att_type":"p2c|c2p",
    "norm_rel_ebd":"layer_norm","position_biased_input":false})";

constexpr char kModern[] = R"({"model_type":"modernbert","vocab_size":100,"hidden_size":16,
    "num_hidden_layers":3,"num_attention_heads":2,"intermediate_size":32,"hidden_activation":"gelu",
    "max_position_embeddings":64,"norm_eps":1e-5,"global_attn_every_n_layers":2,"local_attention":8,
    "classifier_pooling":"mean"})";

struct Network {
  const char* name;
  bool by_hand;  // on the CPU: a step uses the buffers of the step before
  const char* model;
  const char* settings;
  int64_t window = 1, batch = 16;
  std::vector<int64_t> image = {};
  int64_t tokens = 0;
  const char* config = nullptr;  // config.json of pretrained weights
};

void PrintTo(const Network& network, std::ostream* out) { *out << network.name; }

const Network kNetworks[] = {
    {"mlp", true, "mlp", R"({"hidden":[32,16],"dropout":0})"},
    {"members", false, "mlp",
     R"({"hidden":[32],"dropout":0,"ensemble_members":4,"numeric_embedding":{"frequencies":8}})"},
    {"lstm", true, "lstm", R"({"hidden":16,"dropout":0})", 12},
    {"transformer", true, "transformer", R"({"width":16,"heads":2,"feedforward":32,"dropout":0})",
     12},
    {"cnn", false, "cnn", R"({"width":8,"blocks":[1,1],"dropout":0})", 1, 8, {3, 16, 16}},
    {"vit", false, "cnn", R"({"architecture":"vit_tiny_patch16_224"})", 1, 8, {3, 32, 32}},
    {"convnext", false, "cnn", R"({"architecture":"convnext_atto"})", 1, 8, {3, 32, 32}},
    {"unet3d", false, "unet3d", R"({"levels":2,"base":4})", 1, 2, {1, 8, 16, 16}},
    {"instance",
     false,
     "unet3d",
     R"({"levels":3,"base":4,"norm":"instance",)"
     R"("deep_supervision":true,"mirror":["depth","width"]})",
     1,
     2,
     {1, 8, 16, 16}},
    {"disentangled",
     true,
     "text",
     R"({"width":16,"heads":2,"feedforward":32,"dropout":0})",
     1,
     8,
     {},
     24},
    {"plain",
     true,
     "text",
     R"({"width":16,"heads":2,"feedforward":32,"dropout":0,"attention":"plain"})",
     1,
     8,
     {},
     24},
    {"bert", false, "text", R"({"architecture":"bert","dropout":0})", 1, 8, {}, 24, kBert},
    {"deberta",
     false,
     "text",
     R"({"architecture":"deberta_v3","dropout":0})",
     1,
     8,
     {},
     24,
     kDeberta},
    {"modernbert",
     false,
     "text",
     R"({"architecture":"modernbert","dropout":0})",
     1,
     8,
     {},
     24,
     kModern},
};

class NetworksTest : public testing::TestWithParam<std::tuple<bool, Network>> {
 protected:
  void SetUp() override {
    SetTorchThreads(1);  // these networks are too small for more
    if (!OnGpu()) return;
    // For cuBLAS, which reads it when its first handle is made.
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
    const auto cuda = LoadCuda();
    if (!cuda.ok()) GTEST_SKIP() << cuda.status().ToString();
    cuda_ = *cuda;
  }
  void TearDown() override { at::globalContext().setDeterministicAlgorithms(false, false); }

  bool OnGpu() const { return std::get<0>(GetParam()); }
  const Network& network() const { return std::get<1>(GetParam()); }

  // autograd: on the CPU, operator by operator, which is what the others are held against.
  std::unique_ptr<Learner> NewLearner(bool autograd = false,
                                      Precision precision = Precision::kFp32) const {
    LearnerOptions options;
    options.model = ModelOf(network().model, network().settings);
    if (network().config != nullptr) {
      options.model.pretrained.emplace().config = network().config;
    }
    options.shape.numeric = network().image.size() == 4 ? 0 : 5;
    options.shape.outputs = kOutputs;
    options.shape.window = network().window;
    options.shape.image = network().image;
    if (network().tokens > 0) options.shape.vocabulary = 100 + (network().config != nullptr);
    options.shape.max_tokens = network().tokens;
    if (network().image.size() == 4) options.objective.loss = LossKind::kDiceCe;
    options.optimizer.kind =
        OptimizerKind::kSgd;  // Adam makes rounding errors as large as gradients
    options.precision = precision;
    options.paths.cuda_graph = recorded_;
    options.mixup = mixup_;
    options.seed = 3;
    options.cuda = autograd ? nullptr : cuda_;
    if (!autograd) options.rows_on_host = rows_on_host_;
    if (autograd) {
      options.paths.handwritten_backward = false;
      options.paths.handwritten_forward = false;
    }
    LearnerData data;
    data.rows.rows = kRows;
    if (network().tokens > 0) {
      data.rows.media = std::make_shared<MadeTexts>(static_cast<int32_t>(network().tokens));
    } else if (!network().image.empty()) {
      data.rows.media = std::make_shared<MadeImages>(network().image);
    }
    for (int64_t i = 0; i < kRows * options.shape.numeric; ++i) {
      data.rows.numeric.push_back(std::sin(static_cast<float>(i)));
    }
    for (int64_t i = 0; i < kRows; ++i) {
      data.classes.push_back(static_cast<int32_t>(i * 7 % kOutputs));
    }
    data.values.assign(kRows * kOutputs, 0.5f);
    auto learner = Learner::Create(options, std::move(data));
    EXPECT_TRUE(learner.ok()) << learner.status();
    if (!learner.ok()) return nullptr;
    std::vector<int32_t> order(kRows - 16);
    std::iota(order.rbegin(), order.rend(), 16);
    const absl::Status ordered = (*learner)->SetOrder(order);
    EXPECT_TRUE(ordered.ok()) << ordered;
    return *std::move(learner);
  }

  absl::Status Step(Learner& learner, int64_t step) const {
    const int64_t batch = network().batch, batches = (kRows - 16) / batch;
    return learner.Step({step % batches * batch, batch, batch, 0.01, static_cast<uint64_t>(step)});
  }

  const CudaApi* cuda_ = nullptr;
  bool rows_on_host_ = false, recorded_ = false;
  double mixup_ = 0;
};

// The largest difference, as a share of the largest number.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  double far = 0, large = 1e-30;
  for (size_t i = 0; i < a.size(); ++i) {
    far = std::max<double>(far, std::fabs(a[i] - b[i]));
    large = std::max<double>(large, std::fabs(b[i]));
  }
  return far / large;
}

TEST_P(NetworksTest, ItTrainsAsAutogradOnTheCpu) {
  const auto wanted = NewLearner(/*autograd=*/true), learner = NewLearner();
  ASSERT_TRUE(wanted && learner);
  for (int64_t step = 0; step < 6; ++step) {
    ASSERT_TRUE(Step(*wanted, step).ok());
    const absl::Status stepped = Step(*learner, step);
    ASSERT_TRUE(stepped.ok()) << stepped;
    const auto a = wanted->ConsumeLoss(), b = learner->ConsumeLoss();
    EXPECT_NEAR(b->mean(), a->mean(), 1e-3 * a->mean()) << "step " << step;
    EXPECT_NEAR(b->gradient_norm, a->gradient_norm, 1e-2 * a->gradient_norm) << "step " << step;
  }
  const auto a = wanted->Save(), b = learner->Save();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_LT(Distance(b->slots.at(kWeightsSlot), a->slots.at(kWeightsSlot)), 1e-3);
  if (network().image.size() == 4) return;  // volumes are predicted from files
  std::vector<int32_t> rows(32);
  std::iota(rows.begin(), rows.end(), 40);
  std::vector<float> outputs(rows.size() * kOutputs), others(outputs.size());
  ASSERT_TRUE(wanted->Predict(Weights::kLast, rows, absl::MakeSpan(outputs)).ok());
  ASSERT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(others)).ok());
  EXPECT_LT(Distance(others, outputs), 1e-3);
}

// Libraries divide their work among three otherwise than among one, two or four.
TEST_P(NetworksTest, ThreeThreadsTrainAsOne) {
  if (OnGpu()) return;
  const auto one = NewLearner(), three = NewLearner();
  ASSERT_TRUE(one && three);
  for (int64_t step = 0; step < 6; ++step) {
    ASSERT_TRUE(Step(*one, step).ok());
    SetTorchThreads(3);
    ASSERT_TRUE(Step(*three, step).ok());
    SetTorchThreads(1);
    const double loss = one->ConsumeLoss()->mean();
    EXPECT_NEAR(three->ConsumeLoss()->mean(), loss, 1e-4 * loss) << "step " << step;
  }
}

TEST_P(NetworksTest, RowsInTheHostsMemoryAreTheSame) {
  const auto on_device = NewLearner();
  rows_on_host_ = true;
  const auto on_host = NewLearner();
  ASSERT_TRUE(on_device && on_host);
  EXPECT_TRUE(on_host->rows_on_host());
  for (int64_t step = 0; step < 6; ++step) {
    ASSERT_TRUE(Step(*on_device, step).ok());
    const absl::Status stepped = Step(*on_host, step);
    ASSERT_TRUE(stepped.ok()) << stepped;
    const double loss = on_device->ConsumeLoss()->mean();
    EXPECT_NEAR(on_host->ConsumeLoss()->mean(), loss, 1e-4 * loss) << "step " << step;
  }
  const auto a = on_device->Save(), b = on_host->Save();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_LT(Distance(b->slots.at(kWeightsSlot), a->slots.at(kWeightsSlot)), 1e-4);
}

// The first steps, whose kernels are being chosen, are not recorded; texts have no fixed shape.
TEST_P(NetworksTest, RecordedStepsAreTheSame) {
  constexpr int64_t kSteps = 10, kBefore = 3;
  const auto wanted = NewLearner();
  recorded_ = true;
  const auto recorded = NewLearner();
  ASSERT_TRUE(wanted && recorded);
  for (int64_t step = 0; step < kSteps; ++step) {
    ASSERT_TRUE(Step(*wanted, step).ok());
    const absl::Status stepped = Step(*recorded, step);
    ASSERT_TRUE(stepped.ok()) << stepped;
    const double loss = wanted->ConsumeLoss()->mean();
    EXPECT_NEAR(recorded->ConsumeLoss()->mean(), loss, 1e-3 * loss) << "step " << step;
  }
  const bool may = OnGpu() && network().tokens == 0;
  EXPECT_EQ(recorded->graph_launches(), may ? kSteps - kBefore : 0);
  EXPECT_EQ(recorded->steps_before_pace(), may ? kBefore + 1 : 1);
  const auto a = wanted->Save(), b = recorded->Save();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_LT(Distance(b->slots.at(kWeightsSlot), a->slots.at(kWeightsSlot)), 1e-3);
}

TEST_P(NetworksTest, StepsThatMixRowsAreNotRecorded) {
  if (network().image.size() == 4 || network().tokens > 0) return;  // they are never mixed
  recorded_ = true;
  mixup_ = 0.4;
  const auto learner = NewLearner();
  ASSERT_TRUE(learner);
  for (int64_t step = 0; step < 6; ++step) ASSERT_TRUE(Step(*learner, step).ok());
  EXPECT_EQ(learner->graph_launches(), 0);
}

TEST_P(NetworksTest, HalfPrecisionStaysNear) {
  const auto wanted = NewLearner(/*autograd=*/true), learner = NewLearner(false, Precision::kBf16);
  ASSERT_TRUE(wanted && learner);
  for (int64_t step = 0; step < 6; ++step) {
    ASSERT_TRUE(Step(*wanted, step).ok());
    const absl::Status stepped = Step(*learner, step);
    ASSERT_TRUE(stepped.ok()) << stepped;
    const double loss = wanted->ConsumeLoss()->mean();
    EXPECT_NEAR(learner->ConsumeLoss()->mean(), loss, 0.03 * loss) << "step " << step;
  }
}

TEST_P(NetworksTest, AnswersInHalfPrecisionStayNear) {
  if (network().image.size() == 4) return;  // volumes are predicted from files
  const auto learner = NewLearner();
  ASSERT_TRUE(learner);
  ASSERT_TRUE(Step(*learner, 0).ok());
  std::vector<int32_t> rows(32);
  std::iota(rows.begin(), rows.end(), 40);
  std::vector<float> full(rows.size() * kOutputs), half(full.size());
  ASSERT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(full)).ok());
  learner->AnswerIn(Precision::kBf16);
  ASSERT_TRUE(learner->Predict(Weights::kLast, rows, absl::MakeSpan(half)).ok());
  EXPECT_LT(Distance(half, full), 0.05);
  // Where this core does not multiply bf16, passes by hand answer in float32.
  if (learner->PredictsByHand() && !CpuMultipliesBf16()) {
    EXPECT_EQ(half, full);
  } else {
    EXPECT_NE(half, full);
  }
}

TEST_P(NetworksTest, ItGoesOnFromItsSavedState) {
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  const auto first = NewLearner(), second = NewLearner();
  ASSERT_TRUE(first && second);
  for (int64_t step = 0; step < 3; ++step) ASSERT_TRUE(Step(*first, step).ok());
  auto saved = first->Save();
  ASSERT_TRUE(saved.ok());
  ASSERT_TRUE(second->Load(*saved).ok());
  for (int64_t step = 3; step < 6; ++step) {
    ASSERT_TRUE(Step(*first, step).ok());
    ASSERT_TRUE(Step(*second, step).ok());
  }
  const auto a = first->Save(), b = second->Save();
  ASSERT_TRUE(a.ok() && b.ok());
  if (!OnGpu()) {
    EXPECT_EQ(b->slots, a->slots);
  } else {
    // Some operators of convolutions and embeddings have no order of additions that is always the
    // same.
    EXPECT_LT(Distance(b->slots.at(kWeightsSlot), a->slots.at(kWeightsSlot)), 1e-5);
  }
}

// Without a body apart from its head there is nothing to freeze.
TEST_P(NetworksTest, AFrozenBodyIsTrainedFromItsThawOn) {
  const auto wanted = NewLearner(/*autograd=*/true), learner = NewLearner();
  ASSERT_TRUE(wanted && learner);
  if (!learner->Freeze(true).ok()) return;
  ASSERT_TRUE(wanted->Freeze(true).ok());
  std::vector<int32_t> order(kRows - 16);
  std::iota(order.rbegin(), order.rend(), 16);
  for (int64_t step = 0; step < 6; ++step) {
    for (Learner* const each : {wanted.get(), learner.get()}) {
      ASSERT_TRUE(each->Freeze(step < 4).ok());
      if (step % 4 == 0) {
        ASSERT_TRUE(each->SetOrder(order).ok());
      }
      const absl::Status stepped = Step(*each, step % 2);
      ASSERT_TRUE(stepped.ok()) << stepped;
    }
    const double loss = wanted->ConsumeLoss()->mean();
    EXPECT_NEAR(learner->ConsumeLoss()->mean(), loss, 1e-3 * loss) << "step " << step;
  }
  const auto a = wanted->Save(), b = learner->Save();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(b->body_steps, 2);
  EXPECT_LT(Distance(b->slots.at(kWeightsSlot), a->slots.at(kWeightsSlot)), 1e-3);
}

// Takes all of the GPU's memory.
std::vector<at::Tensor> FillGpu() {
  std::vector<at::Tensor> blocks;
  for (int64_t bytes = int64_t{1} << 30; bytes >= 512; bytes /= 2) {
    try {
      while (true) blocks.push_back(at::empty({bytes}, at::device(at::kCUDA).dtype(at::kByte)));
    } catch (const c10::OutOfMemoryError&) {
    }
  }
  return blocks;
}

TEST_P(NetworksTest, AStepThatDoesNotFitLeavesItAsItWas) {
  const auto learner = NewLearner();
  ASSERT_NE(learner, nullptr);
  ASSERT_TRUE(Step(*learner, 0).ok());
  const auto before = learner->Save();
  ASSERT_TRUE(before.ok());
  absl::Status failed;
  if (OnGpu()) {
    cuda_->EmptyCache();
    const std::vector<at::Tensor> filled = FillGpu();
    failed = Step(*learner, 1);
  } else {
    const LimitedMemory limit(1000);
    failed = Step(*learner, 1);
  }
  if (OnGpu() || !network().by_hand) {
    EXPECT_EQ(FaultOf(failed), Fault::kOutOfMemory) << failed;
    ASSERT_TRUE(learner->AbandonStep().ok());
    if (cuda_ != nullptr) cuda_->EmptyCache();
    EXPECT_EQ(learner->Save()->slots.at(kWeightsSlot), before->slots.at(kWeightsSlot));
  }
  const absl::Status again = Step(*learner, 1);
  EXPECT_TRUE(again.ok()) << again;
}

std::string NameOf(const testing::TestParamInfo<std::tuple<bool, Network>>& info) {
  return std::string(std::get<0>(info.param) ? "cuda_" : "cpu_") + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Devices, NetworksTest,
                         testing::Combine(testing::Bool(), testing::ValuesIn(kNetworks)), NameOf);

}  // namespace
}  // namespace traind
