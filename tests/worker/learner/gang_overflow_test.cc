// In fp16 the gradients of one Rank may overflow and those of another not: all take the step, or
// none.
#include <absl/types/span.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/reserved_port.h"
#include "tests/worker/model/golden.h"
#include "tests/worker/model/model_of.h"
#include "worker/device/collective.h"
#include "worker/learner/learner.h"

namespace traind {
namespace {

constexpr int64_t kRows = 9, kInputs = 4, kOutlier = 8;

std::unique_ptr<Learner> Create(Group& group) {
  SetTorchThreads(1);
  LearnerOptions options;
  options.model = ModelOf("mlp", R"({"hidden":[8],"dropout":0})");
  options.shape.numeric = kInputs;
  options.shape.outputs = 2;
  options.objective.loss = LossKind::kCrossEntropy;
  options.precision = Precision::kFp16;
  options.group = &group;
  LearnerData data;
  data.rows.rows = kRows;
  for (int64_t i = 0; i < kRows * kInputs; ++i) {
    // The last row is beyond the numbers of fp16.
    data.rows.numeric.push_back(i / kInputs == kOutlier ? 1e6f : std::sin(static_cast<float>(i)));
  }
  for (int64_t i = 0; i < kRows; ++i) data.classes.push_back(static_cast<int32_t>(i % 2));
  auto learner = Learner::Create(options, std::move(data));
  EXPECT_TRUE(learner.ok()) << learner.status();
  return *std::move(learner);
}

class GangOverflowTest : public testing::TestWithParam<Transport> {};

TEST_P(GangOverflowTest, AStepInWhichOneRankOverflowsIsSkippedByAll) {
  struct Seen {
    Learner::State before, after;
  };
  Seen seen[2];
  const int port = ReservePort();
  const auto rank = [&](int own) {
    GroupOptions join;
    join.port = port;
    join.rank = own;
    join.transport = GetParam();
    const auto group = Group::Join(join);
    ASSERT_TRUE(group.ok()) << group.status();
    const auto learner = Create(**group);
    const auto step = [&](std::vector<int32_t> rows, bool overlap) {
      ASSERT_EQ(learner->SetOrder(rows), absl::OkStatus());
      StepInput input;
      input.rows = static_cast<int64_t>(rows.size());
      input.gang_rows = 2 * input.rows;
      input.learning_rate = 0.01;
      input.overlap = overlap;
      ASSERT_EQ(learner->Step(input), absl::OkStatus());
    };
    for (const bool overlap : {true, false}) {
      for (int i = 0; i < 20; ++i) step({0, 1, 2, 3}, overlap);  // the scale comes down meanwhile
      seen[own].before = *learner->Save();
      const auto last = static_cast<int32_t>(own == 1 ? kOutlier : 4);
      step({0, 1, 2, last}, overlap);
      seen[own].after = *learner->Save();
      EXPECT_EQ(seen[own].before.slots, seen[own].after.slots) << "rank " << own;
      EXPECT_EQ(seen[own].before.optimizer_steps, seen[own].after.optimizer_steps);
      EXPECT_EQ(seen[own].before.loss_scale, 2 * seen[own].after.loss_scale);
      EXPECT_GT(seen[own].before.optimizer_steps, 0);
    }
    step({0, 1, 2, 3}, true);
    EXPECT_EQ(learner->Save()->optimizer_steps, seen[own].after.optimizer_steps + 1);
  };
  std::thread other(rank, 1);
  rank(0);
  other.join();
  EXPECT_EQ(seen[0].after.slots, seen[1].after.slots);
  EXPECT_EQ(seen[0].after.loss_scale, seen[1].after.loss_scale);
}

INSTANTIATE_TEST_SUITE_P(Transports, GangOverflowTest,
                         testing::Values(Transport::kSharedMemory, Transport::kGloo),
                         [](const auto& info) { return std::string(TransportName(info.param)); });

}  // namespace
}  // namespace traind
