// A fold of trees from its task to its files, in this process.
#include "worker/treefold/tree_trainer.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/base/job_layout.h"
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
  rp::FoldSaved Run(const rp::Train& train, StopCause cause) {
    TaskControl control(train, SystemClock());
    TreeTrainer trainer(train, control, sink_, SystemClock());
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
       {std::string(kModelFile), absl::StrCat("model.", TreeFileSuffix(GetParam().kind)),
        std::string(kOofFile), std::string(kTestFile)}) {
    EXPECT_EQ(access((dir + file).c_str(), F_OK), 0) << file;
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, TreeTrainerTest, testing::ValuesIn(kLibraries),
                         [](const auto& info) { return std::string(info.param.kind); });

}  // namespace
}  // namespace traind
