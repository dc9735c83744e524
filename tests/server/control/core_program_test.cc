// Jobs that run a program of their user: folds without a floor and without a Prediction.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

class CoreProgramTest : public ::testing::Test {
 protected:
  CoreProgramTest() { house.Attach("w", 2); }

  std::string Begin(int folds, int epochs = 1) {
    Job made = CoreHarness::MakeJob("program", folds);
    made.spec.has_test = false;
    made.spec.metric.clear();
    made.spec.epochs = epochs;
    made.spec.trials = {Trial{"", kProgramKind, epochs, 0}};
    const std::string job = house.SubmitJob(std::move(made));
    facts::TableReady ready;
    ready.table = "jobs/" + job;
    const int64_t attempt = house.AttemptOf(job, 0);
    house.Say(attempt, ready);
    house.Say(attempt, CoreHarness::Ended());
    return job;
  }

  CoreHarness house;
};

TEST_F(CoreProgramTest, ItsFoldsAreItsAnswerAndNothingIsPublished) {
  const std::string job = Begin(2);
  EXPECT_EQ(house.State(job), JobState::kRunning);
  for (int fold = 0; fold < 2; ++fold) {
    const int64_t attempt = house.AttemptOf(job, 1 + fold);
    EXPECT_TRUE(house.Say(attempt, CoreHarness::Started()).publishes.empty());
    EXPECT_TRUE(house.Say(attempt, CoreHarness::Saved(true, true)).publishes.empty());
    EXPECT_TRUE(house.Say(attempt, CoreHarness::Ended()).publishes.empty());
  }
  const Job stored = house.Stored(job);
  EXPECT_EQ(stored.state, JobState::kSucceeded);
  EXPECT_EQ(stored.end_reason, JobEndReason::kCompleted);
  EXPECT_FALSE(stored.prediction.has_value());
  EXPECT_TRUE(stored.decisions.empty());
}

TEST_F(CoreProgramTest, WithoutAMetricThereIsNoScoreAndWithOneThereIs) {
  const std::string job = Begin(2);
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (const double told : {none, 0.0}) {
    const size_t fold = std::isnan(told) ? 1 : 2;
    const int64_t attempt = house.AttemptOf(job, static_cast<int>(fold));
    facts::Epoch epoch;
    epoch.epoch = 1;
    epoch.val_metric = epoch.best_metric = told;
    house.Say(attempt, epoch);
    EXPECT_EQ(house.Stored(job).tasks[fold].score.has_value(), !std::isnan(told));
    facts::FoldSaved saved = CoreHarness::Saved(true, true);
    saved.score = told;
    house.Say(attempt, saved);
    house.Say(attempt, CoreHarness::Ended());
    const Job stored = house.Stored(job);
    EXPECT_EQ(stored.tasks[fold].score.has_value(), !std::isnan(told));
    ASSERT_TRUE(stored.tasks[fold].member.has_value());
    EXPECT_EQ(stored.tasks[fold].member->score, 0);
  }
}

TEST_F(CoreProgramTest, AFoldThatFailedLeavesTheOthersAnswer) {
  const std::string job = Begin(2);
  house.Say(house.AttemptOf(job, 1), CoreHarness::Ended(AttemptEndReason::kUserError, "exit 3"));
  EXPECT_EQ(house.State(job), JobState::kRunning);
  house.FinishFold(job, 1);
  EXPECT_EQ(house.State(job), JobState::kSucceeded);
  for (const Decision& decision : house.Stored(job).decisions) {
    EXPECT_NE(decision.rule, DecisionRule::kB8) << "the failed fold left nothing that answers";
  }
}

TEST_F(CoreProgramTest, WithoutAnyAnswerItHasFailedForItsOwnReason) {
  const std::string job = Begin(1);
  house.Say(house.AttemptOf(job, 1), CoreHarness::Ended(AttemptEndReason::kUserError, "exit 3"));
  const Job stored = house.Stored(job);
  EXPECT_EQ(stored.state, JobState::kFailed);
  EXPECT_EQ(stored.end_reason, JobEndReason::kUserError);
  EXPECT_NE(stored.end_message.find("exit 3"), std::string::npos);
  EXPECT_TRUE(stored.decisions.empty());
}

TEST_F(CoreProgramTest, WhatItHadLeftBeforeItFailedIsTheAnswerAndTheFailureIsTold) {
  const std::string job = Begin(1);
  const int64_t attempt = house.AttemptOf(job, 1);
  house.Say(attempt, CoreHarness::Saved(false, false));
  house.Say(attempt, CoreHarness::Ended(AttemptEndReason::kUserError, "exit 3"));
  const Job stored = house.Stored(job);
  EXPECT_EQ(stored.state, JobState::kSucceeded);
  EXPECT_EQ(stored.end_reason, JobEndReason::kUserError);
  EXPECT_NE(stored.end_message.find("exit 3"), std::string::npos);
  EXPECT_TRUE(stored.decisions.empty());
}

TEST_F(CoreProgramTest, AKilledProgramIsStartedAgain) {
  const std::string job = Begin(1);
  const int64_t first = house.AttemptOf(job, 1);
  house.Say(first, CoreHarness::Started());
  house.Say(first, CoreHarness::Ended(AttemptEndReason::kInternal, "signal 9"));
  house.Wait(absl::Seconds(5));
  const int64_t second = house.AttemptOf(job, 1);
  EXPECT_GT(second, first);
  house.FinishFold(job, 0);
  EXPECT_EQ(house.State(job), JobState::kSucceeded);
}

// Half of its 60 s are over, and an epoch took 25 s: what it has saved by then may answer.
TEST_F(CoreProgramTest, AKilledProgramWithoutAnAnswerIsStartedAgainThoughNoEpochFits) {
  const std::string job = Begin(1, 3);
  const int64_t first = house.AttemptOf(job, 1);
  house.Say(first, CoreHarness::Started());
  for (int i = 0; i < 5; ++i) {
    house.Wait(absl::Seconds(5));
    house.Say(first, facts::Progress());
  }
  facts::Epoch epoch;
  epoch.epoch = 1;
  epoch.epoch_s = 25;
  house.Say(first, epoch);
  for (int i = 0; i < 2; ++i) {
    house.Wait(absl::Seconds(5));
    house.Say(first, facts::Progress());
  }
  house.Say(first, CoreHarness::Ended(AttemptEndReason::kInternal, "signal 9"));
  house.Wait(absl::Seconds(2));
  EXPECT_EQ(house.TaskOf(job, 1).state, TaskState::kRunning);
  EXPECT_GT(house.AttemptOf(job, 1), first);
}

TEST_F(CoreProgramTest, AKilledProgramGoesOnAlsoWhereAnAnswerIsThere) {
  const std::string job = Begin(1);
  const int64_t first = house.AttemptOf(job, 1);
  house.Say(first, CoreHarness::Started());
  for (int i = 0; i < 7; ++i) {
    house.Wait(absl::Seconds(5));
    house.Say(first, facts::Progress());
  }
  house.Say(first, CoreHarness::Saved(false, false));
  house.Say(first, CoreHarness::Ended(AttemptEndReason::kInternal, "signal 9"));
  house.Wait(absl::Seconds(2));
  EXPECT_EQ(house.TaskOf(job, 1).state, TaskState::kRunning);
  EXPECT_GT(house.AttemptOf(job, 1), first);
}

TEST_F(CoreProgramTest, WhatWasStoppedInTimeIsTold) {
  const std::string job = Begin(1);
  const int64_t attempt = house.AttemptOf(job, 1);
  house.Say(attempt, CoreHarness::Started());
  for (int i = 0; i < 10; ++i) {
    house.Wait(absl::Seconds(5));
    house.Say(attempt, facts::Progress());
  }
  facts::FoldSaved saved = CoreHarness::Saved(false, true);
  saved.stopped_by = StopCause::kTime;
  house.Say(attempt, saved);
  house.Say(attempt, CoreHarness::Ended(AttemptEndReason::kStoppedInTime));
  const Job stored = house.Stored(job);
  EXPECT_EQ(stored.state, JobState::kSucceeded);
  EXPECT_EQ(stored.end_reason, JobEndReason::kBudgetReached);
  ASSERT_FALSE(stored.decisions.empty());
  EXPECT_EQ(stored.decisions.back().rule, DecisionRule::kB8);
  EXPECT_EQ(stored.decisions.back().to, "the files that were there are the answer");
}

// A search over programs with nine epochs and one fold, a slot for one of them at a time.
class CommandSearchTest : public ::testing::Test {
 protected:
  CommandSearchTest() {
    house.Attach("w", 1);
    Job made = CoreHarness::MakeJob("search", 1);
    made.spec.epochs = 9;
    for (int i = 0; i < 5; ++i) made.spec.trials.push_back({"", kCommandKind, 9, 0});
    made.spec.search = {"asha", {{"model.command.settings.lr", "uniform(0, 1)"}}, 3};
    job = house.SubmitJob(std::move(made));
    house.PrepareJob(job);
  }
  // Tells epochs up to the last one; returns the stops that it had for answer.
  std::vector<StopCommand> Report(int task, int epochs, double metric) {
    std::vector<StopCommand> stops;
    house.Say(house.AttemptOf(job, task), CoreHarness::Started());
    for (int i = 1; i <= epochs; ++i) {
      facts::Epoch epoch;
      epoch.epoch = i;
      epoch.epoch_s = 0.1;
      epoch.val_metric = epoch.best_metric = metric;
      house.now += absl::Milliseconds(100);
      const Turn turn = house.Say(house.AttemptOf(job, task), epoch);
      stops.insert(stops.end(), turn.stops.begin(), turn.stops.end());
    }
    return stops;
  }
  void End(int task, double score) {
    const int64_t attempt = house.AttemptOf(job, task);
    house.Say(attempt, CoreHarness::Saved(true, true, score, 9));
    house.Say(attempt, CoreHarness::Ended());
    house.Publish(job, Quality::kFull);
  }

  CoreHarness house;
  std::string job;
};

TEST_F(CommandSearchTest, ATrialWhoseMetricIsNotAmongTheBestStopsWithinItsFold) {
  for (int task = 1; task <= 2; ++task) {
    EXPECT_TRUE(Report(task, 9, 0.9 - 0.1 * task).empty());
    End(task, 0.9);
  }
  ASSERT_EQ(house.TaskOf(job, 3).trial, 2);
  const std::vector<StopCommand> stops = Report(3, 1, 0.3);
  ASSERT_EQ(stops.size(), 1u);
  EXPECT_EQ(stops[0].mode, StopMode::kPredict) << "what it has learnt answers";
  const Decision told = house.Stored(job).decisions.back();
  EXPECT_EQ(told.trial_note, (TrialNote{TrialNote::kWorse, 2}));
  EXPECT_NE(told.cause.find("place 3 of 3"), std::string::npos) << told.cause;
  // It leaves nothing, and the next trial begins.
  house.Say(house.AttemptOf(job, 3), CoreHarness::Ended(AttemptEndReason::kStoppedInTime));
  EXPECT_EQ(house.TaskOf(job, 3).state, TaskState::kFailed);
  ASSERT_EQ(house.TaskOf(job, 4).trial, 3);
  EXPECT_TRUE(Report(4, 9, 0.85).empty()) << "the best of four";
}

TEST_F(CommandSearchTest, ProgramsThatTellNoMetricAreNotStopped) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  for (int task = 1; task <= 4; ++task) {
    EXPECT_TRUE(Report(task, 9, none).empty());
    End(task, 0.9);
  }
}

}  // namespace
}  // namespace traind
