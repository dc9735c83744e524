// Plans as the facts come in: what they are made from, and what is told of them.
#include <gmock/gmock.h>

#include <absl/strings/str_cat.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

TEST(PlanTest, FoldsThatWereCutProveNothingAboutTheSpeed) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string id = h.SubmitJob(h.MakeJob("a", 5));
  h.PrepareJob(id);
  // 1 s a step, 5 s an epoch by the first timed steps: twice too slow.
  for (const int fold : {0, 1}) {
    h.now += absl::Milliseconds(500);
    h.Say(h.AttemptOf(id, 1 + fold), h.Started(5));
    h.Say(h.AttemptOf(id, 1 + fold), h.Probe(1.0));
    h.Wait(absl::Seconds(1));
  }
  const Plan plan = h.Stored(id).plans.back();
  EXPECT_LT(plan.folds, 5);
  // At twice the speed so many fit; what 1 s a step would allow is 4 fewer.
  EXPECT_GE(plan.epochs, 5);
}

TEST(PlanTest, EpochsThatCameBackTooLateForAFoldAreStillMissingThere) {
  CoreHarness h;
  h.Attach("w", 1);
  Job job = h.MakeJob("a", 2);
  const std::string id = h.SubmitJob(std::move(job));
  h.PrepareJob(id);
  const auto epochs = [&](int fold, int from, int to, absl::Duration each) {
    for (int i = from; i <= to; ++i) {
      facts::Epoch epoch;
      epoch.epoch = i;
      epoch.epoch_s = absl::ToDoubleSeconds(each);
      h.now += each;
      h.Say(h.AttemptOf(id, 1 + fold), epoch);
    }
  };
  h.Say(h.AttemptOf(id, 1), h.Started(10));
  epochs(0, 1, 3, absl::Seconds(3));  // 40 x 3 s do not fit
  const int cut = h.Stored(id).plans.back().epochs;
  ASSERT_LT(cut, 20);
  h.Say(h.AttemptOf(id, 1), h.Saved(true, true, 0.9, cut));
  h.Say(h.AttemptOf(id, 1), h.Ended());
  h.Say(h.AttemptOf(id, 2), h.Started(10));
  epochs(1, 1, cut - 2, absl::Milliseconds(50));
  h.Wait(absl::Seconds(7));
  epochs(1, cut - 1, cut - 1, absl::Milliseconds(50));
  ASSERT_EQ(h.Stored(id).plans.back().epochs, 20);
  h.publishes.clear();
  h.Say(h.AttemptOf(id, 2), h.Saved(true, true));
  h.Publish(id, Quality::kDegraded);
  ASSERT_FALSE(h.publishes.empty());
  EXPECT_TRUE(h.publishes.back().request.plan_cut);
}

// Trains fold 0 for the Plan's epochs, of which the first few take so long.
void TrainSlowFold(CoreHarness& h, const std::string& id, int slow, absl::Duration each) {
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, h.Started(10));
  for (int i = 1; i <= slow; ++i) {
    facts::Epoch epoch;
    epoch.epoch = i;
    epoch.epoch_s = absl::ToDoubleSeconds(each);
    h.now += each;
    h.Say(attempt, epoch);
  }
  h.Say(attempt, h.Saved(true, true, 0.9, h.Stored(id).plans.back().epochs));
  h.Say(attempt, h.Ended());
}

TEST(PlanTest, ACutJobThatEndsEarlySaysThatNoFoldFits) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 4));
  h.PrepareJob(id);
  TrainSlowFold(h, id, 5, absl::Seconds(8));
  ASSERT_EQ(h.Stored(id).plans.back().folds, 1);
  const Decision last = h.Stored(id).decisions.back();
  EXPECT_EQ(last.from, "1 of 4 folds");
  EXPECT_EQ(last.to, "no further fold fits");
  EXPECT_THAT(last.cause, ::testing::HasSubstr(
                              "left to train in, of which a plan may take 80 %, and a fold of 5 "
                              "epochs takes 40"));
}

TEST(PlanTest, ACutJobThatEndsEarlySaysThatNoFoldUsesMoreEpochs) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 1));
  h.PrepareJob(id);
  TrainSlowFold(h, id, 3, absl::Seconds(3));
  ASSERT_LT(h.Stored(id).plans.back().epochs, 20);
  const Decision last = h.Stored(id).decisions.back();
  EXPECT_EQ(last.to, "no epochs come back");
  EXPECT_THAT(last.cause, ::testing::HasSubstr("and no fold trains that could use more epochs"));
}

TEST(PlanTest, TheFirstFoldBeyondItsShareIsPlannedAnew) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 3));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, h.Started(100));
  h.Say(attempt, h.Probe(0.001));  // 2 s a fold, it says
  for (int i = 0; i < 13; ++i) {
    facts::Progress progressed;
    progressed.step = 10 * i;
    progressed.epoch = 0.1 * i;
    h.Step({WorkerFact{"w", h.session, 0, attempt, progressed},
            WorkerHeartbeat{"w", h.session, {attempt}}});
    h.Wait(absl::Seconds(1));
  }
  facts::Epoch slow;
  slow.epoch = 1;
  slow.epoch_s = 12;
  h.Say(attempt, slow);
  h.Wait(absl::Seconds(1));
  const std::vector<std::string> rules = h.Rules(id);
  ASSERT_FALSE(rules.empty());
  EXPECT_LT(h.Stored(id).plans.back().epochs, 20);
}

TEST(PlanTest, FoldsThatCannotBeStartedUsefullyAreDropped) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a", 2));
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  h.Say(attempt, h.Started(100));
  h.Say(attempt, h.Probe(0.5));  // 50 s an epoch
  for (int i = 0; i < 30; ++i) {
    h.Step({WorkerHeartbeat{"w", h.session, {attempt}}});
    h.Wait(absl::Seconds(1));
  }
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kDropped);
  EXPECT_EQ(h.TaskOf(id, 1).state, TaskState::kRunning);
}

TEST(PlanTest, WithoutADeadlineNothingIsStoppedOrCut) {
  CoreHarness h;
  h.Attach("w", 1);
  Job job = h.MakeJob("a");
  job.spec.budget.reset();
  const std::string id = h.SubmitJob(job);
  h.PrepareJob(id);
  const int64_t attempt = h.AttemptOf(id, 1);
  EXPECT_EQ(h.starts.back().stop_at, absl::InfiniteFuture());
  h.Say(attempt, h.Started(100));
  h.Say(attempt, h.Probe(5));
  for (int i = 0; i < 100; ++i) {
    h.Step({WorkerHeartbeat{"w", h.session, {attempt}}});
    h.Wait(absl::Seconds(10));
  }
  EXPECT_EQ(h.AttemptOf(id, 1), attempt);
  EXPECT_TRUE(h.Stored(id).decisions.empty());
  EXPECT_EQ(h.Stored(id).plans.back().epochs, 20);
}

// Lets time go by on a Worker that runs all Attempts of folds which were started.
void WaitBeating(CoreHarness& h, int seconds) {
  std::vector<int64_t> running;
  for (const StartCommand& start : h.starts) {
    if (start.kind == TaskKind::kTrain) running.push_back(start.attempt);
  }
  for (int i = 0; i < seconds; ++i) {
    h.Step({WorkerHeartbeat{"w", h.session, running}});
    h.Wait(absl::Seconds(1));
  }
}

TEST(PlanTest, WhereMuchRunsAPlanIsMadeAnewWhenTheSharesHaveMoved) {
  CoreHarness h;
  h.Attach("w", 100);
  const auto submit = [&h](const std::string& name, int folds) {
    Job job = h.MakeJob(name, folds);
    job.spec.budget = absl::Seconds(1200);
    const std::string id = h.SubmitJob(std::move(job));
    h.PrepareJob(id);
    return id;
  };
  for (int i = 0; i < 9; ++i) submit(absl::StrCat("other-", i), 10);
  // It has ten slots, a tenth of all, and two folds for each.
  const std::string id = submit("a", 20);
  ASSERT_EQ(h.TaskOf(id, 10).state, TaskState::kRunning);
  ASSERT_EQ(h.TaskOf(id, 11).state, TaskState::kPending);
  for (int fold = 0; fold < 10; ++fold) h.Say(h.AttemptOf(id, 1 + fold), h.Started(10));
  for (int i = 1; i <= 2; ++i) {
    WaitBeating(h, 20);
    facts::Epoch epoch;
    epoch.epoch = i;
    epoch.epoch_s = 20;
    h.Say(h.AttemptOf(id, 1), epoch);
  }
  WaitBeating(h, 15);
  const Plan before = h.Stored(id).plans.back();
  ASSERT_EQ(before.folds, 20);
  ASSERT_EQ(before.epochs, 20);
  // Nothing is told of the Job itself from now on. 160 Jobs take turns on 100 slots, so its folds
  // that wait come later.
  for (int i = 0; i < 150; ++i) submit(absl::StrCat("later-", i), 1);
  WaitBeating(h, 15);
  const Plan after = h.Stored(id).plans.back();
  EXPECT_GT(after.revision, before.revision);
  EXPECT_LT(after.epochs, before.epochs);
}

TEST(PlanTest, ARanksOwnDecisionIsRecorded) {
  CoreHarness h;
  h.Attach("w", 1);
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  h.PrepareJob(id);
  h.Say(h.AttemptOf(id, 1),
        facts::Decision{DecisionRule::kPrecision, "the loss was NaN twice", "bf16", "fp32"});
  const Job job = h.Stored(id);
  ASSERT_EQ(job.decisions.size(), 1u);
  EXPECT_EQ(job.decisions[0].rule, DecisionRule::kPrecision);
  EXPECT_EQ(job.decisions[0].cause, "fold-0: the loss was NaN twice");
}

}  // namespace
}  // namespace traind
