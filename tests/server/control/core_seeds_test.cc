// Extra seeds: when they start, and that nothing is lost where they cannot.
#include <algorithm>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

// A Job of 2 folds with up to `seeds` models each, 20 epochs of 0.1 s, on a Worker of one
// slot, or of `slots`.
class SeedsTest : public ::testing::Test {
 protected:
  std::string Begin(int seeds, int slots = 1, bool bounded = true) {
    h.Attach("w", slots);
    Job job = h.MakeJob("a", 2);
    job.spec.seeds = seeds;
    if (!bounded) job.spec.budget.reset();
    const std::string id = h.SubmitJob(std::move(job));
    h.PrepareJob(id);
    return id;
  }
  // Trains a model to its end, early after so many epochs.
  void Train(const std::string& id, int task, int epochs = 5, double score = 0.9) {
    const int64_t attempt = h.AttemptOf(id, task);
    ASSERT_EQ(h.TaskOf(id, task).state, TaskState::kRunning) << "task " << task;
    h.Say(attempt, h.Started(10));
    for (int i = 1; i <= epochs; ++i) {
      facts::Epoch epoch;
      epoch.epoch = i;
      epoch.epoch_s = 0.1;
      h.now += absl::Milliseconds(100);
      h.Say(attempt, epoch);
    }
    h.Say(attempt, h.Saved(true, true, score, epochs));
    h.Say(attempt, h.Ended());
    if (publishes) h.Publish(id, Quality::kFull);
  }
  // Trains both models of both folds; the answer of all of them is not published yet.
  std::string BeginAndTrainFourModels() {
    const std::string id = Begin(2);
    for (int task = 1; task <= 4 && !HasFatalFailure(); ++task) {
      publishes = task < 4;
      Train(id, task);
    }
    return id;
  }
  // The Job ends with this answer. Returns its last Decision.
  Decision EndWith(const std::string& id, const PublishedPrediction& answer) {
    h.Step({Published{id, answer, false}});
    EXPECT_EQ(h.State(id), JobState::kSucceeded);
    return h.Stored(id).decisions.back();
  }
  bool publishes = true;  // once a model is trained
  std::vector<std::string> Grown(const std::string& id) {
    std::vector<std::string> grown;
    for (const Decision& d : h.Stored(id).decisions) {
      if (d.rule == DecisionRule::kB9) grown.push_back(d.from + " -> " + d.to);
    }
    return grown;
  }

  CoreHarness h;
};

TEST_F(SeedsTest, StartWhenAllFoldsHaveRun) {
  const std::string id = Begin(2);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  EXPECT_EQ(h.Stored(id).tasks.size(), 3u) << "a fold waits";
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  const Job job = h.Stored(id);
  ASSERT_EQ(job.tasks.size(), 5u);
  EXPECT_EQ(Grown(id), std::vector<std::string>{"2 models -> 4 models"});
  EXPECT_EQ(job.plans.back().models, 4);
  EXPECT_EQ(job.tasks[3].fold, 0);
  EXPECT_EQ(job.tasks[3].seed, 1);
  EXPECT_EQ(job.tasks[3].state, TaskState::kRunning);
  EXPECT_EQ(job.tasks[4].state, TaskState::kPending);
  EXPECT_EQ(h.starts.back().fold, 0);
  EXPECT_EQ(h.starts.back().seed, 1);
  EXPECT_EQ(h.starts.back().epochs, 20);
  EXPECT_EQ(job.attempts.back().seed, 1);
}

TEST_F(SeedsTest, TheJobEndsEarlyWhenAllAreTrained) {
  const std::string id = BeginAndTrainFourModels();
  ASSERT_FALSE(h.publishes.empty());
  const PublishCommand last = h.publishes.back();
  EXPECT_TRUE(last.final);
  EXPECT_EQ(last.request.members.size(), 4u);
  EXPECT_EQ(last.request.members[2].seed, 1);
  EXPECT_FALSE(last.request.plan_cut);
  h.Publish(id, Quality::kFull);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(id).end_reason, JobEndReason::kCompleted);
}

TEST_F(SeedsTest, TheJobEndsEarlyWhenNoneFits) {
  const std::string id = Begin(3);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  h.now += absl::Seconds(50);
  h.Step({WorkerHeartbeat{"w", h.session, {h.AttemptOf(id, 2)}}});
  ASSERT_NO_FATAL_FAILURE(Train(id, 2, 20));
  EXPECT_TRUE(Grown(id).empty());
  EXPECT_EQ(h.Stored(id).tasks.size(), 3u);
  h.Publish(id, Quality::kFull);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(id).end_reason, JobEndReason::kCompleted);
}

TEST_F(SeedsTest, StartBesideTheLastFoldWhereASlotIsIdle) {
  const std::string id = Begin(2, 2);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kRunning);
  ASSERT_GE(h.Stored(id).tasks.size(), 4u);
  EXPECT_EQ(h.TaskOf(id, 3).state, TaskState::kRunning);
}

TEST_F(SeedsTest, AFoldThatIsLostComesBeforeThoseThatWait) {
  const std::string id = Begin(3, 2);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_EQ(h.TaskOf(id, 3).state, TaskState::kRunning);
  const int64_t extra = h.AttemptOf(id, 3);
  for (int i = 0; i < 2; ++i) {
    h.Say(h.AttemptOf(id, 2), h.Ended(AttemptEndReason::kRankDied, "signal 9"));
  }
  // Its slot is free, it pauses, and nobody else takes the slot.
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kPending);
  for (size_t i = 4; i < h.Stored(id).tasks.size(); ++i) {
    EXPECT_NE(h.TaskOf(id, static_cast<int>(i)).state, TaskState::kRunning);
  }
  h.Wait(absl::Seconds(1));
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kRunning);
  EXPECT_EQ(h.AttemptOf(id, 3), extra);
}

TEST_F(SeedsTest, OneThatIsMissingIsNoFailure) {
  const std::string id = Begin(2);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  for (int i = 0; i < 20; ++i) {
    for (const int task : {3, 4}) {
      if (h.TaskOf(id, task).state != TaskState::kRunning) continue;
      h.Say(h.AttemptOf(id, task), h.Ended(AttemptEndReason::kDiverged, "NaN"));
    }
    h.Step({WorkerHeartbeat{"w", h.session, {}}});
    h.Wait(absl::Seconds(1));
  }
  for (const int task : {3, 4}) EXPECT_EQ(h.TaskOf(id, task).state, TaskState::kFailed);
  h.Publish(id, Quality::kFull);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(id).end_reason, JobEndReason::kCompleted);
}

TEST_F(SeedsTest, ThePredictionIsFinalInTimeThoughOneStillRuns) {
  const std::string id = Begin(2);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  ASSERT_EQ(h.TaskOf(id, 3).state, TaskState::kRunning);
  const int64_t attempt = h.AttemptOf(id, 3);
  for (int i = 0; i < 600 && h.State(id) == JobState::kRunning; ++i) {
    h.Step({WorkerHeartbeat{"w", h.session, {attempt}}});
    h.Wait(absl::Milliseconds(100));
  }
  h.Publish(id, Quality::kFull);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(id).end_reason, JobEndReason::kCompleted);
  EXPECT_EQ(h.TaskOf(id, 4).state, TaskState::kDropped);
  const std::vector<std::string> rules = h.Rules(id);
  EXPECT_EQ(std::count(rules.begin(), rules.end(), "B5"), 0);
}

TEST_F(SeedsTest, AnswerOnceTheirTrainingIsOver) {
  const std::string id = Begin(2);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  h.publishes.clear();
  h.Say(h.AttemptOf(id, 3), h.Saved(false, false, 0.8, 2));
  EXPECT_FALSE(h.TaskOf(id, 3).member.has_value());
  h.Say(h.AttemptOf(id, 3), h.Saved(false, true, 0.8, 3));
  EXPECT_TRUE(h.TaskOf(id, 3).member.has_value());
  EXPECT_EQ(h.TaskOf(id, 3).state, TaskState::kPartial);
  ASSERT_EQ(h.publishes.size(), 1u);
  EXPECT_EQ(h.publishes[0].request.members.size(), 3u);
}

TEST_F(SeedsTest, FinishStopsThemAndStartsNoOther) {
  const std::string id = Begin(3);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  ASSERT_EQ(h.TaskOf(id, 3).state, TaskState::kRunning);
  const Turn turn = h.Step({Finish{8, id}});
  ASSERT_EQ(turn.stops.size(), 1u);
  EXPECT_EQ(turn.stops[0].mode, StopMode::kPredict);
  EXPECT_EQ(turn.stops[0].attempt, h.AttemptOf(id, 3));
  EXPECT_EQ(h.TaskOf(id, 4).state, TaskState::kDropped);
  h.Say(h.AttemptOf(id, 3), h.Saved(false, true, 0.8, 3));
  h.Say(h.AttemptOf(id, 3), h.Ended(AttemptEndReason::kFinishedByUser));
  h.Publish(id, Quality::kFull);
  h.Publish(id, Quality::kFull);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.TaskOf(id, 3).state, TaskState::kPartial);
}

TEST_F(SeedsTest, PauseAndResumeGoOnWithThem) {
  const std::string id = Begin(2);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  h.Step({Pause{8, id}});
  h.Say(h.AttemptOf(id, 3), h.Ended(AttemptEndReason::kCancelledByUser));
  EXPECT_EQ(h.State(id), JobState::kPaused);
  EXPECT_EQ(h.TaskOf(id, 3).state, TaskState::kPending);
  h.Step({Resume{9, id}});
  h.Wait(absl::Seconds(1));
  EXPECT_EQ(h.TaskOf(id, 3).state, TaskState::kRunning);
}

TEST_F(SeedsTest, ARestartFindsThem) {
  const std::string id = Begin(2);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  const int64_t attempt = h.AttemptOf(id, 3);
  h.Crash();
  h.Attach("w", 1, {attempt});
  h.Wait(absl::Seconds(2));
  EXPECT_EQ(h.AttemptOf(id, 3), attempt);
  EXPECT_EQ(h.Stored(id).tasks.size(), 5u);
  ASSERT_NO_FATAL_FAILURE(Train(id, 3));
  ASSERT_NO_FATAL_FAILURE(Train(id, 4));
  h.Publish(id, Quality::kFull);
  h.Publish(id, Quality::kFull);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
}

TEST_F(SeedsTest, WithoutADeadlineAllAreTrained) {
  const std::string id = Begin(3, 1, false);
  EXPECT_EQ(h.Stored(id).plans.back().models, 6);
  for (int task = 1; task <= 6; ++task) {
    ASSERT_NO_FATAL_FAILURE(Train(id, task));
  }
  h.Publish(id, Quality::kFull);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_TRUE(h.Stored(id).decisions.empty());
  EXPECT_EQ(h.publishes.back().request.members.size(), 6u);
}

TEST_F(SeedsTest, FoldsOfOtherJobsGoFirst) {
  const std::string id = Begin(3);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  ASSERT_EQ(h.TaskOf(id, 3).state, TaskState::kRunning);
  Job other = h.MakeJob("b", 2);
  other.spec.budget = absl::Hours(1);  // in no hurry
  const std::string later = h.SubmitJob(std::move(other));
  h.PrepareJob(later);
  EXPECT_EQ(h.TaskOf(later, 1).state, TaskState::kPending);
  ASSERT_NO_FATAL_FAILURE(Train(id, 3));
  EXPECT_EQ(h.TaskOf(later, 1).state, TaskState::kRunning);
  EXPECT_EQ(h.TaskOf(id, 4).state, TaskState::kPending);
}

TEST_F(SeedsTest, AModelThatItsFoldIsBetterWithoutIsTold) {
  const std::string id = BeginAndTrainFourModels();
  PublishedPrediction p = h.Prediction(99, Quality::kFull, h.now);
  const Job job = h.Stored(id);
  for (const int task : {1, 2, 4}) p.members.push_back(*job.tasks[task].member);
  p.worse = {{/*fold=*/0, /*trial=*/0, /*seed=*/1, /*with=*/0.75, /*without=*/0.875}};
  const Decision last = EndWith(id, p);
  EXPECT_EQ(last.rule, DecisionRule::kB7);
  EXPECT_EQ(last.cause,
            "accuracy on the rows that a fold validates is worse with fold-0-seed-1 (0.75 with it, "
            "0.875 without)");
  EXPECT_EQ(last.from, "4 models");
  EXPECT_EQ(last.to, "3 models answer");
}

// A model may be missing for other reasons: the publisher had no time for it, or its files are
// damaged.
TEST_F(SeedsTest, AModelThatDoesNotAnswerIsNotCalledWorse) {
  const std::string id = BeginAndTrainFourModels();
  PublishedPrediction p = h.Prediction(99, Quality::kFull, h.now);
  const Job job = h.Stored(id);
  for (const int task : {1, 2, 4}) p.members.push_back(*job.tasks[task].member);
  EndWith(id, p);
  EXPECT_EQ(h.Rules(id), std::vector<std::string>{"B9"}) << "the seeds came into the Plan";
}

TEST_F(SeedsTest, FoldsThatScoreBelowTheFloorAreCountedOnceWithTheirTrueCause) {
  const std::string id = BeginAndTrainFourModels();
  PublishedPrediction p = h.Prediction(99, Quality::kDegraded, h.now);
  p.members = {*h.Stored(id).tasks[1].member};
  p.left_out = {1};
  p.left_out_score = 0.25;
  p.left_out_floor = 0.5;
  const Decision last = EndWith(id, p);
  EXPECT_EQ(last.rule, DecisionRule::kB7);
  EXPECT_EQ(last.cause,
            "accuracy on the rows of fold 1: 0.25 by its models, 0.5 by the floor (prior)");
  EXPECT_EQ(last.from, "2 folds");
  EXPECT_EQ(last.to, "1 fold answers");
}

TEST_F(SeedsTest, AFoldThatAnswersAndWasLeftOutByALaterChoiceCountsOnce) {
  const std::string id = BeginAndTrainFourModels();
  PublishedPrediction p = h.Prediction(99, Quality::kDegraded, h.now);
  p.members = {*h.Stored(id).tasks[1].member};
  p.left_out = {0, 1};
  const Decision last = EndWith(id, p);
  EXPECT_EQ(last.rule, DecisionRule::kB7);
  EXPECT_EQ(last.from, "2 folds");
  EXPECT_EQ(last.to, "1 fold answers");
}

}  // namespace
}  // namespace traind
