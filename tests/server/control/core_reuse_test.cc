// Folds that earlier Jobs have trained.
#include <gmock/gmock.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Job CachedJob(const std::string& request, int folds = 2) {
  Job job = CoreHarness::MakeJob(request, folds);
  job.spec.cache_key = "key";
  job.spec.cache_read = true;
  return job;
}

TrainedFold Whole(int fold, double score = 0.9) {
  TrainedFold trained;
  trained.fold = fold;
  trained.job = "old-1";
  trained.attempt = 7;
  trained.whole = true;
  trained.epochs_done = 20;
  trained.member.emplace();
  trained.member->complete = true;
  trained.member->score = score;
  trained.member->epochs_done = 20;
  trained.member->oof = "reused/7/oof.npy";
  trained.member->oof_sha256 = "sha";
  return trained;
}

TrainedFold Begun(int fold) {
  TrainedFold trained = Whole(fold);
  trained.whole = false;
  trained.epochs_done = 4;
  trained.member->epochs_done = 4;
  trained.checkpoint.emplace();
  trained.checkpoint->step = 400;
  trained.checkpoint->epoch = 4;
  trained.checkpoint->manifest = "jobs/job-a/reused/7/checkpoint-400.json";
  return trained;
}

// A Job whose data have just been read; what the turn asked for in *turn.
std::string ReadData(CoreHarness& h, Job job, Turn* turn) {
  const std::string id = h.SubmitJob(std::move(job));
  h.Attach("w", 2);
  *turn = h.Say(h.AttemptOf(id, 0), CoreHarness::Table());
  return id;
}

TEST(CoreReuseTest, NoFoldStartsBeforeItIsKnownWhatEarlierJobsHave) {
  CoreHarness h;
  Turn turn;
  const std::string id = ReadData(h, CachedJob("a"), &turn);
  ASSERT_THAT(turn.reuses, SizeIs(1));
  EXPECT_EQ(turn.reuses[0].job, id);
  EXPECT_EQ(turn.reuses[0].spec.cache_key, "key");
  EXPECT_THAT(turn.starts, IsEmpty());
  EXPECT_THAT(h.Step({Reused{id, std::vector<TrainedFold>()}}).starts, SizeIs(2));
  EXPECT_THAT(h.Rules(id), IsEmpty());
}

TEST(CoreReuseTest, WithoutAnAnswerFoldsStartAfterAWhile) {
  CoreHarness h;
  Turn turn;
  const std::string id = ReadData(h, CachedJob("a"), &turn);
  EXPECT_THAT(h.Wait(absl::Seconds(4)).starts, IsEmpty());
  EXPECT_THAT(h.Wait(absl::Seconds(2)).starts, SizeIs(2));
  // It comes too late, and changes nothing.
  h.Step({Reused{id, std::vector<TrainedFold>{Whole(0), Whole(1)}}});
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
  EXPECT_EQ(h.TaskOf(id, 1).from_job, "");
}

TEST(CoreReuseTest, WholeFoldsAreNotTrainedAndSayFromWhichJobTheyAre) {
  CoreHarness h;
  Turn turn;
  const std::string id = ReadData(h, CachedJob("a"), &turn);
  const int64_t prepare = h.AttemptOf(id, 0);
  h.Say(prepare, facts::FloorReady{"prior", 0.5});
  turn = h.Step({Reused{id, std::vector<TrainedFold>{Whole(0), Whole(1)}}});
  EXPECT_THAT(turn.starts, IsEmpty());
  for (int fold = 0; fold < 2; ++fold) {
    const Task task = h.TaskOf(id, 1 + fold);
    EXPECT_EQ(task.state, TaskState::kDone);
    EXPECT_TRUE(task.reused);
    EXPECT_EQ(task.from_job, "old-1");
    EXPECT_EQ(task.attempts, 0);
    EXPECT_EQ(task.member->attempt, task.attempt);
  }
  EXPECT_THAT(h.Rules(id), ElementsAre("cache"));
  EXPECT_THAT(h.Stored(id).decisions[0].cause, HasSubstr("job old-1 has trained folds 0, 1"));
  // The floor that they are judged against is made first.
  EXPECT_NE(h.State(id), JobState::kFinalizing);
  h.Publish(id, Quality::kFull);
  h.Say(prepare, CoreHarness::Ended());
  h.Publish(id, Quality::kFull);  // the last one
  h.Publish(id, Quality::kFull);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(id).end_reason, JobEndReason::kCompleted);
}

TEST(CoreReuseTest, AFoldThatWasBegunGoesOnFromItsCheckpoint) {
  CoreHarness h;
  Turn turn;
  const std::string id = ReadData(h, CachedJob("a"), &turn);
  turn = h.Step({Reused{id, std::vector<TrainedFold>{Whole(0), Begun(1)}}});
  ASSERT_THAT(turn.starts, SizeIs(1));
  EXPECT_EQ(turn.starts[0].fold, 1);
  EXPECT_EQ(turn.starts[0].resume, "jobs/job-a/reused/7/checkpoint-400.json");
  const Task task = h.TaskOf(id, 2);
  EXPECT_EQ(task.from_job, "old-1");
  EXPECT_FALSE(task.reused);
  EXPECT_FALSE(task.member->complete);
  EXPECT_EQ(task.epochs_done, 4);
  EXPECT_THAT(h.Rules(id), ElementsAre("cache", "cache"));
}

TEST(CoreReuseTest, ExtraSeedsAreTakenOverWholeAndTheOthersTrained) {
  CoreHarness h;
  Turn turn;
  Job job = CachedJob("a");
  job.spec.seeds = 3;
  const std::string id = ReadData(h, job, &turn);
  TrainedFold extra = Whole(1), begun = Begun(0), unasked = Whole(0);
  extra.seed = begun.seed = 1;
  unasked.seed = 3;
  h.Step({Reused{id, std::vector<TrainedFold>{Whole(0), Whole(1), begun, extra, unasked}}});
  const Job stored = h.Stored(id);
  // Nothing was measured here: one model for each slot.
  ASSERT_THAT(stored.tasks, SizeIs(6));
  EXPECT_EQ(stored.tasks[3].fold, 1);
  EXPECT_EQ(stored.tasks[3].seed, 1);
  EXPECT_EQ(stored.tasks[3].state, TaskState::kDone);
  EXPECT_TRUE(stored.tasks[3].reused);
  EXPECT_EQ(stored.tasks[3].member->seed, 1);
  EXPECT_EQ(stored.tasks[4].fold, 0);
  EXPECT_EQ(stored.tasks[4].seed, 1);
  EXPECT_EQ(stored.tasks[4].state, TaskState::kRunning);
  EXPECT_EQ(stored.tasks[5].seed, 2);
  ASSERT_THAT(stored.decisions, SizeIs(2));
  EXPECT_THAT(stored.decisions[0].cause, HasSubstr("folds 0, 1, 1 seed 1 to the end"));
  EXPECT_EQ(stored.decisions[1].from, "3 models");
  EXPECT_EQ(stored.decisions[1].to, "5 models");
}

TEST(CoreReuseTest, ADecisionNamesTenModelsAtMost) {
  CoreHarness h;
  Turn turn;
  Job job = CachedJob("a");
  job.spec.seeds = 6;
  const std::string id = ReadData(h, job, &turn);
  std::vector<TrainedFold> folds;
  for (int seed = 0; seed < 6; ++seed) {
    for (const int fold : {0, 1}) {
      folds.push_back(Whole(fold));
      folds.back().seed = seed;
    }
  }
  h.Step({Reused{id, folds}});
  const std::string cause = h.Stored(id).decisions.at(0).cause;
  EXPECT_THAT(cause, HasSubstr("folds 0, 1, 0 seed 1, "));
  EXPECT_THAT(cause, HasSubstr(" 1 seed 4 and 2 more to the end"));
}

TEST(CoreReuseTest, ATakenOverFoldStaysWhenTheJobIsStoppedEarly) {
  CoreHarness h;
  Turn turn;
  Job job = CachedJob("a");
  const std::string id = ReadData(h, job, &turn);
  h.Step({Reused{id, std::vector<TrainedFold>{Begun(1)}}});
  h.Wait(absl::Seconds(61));  // nothing is heard of the Worker
  const Task task = h.TaskOf(id, 2);
  EXPECT_EQ(task.state, TaskState::kPartial);
  EXPECT_EQ(task.member->oof, "reused/7/oof.npy");
}

TEST(CoreReuseTest, AfterACrashItIsAskedAgainUntilAFoldHasStarted) {
  CoreHarness h;
  Turn turn;
  const std::string id = ReadData(h, CachedJob("a"), &turn);
  h.Crash();
  turn = h.Step();
  ASSERT_THAT(turn.reuses, SizeIs(1));
  h.Attach("w", 2, {h.AttemptOf(id, 0)});
  h.Step({Reused{id, std::vector<TrainedFold>()}});
  h.Crash();
  EXPECT_THAT(h.Step().reuses, IsEmpty());
}

TEST(CoreReuseTest, AJobThatIsToTrainAllAsksForNothing) {
  CoreHarness h;
  Turn turn;
  Job job = CachedJob("a");
  job.spec.cache_read = false;  // refresh
  ReadData(h, job, &turn);
  EXPECT_THAT(turn.reuses, IsEmpty());
  EXPECT_THAT(turn.starts, SizeIs(2));
}

TEST(CoreReuseTest, AJobThatCannotGoOnFromItsSourceSaysWhy) {
  CoreHarness h;
  Turn turn;
  Job job = CoreHarness::MakeJob("a", 2);
  job.spec.from = "old-1";
  const std::string id = ReadData(h, job, &turn);
  ASSERT_THAT(turn.reuses, SizeIs(1));
  turn = h.Step({Reused{id, absl::FailedPreconditionError("the files have changed")}});
  EXPECT_THAT(turn.starts, SizeIs(2));
  EXPECT_THAT(h.Rules(id), ElementsAre("from"));
  EXPECT_EQ(h.Stored(id).decisions[0].cause, "the files have changed");
}

}  // namespace
}  // namespace traind
