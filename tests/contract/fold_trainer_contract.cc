#include "tests/contract/fold_trainer_contract.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <vector>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/data/table/npy.h"
#include "tests/worker/fixture/fold_fixture.h"

namespace traind {
namespace {

namespace rp = rank_protocol;

constexpr int64_t kValidationRows = 200, kTestRows = 90, kClasses = 3;  // of the fixture

// The place of a message in the order that the contract draws; -1: it may come at any time.
int StageOf(const rp::FromProcess& message) {
  if (std::holds_alternative<rp::Ready>(message)) return 0;
  if (std::holds_alternative<rp::Started>(message)) return 1;
  if (const auto* saved = std::get_if<rp::FoldSaved>(&message)) return saved->last ? 3 : 2;
  if (std::holds_alternative<rp::Finished>(message)) return 4;
  const bool any = std::holds_alternative<rp::Decision>(message) ||
                   std::holds_alternative<rp::LogText>(message) ||
                   // The last checkpoint is written beside the answers.
                   std::holds_alternative<rp::CheckpointSaved>(message);
  return any ? -1 : 2;
}

}  // namespace

void FoldTrainerContractTest::SetUp() {
  state_ = NewStateDir();
  table_ = WriteState(state_, MakeRows({}), MakeFolds({}));
}

rp::Train FoldTrainerContractTest::Task(int64_t attempt, int epochs) const {
  rp::Train train;
  train.attempt = attempt;
  train.job = "job";
  train.state_dir = state_;
  const bool endless = epochs == kForever && !GetParam().endless_json.empty();
  train.spec_json = endless ? GetParam().endless_json : GetParam().spec_json;
  train.table = table_;
  train.fold = 0;
  train.epochs = epochs;
  train.precision = "fp32";
  return train;
}

rp::CheckpointSaved FoldTrainerContractTest::KilledInTraining(int epochs) {
  TaskProgram program(GetParam().path);
  program.Say(Task(1, epochs));
  const auto saved = program.Await<rp::CheckpointSaved>();
  program.Signal(SIGKILL);
  EXPECT_TRUE(program.AwaitExit().has_value());
  return saved.value_or(rp::CheckpointSaved());
}

const rp::FoldSaved* FoldTrainerContractTest::LastFold(const TaskProgram& program) {
  const rp::FoldSaved* last = nullptr;
  for (const auto& message : program.heard) {
    const auto* saved = std::get_if<rp::FoldSaved>(&message);
    if (saved == nullptr) continue;
    EXPECT_TRUE(last == nullptr || !last->last) << "answers after the last ones";
    last = saved;
  }
  return last;
}

void FoldTrainerContractTest::ExpectFiles(const rp::FoldSaved& saved) const {
  const std::string job = absl::StrCat(state_, "/", JobDir("job"), "/");
  const auto expect = [&](const std::string& path, const std::string& sha256, int64_t rows) {
    const auto digest = DigestFile(job + path);
    ASSERT_TRUE(digest.ok()) << digest.status();
    EXPECT_EQ(digest->sha256, sha256);
    const auto values = ReadNpyFloat(job + path);
    ASSERT_TRUE(values.ok()) << values.status();
    EXPECT_EQ(values->shape, (std::vector<int64_t>{rows, kClasses}));
    for (size_t i = 0; i + 2 < values->values.size(); i += 3) {
      const float* p = &values->values[i];
      ASSERT_NEAR(p[0] + p[1] + p[2], 1, 1e-4) << "row " << i / 3 << " of " << path;
    }
  };
  expect(saved.oof, saved.oof_sha256, kValidationRows);
  expect(saved.test, saved.test_sha256, kTestRows);
}

TEST_P(FoldTrainerContractTest, MessagesComeInOrderAndTheFoldAnswersForItsRows) {
  TaskProgram program(GetParam().path);
  program.Say(Task(5, 3));
  ASSERT_TRUE(program.Await<rp::Finished>().has_value());
  int stage = -1, epochs = 0;
  for (const auto& message : program.heard) {
    const int next = StageOf(message);
    if (next < 0) continue;
    EXPECT_GE(next, stage) << rp::Encode(message);
    stage = next;
    if (const auto* epoch = std::get_if<rp::Epoch>(&message)) {
      EXPECT_EQ(epoch->epoch, ++epochs);
      EXPECT_EQ(epoch->attempt, 5);
    }
    if (std::holds_alternative<rp::Probe>(message)) {
      EXPECT_EQ(epochs, 0);
    }
  }
  EXPECT_EQ(epochs, 3);
  EXPECT_EQ(program.Count<rp::Started>(), 1);
  EXPECT_GE(program.Count<rp::CheckpointSaved>(), 1);
  const rp::FoldSaved* saved = LastFold(program);
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->last);
  EXPECT_TRUE(saved->complete);
  EXPECT_EQ(saved->stopped_by, StopCause::kEpochs);
  EXPECT_EQ(saved->epochs_done, 3);
  ExpectFiles(*saved);
}

TEST_P(FoldTrainerContractTest, AWarmProcessTakesTheNextTask) {
  TaskProgram program(GetParam().path);
  const auto ready = program.Await<rp::Ready>();
  ASSERT_TRUE(ready.has_value());
  EXPECT_EQ(ready->pid, program.pid());
  EXPECT_FALSE(ready->engine.empty());
  EXPECT_FALSE(ready->device.empty());
  for (int64_t attempt : {1, 2}) {
    program.Say(Task(attempt, 1));
    ASSERT_TRUE(program.Await<rp::Finished>().has_value());
    ASSERT_TRUE(program.Await<rp::Ready>().has_value());
  }
  program.Say(rp::Exit{});
  EXPECT_EQ(program.AwaitExit(), 0);
}

TEST_P(FoldTrainerContractTest, AProbeTellsWhatAStepTakes) {
  TaskProgram program(GetParam().path);
  program.Say(Task(1, kForever));
  const auto probe = program.Await<rp::Probe>();
  ASSERT_TRUE(probe.has_value());
  EXPECT_GT(probe->step_s, 0);
  EXPECT_GE(probe->step_p90_s, probe->step_s);
  EXPECT_GT(probe->timed_steps, 0);
}

TEST_P(FoldTrainerContractTest, AReplanEndsARunThatWouldNotEnd) {
  TaskProgram program(GetParam().path);
  program.Say(Task(1, kForever));
  ASSERT_TRUE(program.Await<rp::Epoch>().has_value());
  program.Say(rp::Replan{1, 1, -1});  // behind us already
  ASSERT_TRUE(program.Await<rp::Finished>().has_value());
  const rp::FoldSaved* saved = LastFold(program);
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->last);
  EXPECT_TRUE(saved->complete);
}

TEST_P(FoldTrainerContractTest, AReplanGivesMoreEpochsToARunningFold) {
  // On a busy machine a fold may end before it is told of more: the next one gets more epochs.
  int many = GetParam().many_epochs, epochs = 0;
  for (int i = 0; i < 4 && epochs != many + 2; ++i) {
    if (i > 0) many *= 4;
    TaskProgram program(GetParam().path);
    program.Say(Task(1, many));
    ASSERT_TRUE(program.Await<rp::Started>().has_value());
    program.Say(rp::Replan{1, many + 2, -1});
    ASSERT_TRUE(program.Await<rp::Finished>().has_value());
    epochs = program.Count<rp::Epoch>();
  }
  EXPECT_EQ(epochs, many + 2);
}

TEST_P(FoldTrainerContractTest, AtItsStopTimeItPredictsWithWhatItHas) {
  TaskProgram program(GetParam().path);
  rp::Train train = Task(1, kForever);
  train.stop_ms = 300;
  program.Say(train);
  ASSERT_TRUE(program.Await<rp::Finished>().has_value());
  const rp::FoldSaved* saved = LastFold(program);
  ASSERT_NE(saved, nullptr);
  EXPECT_EQ(saved->stopped_by, StopCause::kTime);
  EXPECT_FALSE(saved->complete);
  ExpectFiles(*saved);
}

TEST_P(FoldTrainerContractTest, ASoftStopSavesACheckpointAndPredicts) {
  TaskProgram program(GetParam().path);
  program.Say(Task(1, kForever));
  ASSERT_TRUE(program.Await<rp::Epoch>().has_value());
  program.Say(rp::Stop{1, true, StopReason::kUserFinished});
  ASSERT_TRUE(program.Await<rp::Finished>().has_value());
  EXPECT_GE(program.Count<rp::CheckpointSaved>(), 1);
  const rp::FoldSaved* saved = LastFold(program);
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->last);
  EXPECT_FALSE(saved->complete);
  EXPECT_EQ(saved->stopped_by, StopCause::kUser);
  ExpectFiles(*saved);
}

TEST_P(FoldTrainerContractTest, AHardStopSavesACheckpointAndPredictsNothing) {
  TaskProgram program(GetParam().path);
  program.Say(Task(1, kForever));
  ASSERT_TRUE(program.Await<rp::Probe>().has_value());
  program.Say(rp::Stop{1, false});
  ASSERT_TRUE(program.Await<rp::Finished>().has_value());
  EXPECT_GE(program.Count<rp::CheckpointSaved>(), 1);
  const rp::FoldSaved* saved = LastFold(program);
  EXPECT_TRUE(saved == nullptr || !saved->last);
  EXPECT_TRUE(program.Await<rp::Ready>().has_value());
}

TEST_P(FoldTrainerContractTest, OrdersForAnotherAttemptAreNotObeyed) {
  TaskProgram program(GetParam().path);
  program.Say(Task(2, 3));
  program.Say(rp::Stop{1, false});
  ASSERT_TRUE(program.Await<rp::Finished>().has_value());
  EXPECT_EQ(program.Count<rp::Epoch>(), 3);
}

TEST_P(FoldTrainerContractTest, AKilledFoldGoesOnFromItsCheckpoint) {
  const rp::CheckpointSaved checkpoint = KilledInTraining(kForever);
  ASSERT_GT(checkpoint.step, 0);
  TaskProgram program(GetParam().path);
  rp::Train train = Task(2, kForever);
  train.resume = checkpoint.manifest;
  train.stop_ms = 0;
  program.Say(train);
  const auto started = program.Await<rp::Started>();
  ASSERT_TRUE(started.has_value());
  EXPECT_EQ(started->first_step, checkpoint.step);
  ASSERT_TRUE(program.Await<rp::Finished>().has_value());
  const rp::FoldSaved* saved = LastFold(program);
  ASSERT_NE(saved, nullptr);
  EXPECT_EQ(saved->stopped_by, StopCause::kTime);
  EXPECT_GE(saved->epochs_done, checkpoint.epoch);
}

TEST_P(FoldTrainerContractTest, AResumedFoldAnswersAsOneThatWasNotInterrupted) {
  constexpr int kEpochs = 60;
  TaskProgram whole(GetParam().path);
  whole.Say(Task(7, kEpochs));
  ASSERT_TRUE(whole.Await<rp::Finished>().has_value());
  const rp::CheckpointSaved checkpoint = KilledInTraining(kEpochs);
  ASSERT_GT(checkpoint.step, 0);

  TaskProgram resumed(GetParam().path);
  rp::Train train = Task(2, kEpochs);
  train.resume = checkpoint.manifest;
  resumed.Say(train);
  ASSERT_TRUE(resumed.Await<rp::Finished>().has_value());
  EXPECT_LT(resumed.Count<rp::Epoch>(), kEpochs) << "it began anew";
  ASSERT_NE(LastFold(whole), nullptr);
  ASSERT_NE(LastFold(resumed), nullptr);
  EXPECT_EQ(LastFold(resumed)->oof_sha256, LastFold(whole)->oof_sha256);
  EXPECT_EQ(LastFold(resumed)->test_sha256, LastFold(whole)->test_sha256);
}

TEST_P(FoldTrainerContractTest, ADamagedCheckpointIsWarnedOfAndTheFoldStartsAnew) {
  ASSERT_TRUE(WriteFileDurably(absl::StrCat(state_, "/damaged.json"), "{\"half").ok());
  TaskProgram program(GetParam().path);
  rp::Train train = Task(1, 1);
  train.resume = "damaged.json";
  program.Say(train);
  ASSERT_TRUE(program.Await<rp::Finished>().has_value());
  bool warned = false;
  for (const auto& message : program.heard) {
    const auto* log = std::get_if<rp::LogText>(&message);
    warned |= log != nullptr && log->level == "warning";
    if (const auto* started = std::get_if<rp::Started>(&message)) {
      EXPECT_EQ(started->first_step, 0);
    }
  }
  EXPECT_TRUE(warned);
}

TEST_P(FoldTrainerContractTest, AFailedTaskNamesItsReasonAndTheProcessGoesOn) {
  TaskProgram program(GetParam().path);
  rp::Train train = Task(1, 1);
  train.table = "cache/none.table";
  program.Say(train);
  ASSERT_TRUE(program.Await<rp::Ready>().has_value());
  const auto failed = program.Await<rp::Failed>();
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->attempt, 1);
  EXPECT_TRUE(absl::StrContains(failed->message, "none.table")) << failed->message;
  program.Say(Task(2, 1));
  EXPECT_TRUE(program.Await<rp::Finished>().has_value());
}

TEST_P(FoldTrainerContractTest, LinesThatAreNoMessageAreToldAndPassedOver) {
  TaskProgram program(GetParam().path);
  program.SayLine("{\"type\":\"dance\"}");
  program.SayLine("]");
  program.Say(Task(1, 1));
  ASSERT_TRUE(program.Await<rp::Finished>().has_value());
  EXPECT_GE(program.Count<rp::LogText>(), 2);
}

TEST_P(FoldTrainerContractTest, TheEndOfInputEndsItWhileItTrains) {
  TaskProgram program(GetParam().path);
  program.Say(Task(1, kForever));
  ASSERT_TRUE(program.Await<rp::Epoch>().has_value());
  program.CloseInput();
  EXPECT_TRUE(program.AwaitExit().has_value());
}

TEST_P(FoldTrainerContractTest, TheEndOfInputEndsItWhileItIsIdle) {
  TaskProgram program(GetParam().path);
  ASSERT_TRUE(program.Await<rp::Ready>().has_value());
  program.CloseInput();
  EXPECT_EQ(program.AwaitExit(), 0);
}

TEST_P(FoldTrainerContractTest, RowsForModelsThatAreNotServedAreRefusedAtOnce) {
  TaskProgram program(GetParam().path);
  ASSERT_TRUE(program.Await<rp::Ready>().has_value());
  rp::Rows rows;
  rows.attempt = 9;
  rows.request = 4;
  program.Say(rows);
  const auto answer = program.Await<rp::Answered>();
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->request, 4u);
  EXPECT_FALSE(answer->code.empty());
}

}  // namespace traind
