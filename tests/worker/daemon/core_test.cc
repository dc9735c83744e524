#include "worker/daemon/core.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/job_layout.h"

namespace traind::worker {
namespace {

namespace rp = rank_protocol;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class M>
M About(int64_t attempt) {
  M message;
  message.attempt = attempt;
  return message;
}

// Ranks and prepares by a test's word, under a simulated clock.
class CoreTest : public ::testing::Test {
 protected:
  explicit CoreTest(std::vector<Slot> slots = {{"cpu", "a", "", 1}, {"cpu", "a", "", 1}}) {
    options_.state_dir = "/state";
    options_.cores = 2;
    options_.warm_spares = false;
    slots_ = std::move(slots);
    Make();
  }
  void Make() {
    core_ = std::make_unique<Core>(
        options_, slots_, [this] { return available_; }, [] { return 4711; });
  }

  TaskStart Train(int64_t attempt, std::vector<int> slots = {0}) {
    TaskStart task;
    task.attempt = attempt;
    task.job = "job-1";
    task.kind = TaskKind::kTrain;
    task.slots = std::move(slots);
    task.world_size = static_cast<int>(task.slots.size());
    task.table = "cache/t.table";
    task.metric = "accuracy";
    task.spec_folds = 5;
    task.epochs = 10;
    return task;
  }
  TaskStart Prepare(int64_t attempt, absl::Duration deadline_at) {
    TaskStart task;
    task.attempt = attempt;
    task.job = absl::StrCat("job-", attempt);
    task.kind = TaskKind::kPrepare;
    task.deadline_at = deadline_at;
    task.metric = "accuracy";
    task.spec_folds = 5;
    return task;
  }

  // Takes the actions in; what was started lives, what was killed is dying.
  void Collect() {
    for (Action& action : core_->TakeActions()) {
      if (const auto* spawn = std::get_if<SpawnAction>(&action)) spawned_.push_back(*spawn);
      if (const auto* kill = std::get_if<KillAction>(&action)) killed_.insert(kill->process);
      if (auto* send = std::get_if<SendAction>(&action)) sent_.push_back(std::move(*send));
      if (auto* log = std::get_if<LogAction>(&action)) logs_[log->process] = log->path;
      if (auto* report = std::get_if<ReportAction>(&action)) reports_.push_back(std::move(*report));
      if (auto* publish = std::get_if<PublishAction>(&action)) {
        publishes_.push_back(std::move(publish->request));
      }
    }
  }
  void Tick(absl::Duration by = absl::ZeroDuration()) {
    now_ += by;
    core_->Tick(now_, unacked_);
    Collect();
  }
  // To the next moment at which the core wants to be called, at most until then.
  void RunUntil(absl::Duration until) {
    while (core_->NextWakeup() <= until) {
      ASSERT_GE(core_->NextWakeup() + absl::Nanoseconds(1), now_) << "a wakeup that is never done";
      now_ = std::max(now_, core_->NextWakeup());
      const absl::Duration before = core_->NextWakeup();
      Tick();
      ASSERT_NE(core_->NextWakeup(), before) << "Tick left what was due";
    }
    now_ = until;
    Tick();
  }
  void Start(TaskStart task) {
    core_->Start(std::move(task), now_);
    Collect();
  }
  void Say(ProcessId process, rp::FromProcess message) {
    core_->Message(process, message, now_);
    Collect();
  }
  void Ready(ProcessId process) { Say(process, rp::Ready{100, "engine-1", "cpu"}); }
  void Die(ProcessId process, ExitStatus status = {ExitStatus::kSignalled, 9, ""}) {
    core_->Exited(process, status, now_);
    Collect();
  }
  void DieKilled() {
    for (const ProcessId process : killed_) Die(process);
    killed_.clear();
  }
  // The Rank of the first spawn is ready and training.
  void StartTraining(TaskStart task) {
    const size_t before = spawned_.size();
    Start(std::move(task));
    for (size_t i = before; i < spawned_.size(); ++i) Ready(spawned_[i].process);
  }
  std::vector<std::string> Ends() {
    std::vector<std::string> ends;
    for (const ReportAction& report : reports_) {
      if (const auto* ended = std::get_if<Ended>(&report.fact)) {
        ends.push_back(absl::StrCat(report.attempt, " ", ended->reason));
      }
    }
    return ends;
  }
  std::string LastMessage() { return std::get<Ended>(reports_.back().fact).message; }
  template <class M>
  std::vector<M> Sent() {
    std::vector<M> found;
    for (const SendAction& send : sent_) {
      if (const auto* m = std::get_if<M>(&send.message)) found.push_back(*m);
    }
    return found;
  }
  rp::FoldSaved Fold(int64_t attempt, int fold, bool last, std::string stopped_by = "epochs") {
    rp::FoldSaved saved;
    saved.attempt = attempt;
    saved.fold = fold;
    saved.last = last;
    saved.complete = last;
    saved.stopped_by = last ? stopped_by : "";
    saved.score = 0.9;
    saved.oof = absl::StrCat("attempts/", attempt, "/oof.npy");
    return saved;
  }

  CoreOptions options_;
  std::vector<Slot> slots_;
  int64_t available_ = int64_t{8} << 30;
  bool unacked_ = false;
  std::unique_ptr<Core> core_;
  absl::Duration now_ = absl::Seconds(1000);

  std::vector<SpawnAction> spawned_;
  std::set<ProcessId> killed_;
  std::vector<SendAction> sent_;
  std::map<ProcessId, std::string> logs_;
  std::vector<ReportAction> reports_;
  std::vector<PublishRequest> publishes_;
};

TEST_F(CoreTest, ATrainTaskRunsFromStartToCompleted) {
  TaskStart task = Train(7);
  task.deadline_at = now_ + absl::Seconds(60);
  task.stop_at = now_ + absl::Seconds(50);
  Start(task);
  ASSERT_EQ(spawned_.size(), 1u);
  const ProcessId rank = spawned_[0].process;
  EXPECT_EQ(logs_[rank], RankLogPath("job-1", 7, 0));
  EXPECT_THAT(Sent<rp::Train>(), IsEmpty());
  now_ += absl::Seconds(2);
  Ready(rank);
  ASSERT_EQ(Sent<rp::Train>().size(), 1u);
  const rp::Train train = Sent<rp::Train>()[0];
  EXPECT_EQ(train.attempt, 7);
  EXPECT_EQ(train.state_dir, "/state");
  EXPECT_EQ(train.epochs, 10);
  EXPECT_EQ(train.stop_ms, 48'000);
  EXPECT_EQ(train.remaining_ms, 57'850) << "less the two seconds and the margin of the kill";
  EXPECT_EQ(train.threads, 1);

  Say(rank, rp::Started{7, 10, "fp32", 32, 100, 0, 0, ""});
  Say(rank, About<rp::Progress>(7));
  Say(rank, Fold(7, 0, true));
  Say(rank, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), ElementsAre("7 COMPLETED"));
  EXPECT_EQ(reports_.size(), 4u);
  EXPECT_THAT(core_->RunningAttempts(), IsEmpty());
  EXPECT_EQ(core_->WarmRanks(), 0);
  Ready(rank);
  EXPECT_EQ(core_->WarmRanks(), 1);
  EXPECT_EQ(core_->engine(), "engine-1");
  // The next task goes to it.
  Start(Train(8));
  EXPECT_EQ(spawned_.size(), 1u);
  EXPECT_EQ(Sent<rp::Train>().size(), 2u);
}

TEST_F(CoreTest, ARepeatedStartRunsNothingTwice) {
  StartTraining(Train(7));
  Start(Train(7));
  EXPECT_EQ(spawned_.size(), 1u);
  Say(1, About<rp::Finished>(7));
  Start(Train(7));
  EXPECT_EQ(Sent<rp::Train>().size(), 1u);
  EXPECT_THAT(Ends(), ElementsAre("7 COMPLETED"));
}

TEST_F(CoreTest, ATaskThatCannotBeIsRefused) {
  TaskStart task = Train(1);
  task.job = "../etc";
  Start(task);
  EXPECT_THAT(LastMessage(), HasSubstr("job \"../etc\" is no name"));
  task = Train(2, {5});
  Start(task);
  EXPECT_THAT(LastMessage(), HasSubstr("this Worker has 2"));
  Start(Train(3, {}));
  Start(Train(4, {1, 1}));
  task = Train(5, {0, 1});
  task.world_size = 1;
  Start(task);
  EXPECT_THAT(Ends(),
              ElementsAre("1 INTERNAL", "2 INTERNAL", "3 INTERNAL", "4 INTERNAL", "5 INTERNAL"));
  EXPECT_THAT(spawned_, IsEmpty());
}

TEST_F(CoreTest, AGangStartsWhenAllAreReadyAndMeetsAtOnePort) {
  Start(Train(7, {0, 1}));
  ASSERT_EQ(spawned_.size(), 2u);
  Ready(1);
  EXPECT_THAT(Sent<rp::Train>(), IsEmpty());
  Ready(2);
  const std::vector<rp::Train> trains = Sent<rp::Train>();
  ASSERT_EQ(trains.size(), 2u);
  EXPECT_EQ(trains[0].rank, 0);
  EXPECT_EQ(trains[1].rank, 1);
  EXPECT_EQ(trains[1].world_size, 2);
  EXPECT_EQ(trains[0].rendezvous.port, 4711);
  EXPECT_EQ(trains[1].rendezvous.port, 4711);
  EXPECT_EQ(trains[1].rendezvous.host, "127.0.0.1");
  // Facts come from rank 0 alone; the end when both have finished.
  Say(2, About<rp::Started>(7));
  EXPECT_THAT(reports_, IsEmpty());
  Say(1, Fold(7, 0, true));
  Say(1, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), IsEmpty());
  Say(2, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), ElementsAre("7 COMPLETED"));
}

TEST_F(CoreTest, TheDeathOfOneRankEndsItsGangAtOnce) {
  StartTraining(Train(7, {0, 1}));
  Die(2);
  EXPECT_THAT(killed_, ElementsAre(1));
  EXPECT_THAT(Ends(), IsEmpty()) << "while one of it lives";
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 RANK_DIED"));
  EXPECT_EQ(LastMessage(), "rank 1 died: signal 9 (Killed)");
}

TEST_F(CoreTest, TheRankThatDiedTakesTheBlameForTheEchoInItsPeers) {
  StartTraining(Train(7, {0, 1}));
  Say(1, rp::Failed{7, "COLLECTIVE_TIMEOUT", "connection closed by peer"});
  EXPECT_THAT(killed_, IsEmpty());
  now_ += absl::Milliseconds(50);
  Die(2, {ExitStatus::kExited, 134, "out of luck"});
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 RANK_DIED"));
  EXPECT_EQ(LastMessage(), "rank 1 died: exit status 134; last said: out of luck");
}

TEST_F(CoreTest, AnEchoWithoutADeathStandsByItself) {
  StartTraining(Train(7, {0, 1}));
  Say(1, rp::Failed{7, "COLLECTIVE_TIMEOUT", "timed out"});
  RunUntil(now_ + absl::Seconds(1));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 COLLECTIVE_TIMEOUT"));
  EXPECT_EQ(LastMessage(), "rank 0: timed out");
}

TEST_F(CoreTest, AFailureIsReportedAsTheRankSaysIt) {
  StartTraining(Train(7));
  Say(1, rp::Failed{7, "DIVERGED", "loss is NaN at step 3"});
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 DIVERGED"));
  EXPECT_EQ(LastMessage(), "loss is NaN at step 3");
}

TEST_F(CoreTest, TheDeadlineKillsWhatStillWorksThen) {
  TaskStart task = Train(7);
  task.deadline_at = now_ + absl::Seconds(10);
  StartTraining(task);
  core_->Connected(now_);
  core_->Disconnected(now_);
  now_ += absl::Milliseconds(9'849);
  Tick();
  EXPECT_THAT(killed_, IsEmpty());
  EXPECT_EQ(core_->NextWakeup(), task.deadline_at - absl::Milliseconds(150));
  Tick(absl::Milliseconds(1));
  EXPECT_THAT(killed_, ElementsAre(1));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 DEADLINE"));
}

TEST_F(CoreTest, ATaskThatComesAfterItsDeadlineTakesNoRank) {
  TaskStart task = Train(7);
  task.deadline_at = now_;
  Start(task);
  EXPECT_THAT(spawned_, IsEmpty());
  EXPECT_THAT(Ends(), ElementsAre("7 DEADLINE"));
}

TEST_F(CoreTest, AFoldThatIsSavedIsNotLostToTheDeadline) {
  TaskStart task = Train(7);
  task.deadline_at = now_ + absl::Seconds(10);
  StartTraining(task);
  Say(1, Fold(7, 0, true, "time"));
  RunUntil(now_ + absl::Seconds(11));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 STOPPED_IN_TIME"));
}

TEST_F(CoreTest, AKilledProcessThatDoesNotDieIsNotWaitedForLong) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kAbort, "stale", now_);
  Collect();
  EXPECT_THAT(Ends(), IsEmpty());
  RunUntil(now_ + absl::Seconds(2));
  EXPECT_THAT(Ends(), ElementsAre("7 STALE"));
}

TEST_F(CoreTest, AbortKillsAndItsSlotIsUsedAgainWhenItIsDead) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kAbort, "the job was cancelled", now_);
  Start(Train(8));
  EXPECT_THAT(killed_, ElementsAre(1));
  EXPECT_EQ(spawned_.size(), 1u) << "the slot is not free yet";
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 CANCELLED_BY_USER"));
  ASSERT_EQ(spawned_.size(), 2u);
  Ready(2);
  EXPECT_EQ(Sent<rp::Train>().back().attempt, 8);
}

TEST_F(CoreTest, AStopBeforeTheRankIsReadyKeepsTheRankAsASpare) {
  Start(Train(7));
  core_->Stop(7, StopMode::kAbort, "stale", now_);
  Collect();
  EXPECT_THAT(killed_, IsEmpty());
  EXPECT_THAT(Ends(), ElementsAre("7 STALE"));
  Ready(1);
  EXPECT_EQ(core_->WarmRanks(), 1);
  EXPECT_EQ(logs_[1], "");
}

TEST_F(CoreTest, PredictIsPassedOnAndEndsAsTheUsersWish) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kPredict, "the user asked to finish", now_);
  Collect();
  ASSERT_EQ(Sent<rp::Stop>().size(), 1u);
  EXPECT_TRUE(Sent<rp::Stop>()[0].predict);
  Say(1, Fold(7, 0, true, "user"));
  Say(1, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), ElementsAre("7 FINISHED_BY_USER"));
}

TEST_F(CoreTest, AStopByARuleIsTheClocksDoing) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kPredict, "its time is up", now_);
  Say(1, Fold(7, 0, true, "user"));
  Say(1, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), ElementsAre("7 STOPPED_IN_TIME"));
  EXPECT_EQ(LastMessage(), "its time is up");
}

TEST_F(CoreTest, ADropThatIsNotHeededEndsWithTheGrace) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kDrop, "cancelled", now_);
  Collect();
  EXPECT_FALSE(Sent<rp::Stop>()[0].predict);
  RunUntil(now_ + options_.drop_grace - absl::Milliseconds(1));
  EXPECT_THAT(killed_, IsEmpty());
  RunUntil(now_ + absl::Milliseconds(1));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 CANCELLED_BY_USER"));
}

TEST_F(CoreTest, ARankThatMissesItsStopIsRemindedOnce) {
  TaskStart task = Train(7);
  task.stop_at = now_ + absl::Seconds(10);
  task.deadline_at = now_ + absl::Seconds(20);
  StartTraining(task);
  RunUntil(now_ + absl::Seconds(11));
  EXPECT_THAT(Sent<rp::Stop>(), IsEmpty());
  RunUntil(now_ + absl::Seconds(4));
  ASSERT_EQ(Sent<rp::Stop>().size(), 1u);
  EXPECT_TRUE(Sent<rp::Stop>()[0].predict);
  Say(1, Fold(7, 0, true, "user"));
  Say(1, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), ElementsAre("7 STOPPED_IN_TIME")) << "the reminder is the clock's";
}

TEST_F(CoreTest, AReplanReachesTheRanksAndThoseNotStartedYet) {
  TaskStart task = Train(7);
  task.stop_at = now_ + absl::Seconds(10);
  StartTraining(task);
  core_->Replan(7, 4, now_ + absl::Seconds(3), true, now_);
  Collect();
  ASSERT_EQ(Sent<rp::Replan>().size(), 1u);
  EXPECT_EQ(Sent<rp::Replan>()[0].epochs, 4);
  EXPECT_EQ(Sent<rp::Replan>()[0].stop_ms, 3'000);
  RunUntil(now_ + absl::Seconds(6));
  EXPECT_EQ(Sent<rp::Stop>().size(), 1u) << "by the new stop";

  Start(Train(8, {1}));
  core_->Replan(8, 2, absl::InfiniteDuration(), true, now_);
  Ready(2);
  EXPECT_EQ(Sent<rp::Train>().back().epochs, 2);
  EXPECT_EQ(Sent<rp::Train>().back().stop_ms, -1);
}

TEST_F(CoreTest, ASilentRankIsHung) {
  StartTraining(Train(7));
  Say(1, About<rp::Started>(7));
  Say(1, About<rp::Progress>(7));
  RunUntil(now_ + absl::Seconds(29));
  EXPECT_THAT(killed_, IsEmpty());
  Say(1, About<rp::Progress>(7));
  RunUntil(now_ + absl::Seconds(29));
  EXPECT_THAT(killed_, IsEmpty());
  RunUntil(now_ + absl::Seconds(1));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 HUNG"));
  EXPECT_EQ(LastMessage(), "rank 0 said nothing for 30s");
}

TEST_F(CoreTest, ARankThatReadsForLongIsGivenTimeAndMaySaySo) {
  StartTraining(Train(7));
  RunUntil(now_ + absl::Seconds(59));
  Say(1, rp::LogText{"info", "reading"});
  RunUntil(now_ + absl::Seconds(59));
  EXPECT_THAT(killed_, IsEmpty());
  RunUntil(now_ + absl::Seconds(1));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 HUNG"));
}

TEST_F(CoreTest, ARankThatIsNeverReadyIsGivenUp) {
  Start(Train(7));
  RunUntil(now_ + absl::Seconds(61));
  EXPECT_THAT(killed_, ElementsAre(1));
  EXPECT_THAT(Ends(), ElementsAre("7 RANK_DIED"));
  EXPECT_EQ(LastMessage(), "rank 0 was not ready within 1m");
}

TEST_F(CoreTest, AProgramThatDoesNotStartIsReportedWithItsReason) {
  Start(Train(7));
  Die(1, {ExitStatus::kNotStarted, 2, ""});
  EXPECT_THAT(Ends(), ElementsAre("7 RANK_DIED"));
  EXPECT_EQ(LastMessage(), "rank 0 died: cannot start: No such file or directory");
}

TEST_F(CoreTest, WordsAboutAnotherAttemptAreIgnored) {
  StartTraining(Train(7));
  Say(1, About<rp::Finished>(6));
  Say(1, Fold(6, 0, true));
  EXPECT_THAT(reports_, IsEmpty());
}

TEST_F(CoreTest, PreparesGoByDeadlineTwoAtATime) {
  for (int64_t attempt = 1; attempt <= 5; ++attempt) {
    // 1 and 2 start at once; of the others the last has the first deadline.
    Start(Prepare(attempt, now_ + absl::Seconds(100 - 10 * attempt)));
  }
  EXPECT_EQ(spawned_.size(), 2u);
  EXPECT_EQ(spawned_[0].program, Program::kPrepare);
  for (ProcessId process = 1; process <= 4; ++process) {
    const int64_t attempt = Sent<rp::Prepare>()[static_cast<size_t>(process) - 1].attempt;
    Say(process, About<rp::TableReady>(attempt));
    Say(process, About<rp::FloorReady>(attempt));
    Say(process, About<rp::Finished>(attempt));
    Die(process, {ExitStatus::kExited, 0, ""});
  }
  std::vector<int64_t> order;
  for (const rp::Prepare& prepare : Sent<rp::Prepare>()) order.push_back(prepare.attempt);
  EXPECT_THAT(order, ElementsAre(1, 2, 5, 4, 3));
  EXPECT_THAT(Ends(), ElementsAre("1 COMPLETED", "2 COMPLETED", "5 COMPLETED", "4 COMPLETED"));
}

TEST_F(CoreTest, APrepareThatDiesIsNamed) {
  Start(Prepare(1, absl::InfiniteDuration()));
  Die(1, {ExitStatus::kSignalled, 11, ""});
  EXPECT_THAT(Ends(), ElementsAre("1 RANK_DIED"));
  EXPECT_EQ(LastMessage(), "trainprep died: signal 11 (Segmentation fault)");
}

TEST_F(CoreTest, APrepareOutlivesAFinishAndIsDroppedByACancel) {
  Start(Prepare(1, absl::InfiniteDuration()));
  core_->Stop(1, StopMode::kPredict, "finish", now_);
  Collect();
  EXPECT_THAT(killed_, IsEmpty());
  core_->Stop(1, StopMode::kDrop, "cancelled", now_);
  Collect();
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("1 CANCELLED_BY_USER"));
}

TEST_F(CoreTest, APrepareThatDoesNotEndAfterItsLastWordIsKilled) {
  Start(Prepare(1, absl::InfiniteDuration()));
  Say(1, About<rp::Finished>(1));
  EXPECT_THAT(Ends(), ElementsAre("1 COMPLETED"));
  RunUntil(now_ + absl::Seconds(3));
  EXPECT_THAT(killed_, ElementsAre(1));
}

TEST_F(CoreTest, TheLossOfTraindEndsNothing) {
  StartTraining(Train(7));
  Say(1, About<rp::Started>(7));
  core_->Connected(now_);
  core_->Disconnected(now_);
  for (int i = 0; i < 600; ++i) {
    now_ += absl::Seconds(1);
    Say(1, About<rp::Progress>(7));
    Tick();
  }
  EXPECT_THAT(killed_, IsEmpty());
  EXPECT_THAT(core_->RunningAttempts(), ElementsAre(7));
}

TEST_F(CoreTest, WithoutTraindAFoldIsPublishedFromHere) {
  TaskStart task = Train(7);
  task.fold = 2;
  StartTraining(task);
  core_->Connected(now_);
  Say(1, Fold(7, 2, false));
  RunUntil(now_ + absl::Seconds(2));
  EXPECT_THAT(publishes_, IsEmpty()) << "traind does it";
  core_->Disconnected(now_);
  RunUntil(now_ + absl::Seconds(1));
  ASSERT_EQ(publishes_.size(), 1u);
  EXPECT_EQ(publishes_[0].job, "job-1");
  EXPECT_EQ(publishes_[0].table, "cache/t.table");
  EXPECT_EQ(publishes_[0].metric, "accuracy");
  EXPECT_EQ(publishes_[0].spec_folds, 5);
  ASSERT_EQ(publishes_[0].members.size(), 1u);
  EXPECT_EQ(publishes_[0].members[0].attempt, 7);
  EXPECT_EQ(publishes_[0].members[0].fold, 2);
  EXPECT_FALSE(publishes_[0].members[0].complete);
  PublishedPrediction prediction;
  prediction.number = 3;
  prediction.changed = true;
  core_->Published("job-1", prediction, now_);
  Say(1, Fold(7, 2, true));
  Tick();
  ASSERT_EQ(publishes_.size(), 2u);
  EXPECT_TRUE(publishes_[1].members[0].complete);
}

TEST_F(CoreTest, ShutdownDropsEverythingAndIsDoneWhenNothingIsLeft) {
  StartTraining(Train(7));
  Start(Train(8, {1}));  // its Rank is not ready yet
  Start(Prepare(9, absl::InfiniteDuration()));
  core_->Shutdown(absl::Seconds(5), now_);
  Collect();
  EXPECT_FALSE(Sent<rp::Stop>()[0].predict);
  EXPECT_THAT(Ends(), ElementsAre("8 SHUTDOWN"));
  EXPECT_THAT(killed_, ElementsAre(2, 3)) << "what has nothing to save";
  DieKilled();
  Start(Train(10));
  EXPECT_THAT(Ends(), ElementsAre("8 SHUTDOWN", "9 SHUTDOWN", "10 SHUTDOWN"));
  Say(1, About<rp::CheckpointSaved>(7));
  Say(1, About<rp::Finished>(7));
  EXPECT_FALSE(core_->done());
  Ready(1);
  Tick();
  EXPECT_EQ(Sent<rp::Exit>().size(), 1u);
  Die(1, {ExitStatus::kExited, 0, ""});
  EXPECT_TRUE(core_->done());
  EXPECT_EQ(Ends().back(), "7 SHUTDOWN");
}

TEST_F(CoreTest, ShutdownKillsWhatDoesNotEndWithinItsGrace) {
  StartTraining(Train(7));
  core_->Shutdown(absl::Seconds(5), now_);
  Collect();
  RunUntil(now_ + absl::Seconds(4));
  EXPECT_THAT(killed_, IsEmpty());
  RunUntil(now_ + absl::Seconds(1));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 SHUTDOWN"));
  EXPECT_TRUE(core_->done());
}

class SparesTest : public CoreTest {
 protected:
  SparesTest() {
    options_.warm_spares = true;
    Make();
  }
  size_t dead_ = 0;
};

TEST_F(SparesTest, EverySlotGetsAWarmRankAtOnce) {
  Tick();
  EXPECT_EQ(spawned_.size(), 2u);
  Ready(1);
  Ready(2);
  EXPECT_EQ(core_->WarmRanks(), 2);
  RunUntil(now_ + absl::Minutes(10));
  EXPECT_EQ(spawned_.size(), 2u);
}

TEST_F(SparesTest, AUsedSpareIsReplacedAfterAWhile) {
  Tick();
  Ready(1);
  Ready(2);
  Start(Train(7));
  Start(Train(8, {1}));
  EXPECT_EQ(Sent<rp::Train>().size(), 2u);
  Tick(absl::Seconds(1));
  EXPECT_EQ(spawned_.size(), 2u) << "not while a task starts";
  RunUntil(now_ + absl::Seconds(3));
  EXPECT_EQ(spawned_.size(), 3u) << "one in reserve for two that train";
}

TEST_F(SparesTest, WithoutMemoryThereIsNoReserve) {
  Tick();
  Ready(1);
  Ready(2);
  available_ = 1 << 20;
  Start(Train(7));
  Start(Train(8, {1}));
  RunUntil(now_ + absl::Seconds(10));
  EXPECT_EQ(spawned_.size(), 2u);
}

TEST_F(SparesTest, SparesThatDieComeBackAtGrowingDistances) {
  Tick();
  std::vector<absl::Duration> starts;
  for (int i = 0; i < 8; ++i) {
    for (size_t p = dead_; p < spawned_.size(); ++p) {
      Die(spawned_[p].process, {ExitStatus::kExited, 1, ""});
    }
    dead_ = spawned_.size();
    Tick();
    starts.push_back(core_->NextWakeup() - now_);
    RunUntil(core_->NextWakeup());
    ASSERT_GT(spawned_.size(), dead_);
  }
  EXPECT_GE(starts.front(), absl::Milliseconds(500));
  EXPECT_EQ(starts.back(), absl::Minutes(1));
}

TEST_F(SparesTest, RanksThatCameBackBeyondTheNeedAreSentHome) {
  options_.warm_spares = true;
  Tick();
  Ready(1);
  Ready(2);
  // Reserves come while tasks run; then all of them return.
  Start(Train(7));
  Start(Train(8, {1}));
  RunUntil(now_ + absl::Seconds(5));
  Ready(3);
  Start(Train(9));  // overlapping slots happen while traind takes one for lost
  RunUntil(now_ + absl::Seconds(5));
  Ready(4);
  for (const int64_t attempt : {7, 8, 9}) {
    Say(attempt - 6, About<rp::Finished>(attempt));
    Ready(attempt - 6);
  }
  Tick();
  EXPECT_EQ(core_->WarmRanks(), 3);
  EXPECT_EQ(Sent<rp::Exit>().size(), 1u);
}

class GpuTest : public CoreTest {
 protected:
  GpuTest() : CoreTest({{"cuda", "H", "GPU-a", 1}, {"cuda", "H", "GPU-b", 1}}) {
    options_.warm_spares = true;
    options_.cores = 16;
    Make();
  }
};

TEST_F(GpuTest, EachRankSeesItsOwnGpuAndABusyOneGetsNoSpare) {
  Tick();
  ASSERT_EQ(spawned_.size(), 2u);
  EXPECT_EQ(spawned_[0].slot, 0);
  EXPECT_EQ(spawned_[1].slot, 1);
  Ready(1);
  Ready(2);
  Start(Train(7, {1}));
  ASSERT_EQ(Sent<rp::Train>().size(), 1u);
  EXPECT_EQ(sent_.back().process, 2);
  EXPECT_EQ(Sent<rp::Train>()[0].device, "cuda");
  EXPECT_EQ(Sent<rp::Train>()[0].threads, 8);
  RunUntil(now_ + absl::Seconds(10));
  EXPECT_EQ(spawned_.size(), 2u);
}

}  // namespace
}  // namespace traind::worker
