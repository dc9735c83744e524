// A network that fails on a single row, as PyTorch's batch norm does, is trained on any number of
// rows.
#include <ATen/ops/full.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

#include "tests/worker/train/trainer_fixture.h"

namespace traind {
namespace {

using ::testing::Each;
using ::testing::Ge;

constexpr char kForward[] = R"(
def forward(self, numeric):
    assert numeric.size(0) > 1 or not self.training
    return torch.matmul(numeric, self.weight)
)";

// 400 training rows, 4 numbers each, 3 classes.
class LoneRowsTest : public TrainerTest {
 protected:
  rp::Train ScriptTask(int batch, const std::string& accumulation) {
    torch::jit::Module module("Linear");
    module.register_parameter("weight", at::full({4, 3}, 0.1), false);
    module.register_attribute("training", c10::BoolType::get(), true);
    module.define(kForward);
    const std::string made = absl::StrCat(state_, "/made.pt");
    module.save(made);
    const std::string bytes = *ReadFile(made);
    const std::string sha256 = Sha256Hex(bytes);
    EXPECT_TRUE(WriteFileDurably(absl::StrCat(state_, "/", ScriptCachePath(sha256)), bytes).ok());
    rp::Train train = Task(1);
    train.epochs = 2;
    train.batch = batch;
    train.spec_json = absl::StrCat(
        R"({"task":{"type":"classification","metric":"accuracy"},"data":{"seed":"7"},)",
        R"("model":{"script":{"file":"x","sha256":")", sha256,
        R"("}},"train":{"epochs":2,"precision":"fp32","accumulation":)", accumulation, "}}");
    return train;
  }

  // The rows of each pass that the training takes, those of its timed first steps included.
  std::vector<int64_t> Passes(const rp::Train& train, RecordingSink& sink) {
    std::vector<int64_t> rows;
    TaskControl control(train, SystemClock());
    const absl::Status status = Run(train, control, sink, [&](const StepInput& input) {
      rows.push_back(input.rows);
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return rows;
  }
};

TEST_F(LoneRowsTest, TheLastBatchOfAnEpochIsLeftOutIfItHasOneRow) {
  RecordingSink sink;
  const auto rows = Passes(ScriptTask(21, "1"), sink);  // 400 = 19 x 21 + 1
  EXPECT_THAT(rows, Each(Ge(2)));
  EXPECT_EQ(sink.All<rp::Started>()[0].steps_per_epoch, 19);
  ASSERT_EQ(sink.All<rp::Epoch>().size(), 2u);
  EXPECT_EQ(sink.All<rp::Epoch>()[1].step, 38);
  EXPECT_DOUBLE_EQ(sink.All<rp::Epoch>()[1].row_share, 1);
}

TEST_F(LoneRowsTest, TheLastPassOfAStepGetsARowFromTheOneBefore) {
  RecordingSink sink;
  const auto rows = Passes(ScriptTask(19, "2"), sink);  // 400 = 10 x 38 + 19 + 1
  EXPECT_THAT(rows, Each(Ge(2)));
  ASSERT_GE(rows.size(), 2u);
  EXPECT_EQ(rows.back(), 2);
  EXPECT_EQ(rows[rows.size() - 2], 18);
}

TEST_F(LoneRowsTest, ALastBatchOfTwoRowsCounts) {
  RecordingSink sink;
  EXPECT_EQ(Passes(ScriptTask(199, "1"), sink).back(), 2);
}

TEST_F(LoneRowsTest, OurOwnNetworksAreTrainedOnEveryRow) {
  RecordingSink sink;
  rp::Train train = Task(1);
  train.batch = 21;
  EXPECT_EQ(Passes(train, sink).back(), 1);
}

}  // namespace
}  // namespace traind
