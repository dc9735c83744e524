// Samples that lose a part of their window when memory runs out.
#include <cmath>

#include "common/data/table/sample_plan.h"
#include "common/data/table/table_reader.h"
#include "tests/worker/train/trainer_fixture.h"
#include "worker/device/guard.h"

namespace traind {
namespace {

constexpr int64_t kWindow = 8;

class ShortenTest : public TrainerTest {
 protected:
  void SetUp() override {
    std::string train = "t,x,y\n", test = "t,x\n";
    for (int i = 0; i < 300; ++i) {
      absl::StrAppend(&train, i, ",", std::cos(i * 0.3), ",", std::sin(i * 0.2), "\n");
    }
    for (int i = 300; i < 320; ++i) absl::StrAppend(&test, i, ",", std::cos(i * 0.3), "\n");
    TableSource source;
    source.train = {"train.csv", train};
    source.test = {"test.csv", test};
    source.target = "y";
    source.target_kind = TargetKind::kValue;
    source.time = "t";
    source.history = true;
    const auto rows = ReadTable(source);
    ASSERT_TRUE(rows.ok()) << rows.status();
    state_ = NewStateDir();
    // Two forward folds; the first rows have no history.
    std::vector<int16_t> folds(300, -1);
    for (size_t i = 100; i < 300; ++i) folds[i] = static_cast<int16_t>(i / 200);
    table_ = WriteState(state_, *rows, folds);
    SplitSpec split;
    split.kind = SplitKind::kForward;
    split.folds = 2;
    split.shape = {kWindow, 1};
    ASSERT_TRUE(WriteSamplePlan(absl::StrCat(state_, "/", SamplesPath("job")), split).ok());
  }

  rp::Train Forecast(const std::string& model, const std::string& allowed) {
    rp::Train train = Task(1);
    train.epochs = 4;
    train.spec_json = absl::StrCat(
        R"({"task":{"type":"forecasting","metric":"rmse"},"data":{"seed":"7","folds":2},"model":{")",
        model, R"(":{"dropout":0}},"train":{"epochs":4,"patience":0,"shorten_sequences":)", allowed,
        "}}");
    return train;
  }
};

TEST_F(ShortenTest, WhenNothingElseIsLeftWindowsAreHalvedAndTrainingGoesOn) {
  for (const char* model : {"transformer", "lstm"}) {
    SCOPED_TRACE(model);
    rp::Train train = Forecast(model, "true");
    TaskControl control(train, SystemClock());
    RecordingSink tight;
    // All rungs down to two steps less of the ladder's end.
    int64_t seen = 0, failures = 0;
    const absl::Status status = Run(train, control, tight, [&](const StepInput&) -> absl::Status {
      return ++seen > 40 && ++failures <= 6 ? OutOfMemoryError("injected") : absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status.ToString();
    const auto decisions = tight.All<rp::Decision>();
    ASSERT_EQ(decisions.size(), 6u);  // 16 rows to 1 and recomputing, then the window
    EXPECT_EQ(decisions[5].rule, DecisionRule::kMemory);
    EXPECT_EQ(decisions[5].from, "windows of 8 steps");
    EXPECT_EQ(decisions[5].to, "windows of 4 steps");
    const auto saved = tight.All<rp::FoldSaved>().back();
    EXPECT_TRUE(saved.complete);
    EXPECT_LT(saved.score, 0.7);  // the series' deviation: it learns

    // An Attempt that resumes from its checkpoint has windows as short.
    RecordingSink resumed;
    train.attempt = 2;
    train.epochs = 5;
    train.resume = tight.All<rp::CheckpointSaved>().back().manifest;
    ASSERT_TRUE(Run(train, resumed).ok());
    EXPECT_NE(File(resumed.All<rp::CheckpointSaved>().back().manifest).find("\"window\": 4"),
              std::string::npos);
    EXPECT_EQ(resumed.All<rp::Started>()[0].start_epoch, 4);
  }
}

TEST_F(ShortenTest, WhereItIsNotAllowedTheTaskEnds) {
  const rp::Train train = Forecast("lstm", "false");
  TaskControl control(train, SystemClock());
  RecordingSink sink;
  const absl::Status status =
      Run(train, control, sink, [](const StepInput&) { return OutOfMemoryError("injected"); });
  EXPECT_EQ(FaultOf(status), Fault::kOutOfMemory);
}

}  // namespace
}  // namespace traind
