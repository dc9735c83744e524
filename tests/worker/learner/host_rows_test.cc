// Rows that stay in the host's memory are the same rows: for tables, windows of series and
// targets of both kinds.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/model/model_of.h"
#include "worker/learner/learner.h"
#include "worker/learner/resident_rows.h"

namespace traind {
namespace {

constexpr int64_t kRows = 300, kBatch = 64, kSteps = 4;

struct Case {
  std::string network, settings;
  int64_t window = 1, horizon = 0;
  bool classes = true;
};

LearnerOptions OptionsOf(const Case& of) {
  LearnerOptions options;
  options.model = ModelOf(of.network, of.settings);
  options.shape.numeric = 5;
  options.shape.cardinalities = {7, 3};
  options.shape.window = of.window;
  options.shape.outputs = of.classes ? 3 : 2;
  options.horizon = of.horizon;
  options.objective.loss = of.classes ? LossKind::kCrossEntropy : LossKind::kMse;
  options.paths.handwritten_backward = options.paths.handwritten_forward = false;
  return options;
}

LearnerData DataOf(const Case& of) {
  LearnerData data;
  data.rows.rows = kRows;
  for (int i = 0; i < kRows * 5; ++i) {
    data.rows.numeric.push_back(std::sin(static_cast<float>(i * i)));
  }
  for (int i = 0; i < kRows; ++i) {
    data.rows.codes.push_back(i % 7);
    data.rows.codes.push_back(i * i % 3);
    if (of.classes) {
      data.classes.push_back(i * 5 % 3);
    } else {
      data.values.push_back(std::cos(static_cast<float>(i)));
      data.values.push_back(static_cast<float>(i));
    }
  }
  return data;
}

struct Outcome {
  std::vector<float> weights, answers;
  double loss = 0;
};

// Trains a few steps on rows in a jumbled order, and predicts some.
Outcome Train(const Case& of, bool on_host) {
  LearnerOptions options = OptionsOf(of);
  options.rows_on_host = on_host;
  auto created = Learner::Create(options, DataOf(of));
  EXPECT_TRUE(created.ok()) << created.status();
  Learner& learner = **created;
  EXPECT_EQ(learner.rows_on_host(), on_host);
  const int64_t context = of.window - 1 + of.horizon;
  std::vector<int32_t> order;
  for (int64_t i = 0; i < kBatch * kSteps; ++i) {
    order.push_back(static_cast<int32_t>(context + i * 37 % (kRows - context)));
  }
  EXPECT_TRUE(learner.SetOrder(order).ok());
  for (int64_t step = 0; step < kSteps; ++step) {
    const absl::Status stepped = learner.Step({step * kBatch, kBatch, kBatch, 1e-2, 1});
    EXPECT_TRUE(stepped.ok()) << stepped;
  }
  Outcome outcome;
  outcome.loss = learner.ConsumeLoss()->mean();
  outcome.weights = learner.Save()->slots[kWeightsSlot];
  const auto asked = absl::MakeConstSpan(order).first(100);
  outcome.answers.resize(asked.size() * static_cast<size_t>(options.shape.outputs));
  EXPECT_TRUE(learner.Predict(Weights::kLast, asked, absl::MakeSpan(outcome.answers)).ok());
  return outcome;
}

class HostRowsTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, HostRowsTest,
    testing::Values(Case{"mlp", R"({"hidden":[16],"dropout":0})"},
                    Case{"mlp", R"({"hidden":[16],"dropout":0})", 1, 0, false},
                    Case{"lstm", R"({"hidden":8,"layers":1,"dropout":0})", 6, 2, false},
                    Case{"transformer", R"({"width":8,"heads":2,"layers":1,"dropout":0})", 5}));

TEST_P(HostRowsTest, TrainTheSameWeightsAndAnswerAlike) {
  const Outcome on_device = Train(GetParam(), false), on_host = Train(GetParam(), true);
  EXPECT_EQ(on_device.loss, on_host.loss);
  EXPECT_EQ(on_device.weights, on_host.weights);
  EXPECT_EQ(on_device.answers, on_host.answers);
}

TEST(HostRowsTest, HalfOfTheFreeMemoryIsForTheNetwork) {
  EXPECT_FALSE(StayOnHost(5'000, 10'000));
  EXPECT_TRUE(StayOnHost(5'001, 10'000));
  EXPECT_TRUE(StayOnHost(1, 0));
}

}  // namespace
}  // namespace traind
