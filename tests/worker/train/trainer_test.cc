#include "worker/train/trainer.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "common/base/durable_file.h"
#include "common/data/table/npy.h"
#include "tests/worker/train/trainer_fixture.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

TEST_F(TrainerTest, AFoldTrainsValidatesAndPredicts) {
  RecordingSink sink;
  rp::Train train = Task(1);
  train.spec_json = Spec("\"learning_rate\":0.03");
  const absl::Status status = Run(train, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const auto started = sink.All<rp::Started>();
  ASSERT_EQ(started.size(), 1u);
  EXPECT_EQ(started[0].steps_per_epoch, 25);  // 400 training rows in batches of 16
  EXPECT_EQ(started[0].precision, "fp32");
  EXPECT_EQ(started[0].batch, 16);
  const auto epochs = sink.All<rp::Epoch>();
  ASSERT_EQ(epochs.size(), 3u);
  EXPECT_EQ(epochs[2].epoch, 3);
  EXPECT_EQ(epochs[2].step, 75);
  EXPECT_LT(epochs[2].train_loss, epochs[0].train_loss);
  const auto probes = sink.All<rp::Probe>();
  ASSERT_EQ(probes.size(), 1u);
  EXPECT_GT(probes[0].step_s, 0);
  EXPECT_GE(probes[0].step_p90_s, probes[0].step_s);
  const auto saved = sink.All<rp::FoldSaved>().back();
  EXPECT_TRUE(saved.last);
  EXPECT_TRUE(saved.complete);
  EXPECT_EQ(saved.stopped_by, StopCause::kEpochs);
  EXPECT_EQ(saved.epochs_done, 3);
  EXPECT_EQ(saved.score, epochs[2].best_metric);
  const auto oof = ReadNpyFloat(absl::StrCat(state_, "/", JobDir("job"), "/", saved.oof));
  const auto test = ReadNpyFloat(absl::StrCat(state_, "/", JobDir("job"), "/", saved.test));
  ASSERT_TRUE(oof.ok() && test.ok());
  EXPECT_EQ(oof->shape, (std::vector<int64_t>{200, 3}));
  EXPECT_EQ(test->shape, (std::vector<int64_t>{90, 3}));
  for (size_t i = 0; i < test->values.size(); i += 3) {
    EXPECT_NEAR(test->values[i] + test->values[i + 1] + test->values[i + 2], 1, 1e-5);
  }
  EXPECT_EQ(DigestFile(absl::StrCat(state_, "/", JobDir("job"), "/", saved.oof))->sha256,
            saved.oof_sha256);
  EXPECT_GT(saved.score, 0.6);  // three classes that the features explain
}

// Each look at it takes ten milliseconds.
class SteppingClock final : public Clock {
 public:
  absl::Time WallNow() const override { return absl::UnixEpoch(); }
  absl::Duration MonotonicNow() const override {
    return absl::Milliseconds(10 * looks_.fetch_add(1, std::memory_order_relaxed));
  }

 private:
  mutable std::atomic<int64_t> looks_{0};
};

TEST_F(TrainerTest, ANetworkTellsWhatItsColumnsAreWorthBeforeItsLastAnswers) {
  RecordingSink sink;
  bool last_saved = false;
  sink.Listen([&last_saved](const rp::FromProcess& message) {
    const auto* saved = std::get_if<rp::FoldSaved>(&message);
    last_saved |= saved != nullptr && saved->last;
    EXPECT_FALSE(last_saved && std::holds_alternative<rp::Importance>(message));
  });
  const auto train_fold = [&](const rp::Train& train) {
    const SteppingClock clock;
    TaskControl control(train, clock);
    Trainer trainer(train, control, sink, clock);
    last_saved = false;
    const absl::Status status = TrainFold(trainer);
    EXPECT_TRUE(status.ok()) << status.ToString();
  };
  rp::Train train = Task(1);
  train.spec_json = Spec("\"learning_rate\":0.03");
  train_fold(train);
  const auto told = sink.All<rp::Importance>();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].attempt, 1);
  EXPECT_EQ(told[0].columns, std::vector<std::string>({"n0", "n1", "n2", "n3", "c0", "c1"}));
  ASSERT_EQ(told[0].drops.size(), 6u);
  EXPECT_GT(*std::max_element(told[0].drops.begin(), told[0].drops.end()), 0.02);
  train.attempt = 2;
  train.seed = 1;
  train_fold(train);
  EXPECT_EQ(sink.All<rp::Importance>().size(), 1u) << "further models tell none";
}

TEST_F(TrainerTest, ARegressionAnswersInTheTargetsUnit) {
  options_.classification = false;
  table_ = WriteState(state_, MakeRows(options_), MakeFolds(options_));
  rp::Train train = Task(1);
  train.spec_json = Spec("\"learning_rate\":0.02", 0, R"("type":"regression","metric":"r2")");
  train.epochs = 15;
  RecordingSink sink;
  const absl::Status status = Run(train, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_GT(sink.All<rp::FoldSaved>().back().score, 0.8);
}

// Of amounts whose noise is a factor.
TableRows Amounts(FixtureOptions& options) {
  options.classification = false;
  TableRows rows = MakeRows(options);
  for (float& value : rows.train_target.numbers) value = std::exp((value - 1000) / 40);
  return rows;
}

std::string TransformSpec(const char* metric, const char* transform) {
  return Spec(absl::StrCat(R"("learning_rate":0.02,"target_transform":")", transform, "\""), 0,
              absl::StrCat(R"("type":"regression","metric":")", metric, "\""));
}

TEST_F(TrainerTest, TransformedTargetsAreAnsweredInTheirOwnUnit) {
  table_ = WriteState(state_, Amounts(options_), MakeFolds(options_));
  std::map<std::string, double> scores;
  int64_t attempt = 0;
  for (const char* metric : {"mae", "rmse"}) {
    for (const char* transform : {"none", "log", "yeo_johnson"}) {
      rp::Train train = Task(++attempt);
      train.spec_json = TransformSpec(metric, transform);
      train.epochs = 30;
      RecordingSink sink;
      const absl::Status status = Run(train, sink);
      ASSERT_TRUE(status.ok()) << status.ToString();
      const rp::FoldSaved saved = sink.All<rp::FoldSaved>().back();
      scores[absl::StrCat(metric, " ", transform)] = saved.score;
      const std::string dir = absl::StrCat(state_, "/", JobDir("job"), "/");
      const auto test = ReadNpyFloat(dir + saved.test);
      ASSERT_TRUE(test.ok()) << test.status();
      if (std::string(transform) != "log") continue;
      for (const float answer : test->values) EXPECT_GT(answer, 0);
    }
  }
  EXPECT_LT(scores["mae log"], 0.8 * scores["mae none"]);
  EXPECT_LT(scores["mae yeo_johnson"], scores["mae none"]);
  EXPECT_LT(scores["rmse log"], scores["rmse none"]);
}

TEST_F(TrainerTest, ATransformedRunResumedInMidEpochEndsAsIfNeverStopped) {
  table_ = WriteState(state_, Amounts(options_), MakeFolds(options_));
  rp::Train train = Task(1);
  train.spec_json = TransformSpec("rmse", "yeo_johnson");
  RecordingSink whole, first, second;
  ASSERT_TRUE(Run(train, whole).ok());
  train.attempt = 2;
  ASSERT_TRUE(RunALittle(train, first).ok());
  train.attempt = 3;
  train.batch = 0;
  train.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(train, second).ok());
  EXPECT_GT(second.All<rp::Started>()[0].first_step, 0);
  EXPECT_EQ(Tensors(whole), Tensors(second));
  EXPECT_EQ(Answers(whole.All<rp::FoldSaved>().back()),
            Answers(second.All<rp::FoldSaved>().back()));
}

TEST_F(TrainerTest, ARunResumedInMidEpochEndsAsIfNeverStopped) {
  RecordingSink whole, first, second;
  ASSERT_TRUE(Run(Task(1), whole).ok());
  ASSERT_TRUE(RunALittle(Task(2), first).ok());
  EXPECT_TRUE(first.All<rp::FoldSaved>().empty());
  const auto checkpoint = first.All<rp::CheckpointSaved>().back();
  EXPECT_GE(checkpoint.step, 3);
  EXPECT_LT(checkpoint.step, 25);
  rp::Train rest = Task(3);
  rest.batch = 0;  // as the checkpoint has it
  rest.resume = checkpoint.manifest;
  ASSERT_TRUE(Run(rest, second).ok());
  const auto started = second.All<rp::Started>()[0];
  EXPECT_EQ(started.first_step, checkpoint.step);
  EXPECT_EQ(started.batch, 16);
  EXPECT_EQ(Tensors(whole), Tensors(second));
  EXPECT_EQ(Answers(whole.All<rp::FoldSaved>().back()),
            Answers(second.All<rp::FoldSaved>().back()));
  // The same losses, added up in other groups.
  EXPECT_DOUBLE_EQ(whole.All<rp::Epoch>()[0].train_loss, second.All<rp::Epoch>()[0].train_loss);
  EXPECT_TRUE(second.All<rp::Decision>().empty());
}

TEST_F(TrainerTest, AResumeAfterTheLastEpochPredictsAtOnce) {
  RecordingSink whole, again;
  ASSERT_TRUE(Run(Task(1), whole).ok());
  rp::Train train = Task(2);
  train.resume = whole.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(train, again).ok());
  EXPECT_TRUE(again.All<rp::Epoch>().empty());
  EXPECT_EQ(Answers(whole.All<rp::FoldSaved>().back()), Answers(again.All<rp::FoldSaved>().back()));
}

TEST_F(TrainerTest, ADamagedCheckpointCostsAWarningAndNotTheFold) {
  RecordingSink first, second;
  ASSERT_TRUE(RunALittle(Task(1), first).ok());
  rp::Train train = Task(2);
  train.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(WriteFileDurably(absl::StrCat(state_, "/", train.resume), "not a manifest").ok());
  ASSERT_TRUE(Run(train, second).ok());
  EXPECT_EQ(second.All<rp::Started>()[0].first_step, 0);
  const auto logs = second.All<rp::LogText>();
  ASSERT_GE(logs.size(), 2u);
  EXPECT_EQ(logs[0].level, "warning");
  EXPECT_TRUE(absl::StrContains(logs.back().text, "starts from the beginning"));
  EXPECT_TRUE(second.All<rp::FoldSaved>().back().complete);
}

TEST_F(TrainerTest, AnotherBatchThanTheCheckpointsIsADecision) {
  RecordingSink first, second;
  ASSERT_TRUE(RunALittle(Task(1), first).ok());
  rp::Train train = Task(2);
  train.batch = 8;
  train.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(train, second).ok());
  const auto decisions = second.All<rp::Decision>();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].rule, DecisionRule::kBatch);
  EXPECT_EQ(decisions[0].from, "16 rows a step");
  EXPECT_EQ(decisions[0].to, "8 rows a step");
}

// Nothing outside the fold's training rows may reach its weights.
TEST_F(TrainerTest, ValidationAndTestRowsDoNotTouchTraining) {
  RecordingSink plain, marked;
  rp::Train train = Task(1);
  train.spec_json = Spec("\"patience\":0");
  ASSERT_TRUE(Run(train, plain).ok());
  TableRows rows = MakeRows(options_);
  for (size_t i = 1; i < 600; i += 3) {  // what fold 1 validates
    for (size_t f = 0; f < 4; ++f) rows.train[f].numbers[i] = 1e6f;
    rows.train[4].codes[i] = 4;
    rows.train[5].codes[i] = kMissingCode;
    rows.train_target.codes[i] = 0;
  }
  for (size_t f = 0; f < 4; ++f) rows.test[f].numbers.assign(90, -1e6f);
  table_ = WriteState(state_, rows, MakeFolds(options_));
  train = Task(2);
  train.spec_json = Spec("\"patience\":0");
  ASSERT_TRUE(Run(train, marked).ok());
  const auto before = Tensors(plain), after = Tensors(marked);
  for (const auto& [name, values] : before) {
    if (absl::StartsWith(name, "last.") || absl::StartsWith(name, "exp_avg")) {
      EXPECT_EQ(values, after.at(name)) << name;
    }
  }
  EXPECT_NE(Answers(plain.All<rp::FoldSaved>().back()),
            Answers(marked.All<rp::FoldSaved>().back()));
}

// The other way round: the test above can fail.
TEST_F(TrainerTest, ATrainingRowDoesTouchTraining) {
  RecordingSink plain, marked;
  ASSERT_TRUE(Run(Task(1), plain).ok());
  TableRows rows = MakeRows(options_);
  rows.train[0].numbers[0] = 1e6f;
  table_ = WriteState(state_, rows, MakeFolds(options_));
  ASSERT_TRUE(Run(Task(2), marked).ok());
  EXPECT_NE(Tensors(plain).at("last.layers.0.weight"), Tensors(marked).at("last.layers.0.weight"));
}

TEST_F(TrainerTest, TheClockStopsTrainingAndTheFoldStillPredicts) {
  rp::Train train = Task(1);
  train.spec_json = Spec("\"patience\":0");
  train.epochs = 100'000;
  train.stop_ms = 700;
  train.remaining_ms = 60'000;
  RecordingSink sink;
  const absl::Duration before = SystemClock().MonotonicNow();
  ASSERT_TRUE(Run(train, sink).ok());
  EXPECT_GE(SystemClock().MonotonicNow() - before, absl::Milliseconds(700));
  const auto saved = sink.All<rp::FoldSaved>().back();
  EXPECT_TRUE(saved.last);
  EXPECT_FALSE(saved.complete);
  EXPECT_EQ(saved.stopped_by, StopCause::kTime);
  EXPECT_GT(saved.epochs_done, 0);
  EXPECT_LT(saved.epochs_done, 100'000);
  EXPECT_FALSE(sink.All<rp::CheckpointSaved>().empty());
}

TEST_F(TrainerTest, AStepThatWouldEndBehindTheDeadlineIsNotBegun) {
  rp::Train train = Task(1);
  train.spec_json = Spec("\"patience\":0");
  train.epochs = 100'000;
  train.remaining_ms = 3'000;
  TaskControl control(train, SystemClock());
  RecordingSink sink;
  const absl::Duration before = SystemClock().MonotonicNow();
  int steps = 0;
  ASSERT_TRUE(Run(train, control, sink, [&](const StepInput&) {
                ++steps;
                absl::SleepFor(absl::Milliseconds(800));
                return absl::OkStatus();
              }).ok());
  EXPECT_GE(steps, 2);
  EXPECT_LE(steps, 3) << "a fourth one would end after 3.2 s";
  EXPECT_EQ(sink.All<rp::FoldSaved>().back().stopped_by, StopCause::kTime);
  EXPECT_TRUE(sink.All<rp::FoldSaved>().back().last);
  EXPECT_GE(SystemClock().MonotonicNow() - before, absl::Milliseconds(1600));
}

TEST_F(TrainerTest, AStopThatHasAlreadyPassedPredictsFromTheCheckpoint) {
  RecordingSink first, second;
  ASSERT_TRUE(RunALittle(Task(1), first).ok());
  rp::Train train = Task(2);
  train.resume = first.All<rp::CheckpointSaved>().back().manifest;
  train.stop_ms = 0;
  ASSERT_TRUE(Run(train, second).ok());
  EXPECT_TRUE(second.All<rp::Epoch>().empty());
  EXPECT_EQ(second.All<rp::FoldSaved>().back().stopped_by, StopCause::kTime);
}

TEST_F(TrainerTest, AUserStopKeepsWhatIsThere) {
  rp::Train train = Task(1);
  train.epochs = 100'000;
  train.spec_json = Spec("\"patience\":0");
  TaskControl control(train, SystemClock());
  RecordingSink sink;
  sink.Listen([&](const rp::FromProcess& message) {
    if (std::holds_alternative<rp::Epoch>(message)) control.Apply(rp::Stop{1, true});
  });
  ASSERT_TRUE(Run(train, control, sink).ok());
  const auto saved = sink.All<rp::FoldSaved>().back();
  EXPECT_EQ(saved.stopped_by, StopCause::kUser);
  EXPECT_FALSE(saved.complete);
  EXPECT_EQ(sink.All<rp::Epoch>().size(), 1u);
}

TEST_F(TrainerTest, ANewPlanMovesTheEnd) {
  rp::Train train = Task(1);
  train.epochs = 100'000;
  train.spec_json = Spec("\"patience\":0");
  TaskControl control(train, SystemClock());
  RecordingSink sink;
  sink.Listen([&](const rp::FromProcess& message) {
    const auto* epoch = std::get_if<rp::Epoch>(&message);
    if (epoch != nullptr && epoch->epoch == 2) control.Apply(rp::Replan{1, 4, -1});
  });
  ASSERT_TRUE(Run(train, control, sink).ok());
  EXPECT_EQ(sink.All<rp::Epoch>().size(), 4u);
  EXPECT_TRUE(sink.All<rp::FoldSaved>().back().complete);
}

TEST_F(TrainerTest, PatienceEndsAFoldThatGetsNoBetter) {
  rp::Train train = Task(1);
  train.epochs = 100'000;
  train.spec_json = Spec("\"patience\":3,\"learning_rate\":1e-9");
  RecordingSink sink;
  ASSERT_TRUE(Run(train, sink).ok());
  const auto saved = sink.All<rp::FoldSaved>().back();
  EXPECT_EQ(saved.stopped_by, StopCause::kPatience);
  EXPECT_TRUE(saved.complete);
}

TEST_F(TrainerTest, TheBestEpochPredictsAndNotTheLast) {
  rp::Train train = Task(1);
  train.epochs = 100'000;
  train.spec_json = Spec("\"patience\":0,\"learning_rate\":0.3", 0);  // jumps about
  TaskControl control(train, SystemClock());
  RecordingSink sink;
  sink.Listen([&](const rp::FromProcess& message) {
    const auto* epoch = std::get_if<rp::Epoch>(&message);
    if (epoch != nullptr && epoch->val_metric < epoch->best_metric) {
      control.Apply(rp::Stop{1, true});
    }
  });
  ASSERT_TRUE(Run(train, control, sink).ok());
  double best = 0;
  for (const auto& epoch : sink.All<rp::Epoch>()) best = std::max(best, epoch.val_metric);
  EXPECT_LT(sink.All<rp::Epoch>().back().val_metric, best);
  EXPECT_EQ(sink.All<rp::FoldSaved>().back().score, best);
}

TEST_F(TrainerTest, AnInfiniteTargetErrorDivergesWithItsReason) {
  options_.classification = false;
  TableRows rows = MakeRows(options_);
  table_ = WriteState(state_, rows, MakeFolds(options_));
  rp::Train train = Task(1);
  train.epochs = 50;
  train.spec_json = Spec("\"learning_rate\":10,\"weight_decay\":10,\"patience\":0", 0,
                         R"("type":"regression","metric":"rmse")");
  RecordingSink sink;
  const absl::Status status = Run(train, sink);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(FailureReason(status), AttemptEndReason::kDiverged);
  EXPECT_TRUE(absl::StrContains(status.message(), "not finite"));
}

TEST_F(TrainerTest, HalfPrecisionThatOverflowsFallsBackToFloat32First) {
  options_.classification = false;
  table_ = WriteState(state_, MakeRows(options_), MakeFolds(options_));
  rp::Train train = Task(1);
  train.epochs = 50;
  train.precision = "bf16";
  train.spec_json = Spec("\"learning_rate\":10,\"weight_decay\":10,\"patience\":0", 0,
                         R"("type":"regression","metric":"rmse")");
  RecordingSink sink;
  const absl::Status status = Run(train, sink);
  EXPECT_EQ(sink.All<rp::Started>()[0].precision, "bf16");
  const auto decisions = sink.All<rp::Decision>();
  ASSERT_EQ(decisions.size(), 1u);
  EXPECT_EQ(decisions[0].rule, DecisionRule::kPrecision);
  EXPECT_EQ(decisions[0].from, "bf16");
  EXPECT_EQ(decisions[0].to, "fp32");
  EXPECT_EQ(FailureReason(status), AttemptEndReason::kDiverged);  // which helps this one as little
}

TEST_F(TrainerTest, ARunThatLostPatiencePredictsAtOnceWhenResumed) {
  rp::Train train = Task(1);
  train.epochs = 1000;
  train.spec_json = Spec("\"patience\":2,\"learning_rate\":1e-9");
  RecordingSink first, second;
  ASSERT_TRUE(Run(train, first).ok());
  ASSERT_EQ(first.All<rp::FoldSaved>().back().stopped_by, StopCause::kPatience);
  train.attempt = 2;
  train.resume = first.All<rp::CheckpointSaved>().back().manifest;
  ASSERT_TRUE(Run(train, second).ok());
  EXPECT_TRUE(second.All<rp::Epoch>().empty());
  EXPECT_EQ(second.All<rp::FoldSaved>().back().stopped_by, StopCause::kPatience);
  EXPECT_TRUE(second.All<rp::FoldSaved>().back().complete);
}

// Files may grow to 64 KiB: enough for predictions, not for a checkpoint.
TEST_F(TrainerTest, ACheckpointThatCannotBeWrittenCostsAWarningAndNotTheFold) {
  rp::Train train = Task(1);
  train.spec_json = R"({"task":{"type":"classification"},"model":{"mlp":{"hidden":[128,128]}}})";
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 64 << 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  RecordingSink sink;
  const absl::Status status = Run(train, sink);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(sink.All<rp::CheckpointSaved>().empty());
  const auto logs = sink.All<rp::LogText>();
  ASSERT_FALSE(logs.empty());
  EXPECT_EQ(logs[0].level, "warning");
  EXPECT_TRUE(absl::StrContains(logs[0].text, "checkpoint could not be saved")) << logs[0].text;
  EXPECT_TRUE(sink.All<rp::FoldSaved>().back().complete);
}

TEST_F(TrainerTest, SpecAndTableThatDisagreeAreTheUsersError) {
  rp::Train train = Task(1);
  train.spec_json = Spec("", 0, R"("type":"regression","metric":"rmse")");
  RecordingSink sink;
  const absl::Status status = Run(train, sink);
  EXPECT_EQ(FailureReason(status), AttemptEndReason::kUserError) << status.ToString();
}

TEST_F(TrainerTest, HalfPrecisionThatTheCpuLacksIsADecision) {
  rp::Train train = Task(1);
  train.precision = "fp16";
  RecordingSink sink;
  ASSERT_TRUE(Run(train, sink).ok());
  EXPECT_EQ(sink.All<rp::Started>()[0].precision, "fp32");
  ASSERT_EQ(sink.All<rp::Decision>().size(), 1u);
  EXPECT_EQ(sink.All<rp::Decision>()[0].from, "fp16");
}

}  // namespace
}  // namespace traind
