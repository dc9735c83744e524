// A fold of trees from its task to its files, in this process.
#include "worker/treefold/tree_trainer.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/data/table/npy.h"
#include "common/job_rules/task_rules.h"
#include "tests/worker/fixture/fold_fixture.h"
#include "tests/worker/fixture/recording_sink.h"

namespace traind {
namespace {

namespace rp = rank_protocol;

struct Library {
  const char *kind, *rounds, *patience;  // the kind of model and the names of its fields
};
constexpr Library kLibraries[] = {
    {"lightgbm", "num_iterations", "early_stopping_round"},
    {"xgboost", "num_boost_round", "early_stopping_rounds"},
};

// Each look at it takes a tenth of a millisecond.
class SteppingClock final : public Clock {
 public:
  absl::Time WallNow() const override { return absl::UnixEpoch(); }
  absl::Duration MonotonicNow() const override {
    return absl::Microseconds(100 * looks_.fetch_add(1, std::memory_order_relaxed));
  }

 private:
  mutable std::atomic<int64_t> looks_{0};
};

class TreeTrainerTest : public testing::TestWithParam<Library> {
 protected:
  static constexpr int kRoundsPerEpoch = 5;
  static constexpr int kRounds = 100 * kRoundsPerEpoch;

  rp::Train Task(int patience) {
    rp::Train train;
    train.attempt = 3;
    train.job = "job";
    train.state_dir = NewStateDir();
    train.table = WriteState(train.state_dir, MakeRows({}), MakeFolds({}));
    train.spec_json = absl::StrCat(R"({"task":{"metric":"logloss"},"model":{")", GetParam().kind,
                                   R"(":{"learning_rate":0.3,")", GetParam().rounds, "\":", kRounds,
                                   ",\"", GetParam().patience, "\":", patience, "}}}");
    train.fold = 1;
    train.epochs = 100;
    train.checkpoint_every_ms = 60'000;
    return train;
  }

  // Trains the whole fold. Returns its last answers.
  rp::FoldSaved Run(const rp::Train& train, StopCause cause, const Clock& clock = SystemClock()) {
    TaskControl control(train, clock);
    TreeTrainer trainer(train, control, sink_, clock);
    absl::Status status = trainer.Start();
    EXPECT_TRUE(status.ok()) << status;
    const absl::StatusOr<Ending> ending = trainer.TrainUntilStopped();
    EXPECT_TRUE(ending.ok()) << ending.status();
    EXPECT_EQ(ending->cause, cause);
    status = trainer.Finish(*ending);
    EXPECT_TRUE(status.ok()) << status;
    const std::vector<rp::FoldSaved> saved = sink_.All<rp::FoldSaved>();
    EXPECT_FALSE(saved.empty());
    return saved.empty() ? rp::FoldSaved() : saved.back();
  }

  RecordingSink sink_;
};

TEST_P(TreeTrainerTest, AFoldEndsSoManyRoundsAfterItsBestOne) {
  const rp::FoldSaved saved = Run(Task(/*patience=*/7), StopCause::kPatience);
  EXPECT_TRUE(saved.last && saved.complete);
  EXPECT_LT(saved.step, kRounds);
  const double best_round = saved.best_epoch * kRoundsPerEpoch;
  EXPECT_NEAR(static_cast<double>(saved.step), best_round + 7, 1e-6);
}

TEST_P(TreeTrainerTest, WithoutPatienceAllRoundsAreTrained) {
  const rp::FoldSaved saved = Run(Task(/*patience=*/0), StopCause::kEpochs);
  EXPECT_TRUE(saved.last && saved.complete);
  EXPECT_EQ(saved.step, kRounds);
  EXPECT_LT(saved.best_epoch * kRoundsPerEpoch, kRounds) << "the best round is not the last one";
}

TEST_P(TreeTrainerTest, TheLastCheckpointHasAllRoundsAndTheFilesAreThere) {
  const rp::Train train = Task(/*patience=*/7);
  const rp::FoldSaved saved = Run(train, StopCause::kPatience);
  const std::vector<rp::CheckpointSaved> checkpoints = sink_.All<rp::CheckpointSaved>();
  ASSERT_FALSE(checkpoints.empty());
  EXPECT_EQ(checkpoints.back().step, saved.step);
  const std::string dir = absl::StrCat(train.state_dir, "/", AttemptDir("job", train.attempt), "/");
  for (const std::string& file :
       {std::string(kModelFile), absl::StrCat("model.", StateFileSuffix(GetParam().kind)),
        std::string(kOofFile), std::string(kTestFile)}) {
    EXPECT_EQ(access((dir + file).c_str(), F_OK), 0) << file;
  }
}

TEST_P(TreeTrainerTest, TheImportanceOfColumnsIsToldBeforeTheLastAnswers) {
  const SteppingClock clock;
  bool last_saved = false;
  sink_.Listen([&last_saved](const rp::FromProcess& message) {
    const auto* saved = std::get_if<rp::FoldSaved>(&message);
    last_saved |= saved != nullptr && saved->last;
    EXPECT_FALSE(last_saved && std::holds_alternative<rp::Importance>(message));
  });
  Run(Task(/*patience=*/0), StopCause::kEpochs, clock);
  const std::vector<rp::Importance> told = sink_.All<rp::Importance>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].attempt, 3);
  EXPECT_EQ(told[0].columns, std::vector<std::string>({"n0", "n1", "n2", "n3", "c0", "c1"}));
  ASSERT_EQ(told[0].drops.size(), 6u);
  EXPECT_GT(*std::max_element(told[0].drops.begin(), told[0].drops.end()), 0.05);
}

TEST_P(TreeTrainerTest, OtherModelsAndThoseThatAreShortOfTimeTellNoImportance) {
  const SteppingClock clock;
  rp::Train extra = Task(/*patience=*/0);
  extra.seed = 1;
  Run(extra, StopCause::kEpochs, clock);
  rp::Train hurried = Task(/*patience=*/0);
  hurried.stop_ms = 50;
  Run(hurried, StopCause::kTime, clock);
  EXPECT_TRUE(sink_.All<rp::Importance>().empty());
}

// Of amounts whose noise is a factor.
TableRows Amounts(const FixtureOptions& options) {
  TableRows rows = MakeRows(options);
  for (float& value : rows.train_target.numbers) value = std::exp((value - 1000) / 40);
  return rows;
}

TEST_P(TreeTrainerTest, TransformedTargetsAreAnsweredInTheirOwnUnit) {
  FixtureOptions options;
  options.classification = false;
  std::map<std::string, double> scores;
  for (const char* metric : {"mae", "rmse"}) {
    for (const char* transform : {"none", "log", "yeo_johnson"}) {
      rp::Train train = Task(/*patience=*/30);
      train.table = WriteState(train.state_dir, Amounts(options), MakeFolds(options));
      train.spec_json = absl::StrCat(
          R"({"task":{"type":"regression","metric":")", metric, R"("},"model":{")", GetParam().kind,
          R"(":{"learning_rate":0.1,")", GetParam().rounds, R"(":300,")", GetParam().patience,
          R"(":30}},"train":{"target_transform":")", transform, R"("}})");
      RecordingSink sink;
      TaskControl control(train, SystemClock());
      TreeTrainer trainer(train, control, sink, SystemClock());
      ASSERT_TRUE(TrainFold(trainer).ok());
      const rp::FoldSaved saved = sink.All<rp::FoldSaved>().back();
      scores[absl::StrCat(metric, " ", transform)] = saved.score;
      ASSERT_FALSE(sink.All<rp::Epoch>().empty());
      EXPECT_EQ(sink.All<rp::Epoch>().back().best_metric, saved.score);
      const auto test = ReadNpyFloat(
          absl::StrCat(train.state_dir, "/", AttemptDir("job", train.attempt), "/", kTestFile));
      ASSERT_TRUE(test.ok()) << test.status();
      if (std::string(transform) != "log") continue;
      for (const float answer : test->values) EXPECT_GT(answer, 0);
    }
  }
  EXPECT_LT(scores["mae log"], 0.95 * scores["mae none"]);
  EXPECT_LT(scores["mae yeo_johnson"], scores["mae none"]);
  EXPECT_LT(scores["rmse log"], scores["rmse none"]);
}

TEST_P(TreeTrainerTest, ATransformedFoldGoesOnFromItsCheckpointWithTheSameAnswers) {
  FixtureOptions options;
  options.classification = false;
  rp::Train train = Task(/*patience=*/0);
  train.table = WriteState(train.state_dir, Amounts(options), MakeFolds(options));
  train.spec_json =
      absl::StrCat(R"({"task":{"type":"regression","metric":"rmse"},"model":{")", GetParam().kind,
                   R"(":{"learning_rate":0.1,")", GetParam().rounds, R"(":100,")",
                   GetParam().patience, R"(":0}},"train":{"target_transform":"yeo_johnson"}})");
  const auto answers = [&](const rp::FoldSaved& saved) {
    const std::string dir = absl::StrCat(train.state_dir, "/", JobDir("job"), "/");
    return *ReadFile(dir + saved.oof) + *ReadFile(dir + saved.test);
  };
  const rp::FoldSaved whole = Run(train, StopCause::kEpochs);
  train.attempt = 4;
  train.epochs = 40;
  Run(train, StopCause::kEpochs);
  train.attempt = 5;
  train.epochs = 100;
  train.resume = sink_.All<rp::CheckpointSaved>().back().manifest;
  const rp::FoldSaved resumed = Run(train, StopCause::kEpochs);
  EXPECT_EQ(resumed.score, whole.score);
  EXPECT_EQ(answers(resumed), answers(whole));
}

TEST_P(TreeTrainerTest, ATargetWithoutALogarithmIsNamed) {
  FixtureOptions options;
  options.classification = false;
  TableRows rows = Amounts(options);
  rows.train_target.numbers[5] = 0;
  rp::Train train = Task(/*patience=*/0);
  train.table = WriteState(train.state_dir, rows, MakeFolds(options));
  train.spec_json = absl::StrCat(R"({"task":{"type":"regression"},"model":{")", GetParam().kind,
                                 R"(":{}},"train":{"target_transform":"log"}})");
  TaskControl control(train, SystemClock());
  TreeTrainer trainer(train, control, sink_, SystemClock());
  EXPECT_EQ(trainer.Start().message(),
            "row 6, target 'y': 0 has no logarithm, but train.target_transform log takes targets "
            "above 0; yeo_johnson takes all");
}

INSTANTIATE_TEST_SUITE_P(Libraries, TreeTrainerTest, testing::ValuesIn(kLibraries),
                         [](const auto& info) { return std::string(info.param.kind); });

}  // namespace
}  // namespace traind
