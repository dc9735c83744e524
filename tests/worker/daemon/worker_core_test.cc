// Tasks from their start to their end, and what stops them.
#include <gmock/gmock.h>

#include "common/base/job_layout.h"
#include "tests/common/facts/field_values.h"
#include "tests/worker/daemon/worker_core_harness.h"

namespace traind::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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

  Say(rank, rp::Started{{10, "fp32", 32, 100, 0, 0, ""}, 7});
  Say(rank, About<rp::Progress>(7));
  Say(rank, Fold(7, 0, true));
  Say(rank, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), ElementsAre("7 COMPLETED"));
  EXPECT_EQ(reports_.size(), 4u);
  EXPECT_THAT(core_->RunningAttempts(), IsEmpty());
  EXPECT_EQ(core_->WarmRanks(), 0);
  Ready(rank);
  EXPECT_EQ(core_->WarmRanks(), 1);
  // The next task goes to it.
  Start(Train(8));
  EXPECT_EQ(spawned_.size(), 1u);
  EXPECT_EQ(Sent<rp::Train>().size(), 2u);
}

// The field by field tests below prove something only where every field is set.
template <class M>
void ExpectAllSetBut(const M& message, const std::set<std::string>& left_out) {
  const auto unset = Shown(M{});
  for (const auto& [name, value] : Shown(message)) {
    if (left_out.count(name) > 0) continue;
    EXPECT_NE(value, unset.at(name)) << name;
  }
}

TEST_F(CoreTest, EveryFieldOfATrainTaskReachesTheRank) {
  options_.loader_threads = 3;
  Make();
  TaskStart task = Train(7, {0, 1});
  task.spec_json = "{}";
  task.deadline_at = now_ + absl::Seconds(60);
  task.stop_at = now_ + absl::Seconds(50);
  task.checkpoint_every = absl::Seconds(9);
  task.fold = 3;
  task.trial = 3;
  task.seed = 2;
  task.world_size = 4;
  task.first_rank = 1;
  task.rendezvous_host = "10.0.0.1";
  task.rendezvous_port = 4321;
  task.epochs = 12;
  task.row_share = 0.4;
  task.batch = 64;
  task.precision = "bf16";
  task.resume = "jobs/job-1/attempts/3/checkpoint-5.json";
  StartTraining(task);
  ASSERT_EQ(Sent<rp::Train>().size(), 2u);
  rp::Train expected;
  expected.attempt = 7;
  expected.job = "job-1";
  expected.state_dir = "/state";
  expected.spec_json = "{}";
  expected.table = "cache/t.table";
  expected.fold = 3;
  expected.trial = 3;
  expected.seed = 2;
  expected.rank = 2;
  expected.world_size = 4;
  expected.rendezvous.host = "10.0.0.1";
  expected.rendezvous.port = 4321;
  expected.epochs = 12;
  expected.row_share = 0.4;
  expected.batch = 64;
  expected.precision = "bf16";
  expected.loader_threads = 3;
  expected.resume = "jobs/job-1/attempts/3/checkpoint-5.json";
  expected.stop_ms = 50'000;
  expected.remaining_ms = 59'850;
  expected.checkpoint_every_ms = 9'000;
  EXPECT_EQ(Shown(Sent<rp::Train>()[1]), Shown(expected));
  ExpectAllSetBut(expected, {"device", "threads", "files_travel"});
}

TEST_F(CoreTest, EveryFieldOfThePrepareAndInferenceTasksReachesItsProcess) {
  TaskStart task = Prepare(7, now_ + absl::Seconds(60));
  task.spec_json = "{}";
  core_->SetDataRoots({"/data"});
  Start(task);
  const std::vector<std::string> roots = {"/data", "/state"};
  const rp::Prepare prepare{7, "job-7", "/state", "{}", 59'850, roots};
  ASSERT_EQ(Sent<rp::Prepare>().size(), 1u);
  EXPECT_EQ(Shown(Sent<rp::Prepare>()[0]), Shown(prepare));
  ExpectAllSetBut(prepare, {});
  task.attempt = 8;
  task.kind = TaskKind::kPredict;
  StartTraining(task);
  const rp::Predict predict{8, "job-7", "/state", "{}", 2, 59'850, roots};
  ASSERT_EQ(Sent<rp::Predict>().size(), 1u);
  EXPECT_EQ(Shown(Sent<rp::Predict>()[0]), Shown(predict));
  ExpectAllSetBut(predict, {});
  task.attempt = 9;
  task.kind = TaskKind::kServe;
  StartTraining(task);
  const rp::Serve serve{9, "job-7", "/state", "{}", 1, 59'850};
  ASSERT_EQ(Sent<rp::Serve>().size(), 1u);
  EXPECT_EQ(Shown(Sent<rp::Serve>()[0]), Shown(serve));
  ExpectAllSetBut(serve, {"threads"});
}

class EightSlotsTest : public CoreTest {
 protected:
  EightSlotsTest() : CoreTest(std::vector<Slot>(8, {"cpu", "a", "", 1})) {
    options_.cores = 8;
    Make();
  }
};

TEST_F(EightSlotsTest, PredictTasksShareTheCoresOfIdleSlots) {
  const auto threads_of = [this](int64_t attempt) {
    TaskStart task = Prepare(attempt, now_ + absl::Seconds(60));
    task.kind = TaskKind::kPredict;
    StartTraining(task);
    return Sent<rp::Predict>().back().threads;
  };
  EXPECT_EQ(threads_of(20), 8);
  EXPECT_EQ(threads_of(21), 4);
  StartTraining(Train(22, {0, 1}));
  EXPECT_EQ(threads_of(23), 2);
  StartTraining(Train(24, {2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(threads_of(25), 1) << "one it has in any case";
}

TEST_F(CoreTest, EveryFieldOfAReplanAndAStopReachesTheRank) {
  StartTraining(Train(7));
  core_->Replan(7, 4, 0.4, now_ + absl::Seconds(3), now_ + absl::Seconds(9), true, now_);
  core_->Stop(7, StopMode::kDrop, StopReason::kUserPaused, "why", now_);
  Collect();
  const rp::Replan replan{7, 4, 3'000, 8'850, 0.4};
  ASSERT_EQ(Sent<rp::Replan>().size(), 1u);
  EXPECT_EQ(Shown(Sent<rp::Replan>()[0]), Shown(replan));
  ExpectAllSetBut(replan, {});
  const rp::Stop stop{7, false, StopReason::kUserPaused};
  ASSERT_EQ(Sent<rp::Stop>().size(), 1u);
  EXPECT_EQ(Shown(Sent<rp::Stop>()[0]), Shown(stop));
  ExpectAllSetBut(stop, {});
}

TEST_F(CoreTest, OneThatSpeaksOfAnothersAttemptIsNotHeardButLogged) {
  StartTraining(Train(7));
  Say(1, About<rp::Started>(8));
  EXPECT_THAT(reports_, IsEmpty());
  EXPECT_THAT(lines_, ElementsAre("rank 0 of attempt 7 speaks of attempt 8; ignored"));
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
  task = Train(6, {0, 1});
  task.rendezvous_port = 66'999;
  Start(task);
  EXPECT_THAT(LastMessage(), HasSubstr("the ranks cannot meet at port 66999"));
  EXPECT_THAT(Ends(), ElementsAre("1 INTERNAL", "2 INTERNAL", "3 INTERNAL", "4 INTERNAL",
                                  "5 INTERNAL", "6 INTERNAL"));
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
  EXPECT_EQ(trains[0].rendezvous.timeout_ms, 30'000);
  // Facts come from rank 0 alone; the end when both have finished.
  Say(2, About<rp::Started>(7));
  EXPECT_THAT(reports_, IsEmpty());
  Say(1, Fold(7, 0, true));
  Say(1, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), IsEmpty());
  Say(2, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), ElementsAre("7 COMPLETED"));
}

TEST_F(CoreTest, APartOfAGangWaitsForMeetWithItsRanksReady) {
  TaskStart task = Train(7, {0, 1});
  task.world_size = 4;
  task.first_rank = 2;
  Start(task);
  Ready(1);
  EXPECT_THAT(gangs_ready_, IsEmpty());
  Ready(2);
  ASSERT_EQ(gangs_ready_.size(), 1u);
  EXPECT_EQ(gangs_ready_[0].attempt, 7);
  EXPECT_EQ(gangs_ready_[0].port, 4711);
  EXPECT_THAT(Sent<rp::Train>(), IsEmpty());
  core_->Meet(7, "10.0.0.1", 5000, now_);
  Collect();
  const std::vector<rp::Train> trains = Sent<rp::Train>();
  ASSERT_EQ(trains.size(), 2u);
  EXPECT_EQ(trains[0].rank, 2);
  EXPECT_EQ(trains[1].rank, 3);
  EXPECT_EQ(trains[1].world_size, 4);
  EXPECT_EQ(trains[1].rendezvous.host, "10.0.0.1");
  EXPECT_EQ(trains[1].rendezvous.port, 5000);
  core_->Meet(7, "10.0.0.1", 5001, now_);  // again, after a reconnect of another part
  Collect();
  EXPECT_EQ(Sent<rp::Train>().size(), 2u);
}

TEST_F(CoreTest, TheOperatorSaysHowLongRanksWaitForEachOther) {
  options_.exchange_timeout = absl::Seconds(7);
  Make();
  StartTraining(Train(7, {0, 1}));
  const std::vector<rp::Train> trains = Sent<rp::Train>();
  ASSERT_EQ(trains.size(), 2u);
  EXPECT_EQ(trains[1].rendezvous.timeout_ms, 7'000);
}

TEST_F(CoreTest, TheOperatorSaysHowManyThreadsLoadMedia) {
  options_.loader_threads = 3;
  Make();
  StartTraining(Train(7, {0}));
  const std::vector<rp::Train> trains = Sent<rp::Train>();
  ASSERT_EQ(trains.size(), 1u);
  EXPECT_EQ(trains[0].loader_threads, 3);
}

TEST_F(CoreTest, AfterAReconnectAPartSaysAgainThatItIsReady) {
  TaskStart task = Train(7, {0});
  task.world_size = 2;
  StartTraining(task);
  core_->Connected(now_);
  Collect();
  EXPECT_EQ(gangs_ready_.size(), 2u);
  core_->Meet(7, "10.0.0.1", 5000, now_);
  core_->Connected(now_);  // traind may have been started anew
  Collect();
  EXPECT_EQ(gangs_ready_.size(), 3u);
}

TEST_F(CoreTest, APartThatWaitsEndsWhenItIsToldToAndWhenARankDies) {
  for (const int64_t attempt : {7, 8}) {
    TaskStart task = Train(attempt, {0});
    task.world_size = 2;
    StartTraining(task);
  }
  core_->Stop(7, StopMode::kAbort, StopReason::kStale, "the other part has ended", now_);
  Die(2);
  EXPECT_THAT(Ends(), ElementsAre("7 STALE", "8 RANK_DIED"));
  core_->Connected(now_);
  Collect();
  EXPECT_EQ(gangs_ready_.size(), 2u);
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
  Say(1, Fold(7, 0, true, StopCause::kTime));
  RunUntil(now_ + absl::Seconds(11));
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("7 STOPPED_IN_TIME"));
}

TEST_F(CoreTest, AbortKillsAndItsSlotIsUsedAgainWhenItIsDead) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kAbort, StopReason::kUserCancelled, "the job was cancelled", now_);
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
  core_->Stop(7, StopMode::kAbort, StopReason::kStale, "this Attempt is over", now_);
  Collect();
  EXPECT_THAT(killed_, IsEmpty());
  EXPECT_THAT(Ends(), ElementsAre("7 STALE"));
  Ready(1);
  EXPECT_EQ(core_->WarmRanks(), 1);
  EXPECT_EQ(logs_[1], "");
}

TEST_F(CoreTest, PredictIsPassedOnAndEndsAsTheUsersWish) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kPredict, StopReason::kUserFinished, "as the user wants", now_);
  Collect();
  ASSERT_EQ(Sent<rp::Stop>().size(), 1u);
  EXPECT_TRUE(Sent<rp::Stop>()[0].predict);
  Say(1, Fold(7, 0, true, StopCause::kUser));
  Say(1, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), ElementsAre("7 FINISHED_BY_USER"));
}

// Words in the text decide nothing: only the reason does.
TEST_F(CoreTest, AStopByARuleIsTheClocksDoing) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kPredict, StopReason::kQuota, "the user may use no more", now_);
  Collect();
  ASSERT_EQ(Sent<rp::Stop>().size(), 1u);
  EXPECT_EQ(Sent<rp::Stop>()[0].reason, StopReason::kQuota);
  Say(1, Fold(7, 0, true, CauseOf(Sent<rp::Stop>()[0].reason)));
  Say(1, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), ElementsAre("7 STOPPED_IN_TIME"));
  EXPECT_EQ(LastMessage(), "the user may use no more");
}

TEST_F(CoreTest, TheReasonForAnAbortOrADropNamesTheEnd) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kAbort, StopReason::kJobOver, "it cannot be cancelled any more", now_);
  Collect();
  DieKilled();
  StartTraining(Train(8));
  core_->Stop(8, StopMode::kDrop, StopReason::kUserPaused, "not to be cancelled", now_);
  Say(2, About<rp::Finished>(8));
  EXPECT_THAT(Ends(), ElementsAre("7 STALE", "8 SHUTDOWN"));
}

TEST_F(CoreTest, ADropThatIsNotHeededEndsWithTheGrace) {
  StartTraining(Train(7));
  core_->Stop(7, StopMode::kDrop, StopReason::kUserCancelled, "not wanted", now_);
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
  EXPECT_EQ(Sent<rp::Stop>()[0].reason, StopReason::kTime) << "the reminder is the clock's";
  Say(1, Fold(7, 0, true, StopCause::kTime));
  Say(1, About<rp::Finished>(7));
  EXPECT_THAT(Ends(), ElementsAre("7 STOPPED_IN_TIME"));
}

TEST_F(CoreTest, AReplanReachesTheRanksAndThoseNotStartedYet) {
  TaskStart task = Train(7);
  task.stop_at = now_ + absl::Seconds(10);
  StartTraining(task);
  core_->Replan(7, 4, 0.4, now_ + absl::Seconds(3), std::nullopt, true, now_);
  Collect();
  ASSERT_EQ(Sent<rp::Replan>().size(), 1u);
  EXPECT_EQ(Sent<rp::Replan>()[0].epochs, 4);
  EXPECT_EQ(Sent<rp::Replan>()[0].row_share, 0.4);
  EXPECT_EQ(Sent<rp::Replan>()[0].stop_ms, 3'000);
  RunUntil(now_ + absl::Seconds(6));
  EXPECT_EQ(Sent<rp::Stop>().size(), 1u) << "by the new stop";

  Start(Train(8, {1}));
  core_->Replan(8, 2, 0.5, absl::InfiniteDuration(), std::nullopt, true, now_);
  Ready(2);
  EXPECT_EQ(Sent<rp::Train>().back().epochs, 2);
  EXPECT_EQ(Sent<rp::Train>().back().row_share, 0.5);
  EXPECT_EQ(Sent<rp::Train>().back().stop_ms, -1);
}

TEST_F(CoreTest, PreparesGoByDeadlineTwoAtATime) {
  for (int64_t attempt = 1; attempt <= 5; ++attempt) {
    // 1 and 2 start at once; of the others the last has the first deadline.
    Start(Prepare(attempt, now_ + absl::Seconds(100 - 10 * attempt)));
  }
  EXPECT_EQ(spawned_.size(), 2u);
  EXPECT_STREQ(spawned_[0].program->name, "trainprep");
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

TEST_F(CoreTest, WhoHasAFirstFloorMakesRoomForOthersWithNone) {
  for (int64_t attempt = 1; attempt <= 12; ++attempt) {
    Start(Prepare(attempt, now_ + absl::Seconds(100)));
  }
  ASSERT_EQ(spawned_.size(), 2u);
  Say(1, About<rp::TableReady>(1));
  EXPECT_EQ(spawned_.size(), 2u);
  Say(1, About<rp::FloorReady>(1));
  EXPECT_EQ(spawned_.size(), 3u);
  Say(1, About<rp::FloorReady>(1));  // the better one
  EXPECT_EQ(spawned_.size(), 3u);
  // Not without end: eight at once are the most.
  for (ProcessId process = 2; process <= 8; ++process) {
    Say(process, About<rp::FloorReady>(process));
  }
  EXPECT_EQ(spawned_.size(), 8u);
  Say(1, About<rp::Finished>(1));
  Die(1, {ExitStatus::kExited, 0, ""});
  EXPECT_EQ(spawned_.size(), 9u);
}

TEST_F(CoreTest, APrepareOutlivesAFinishAndIsDroppedByACancel) {
  Start(Prepare(1, absl::InfiniteDuration()));
  core_->Stop(1, StopMode::kPredict, StopReason::kUserFinished, "finish", now_);
  Collect();
  EXPECT_THAT(killed_, IsEmpty());
  core_->Stop(1, StopMode::kDrop, StopReason::kUserCancelled, "not wanted", now_);
  Collect();
  DieKilled();
  EXPECT_THAT(Ends(), ElementsAre("1 CANCELLED_BY_USER"));
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

}  // namespace
}  // namespace traind::worker
