// Further trials: when they start, what they are told, and that no fold of trial 0 loses anything.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

using ::testing::HasSubstr;

// A Job of 2 folds with 4 trials, 20 epochs of 0.1 s in trial 0, on a Worker of one slot, or of
// `slots`.
class TrialsTest : public ::testing::Test {
 protected:
  std::string Begin(int slots = 1) {
    h.Attach("w", slots);
    Job job = h.MakeJob("a", 2);
    job.spec.trials = {{"trees", "lightgbm", 20, 5},
                       {"trees-2", "xgboost", 30, 5},
                       {"net", "mlp", 7, 3},
                       {"net-2", "mlp", 8, 3}};
    const std::string id = h.SubmitJob(std::move(job));
    h.PrepareJob(id);
    return id;
  }
  void Train(const std::string& id, int task, double score = 0.9) {
    const int64_t attempt = h.AttemptOf(id, task);
    ASSERT_EQ(h.TaskOf(id, task).state, TaskState::kRunning) << "task " << task;
    h.Say(attempt, h.Started(10));
    for (int i = 1; i <= 5; ++i) {
      facts::Epoch epoch;
      epoch.epoch = i;
      epoch.epoch_s = 0.1;
      h.now += absl::Milliseconds(100);
      h.Say(attempt, epoch);
    }
    h.Say(attempt, h.Saved(true, true, score, 5));
    h.Say(attempt, h.Ended());
    h.Publish(id, Quality::kFull);
  }
  std::vector<std::string> Decided(const std::string& id) {
    std::vector<std::string> to;
    for (const Decision& d : h.Stored(id).decisions) {
      if (d.rule == DecisionRule::kB9) to.push_back(d.to);
    }
    return to;
  }

  CoreHarness h;
};

TEST_F(TrialsTest, BeginWhenTheFoldsOfTheFirstHaveRun) {
  const std::string id = Begin();
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  EXPECT_EQ(h.Stored(id).tasks.size(), 3u) << "a fold waits";
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  const Job job = h.Stored(id);
  ASSERT_EQ(job.tasks.size(), 4u);
  EXPECT_EQ(job.tasks[3].trial, 1);
  EXPECT_EQ(job.tasks[3].fold, 0);
  EXPECT_EQ(job.tasks[3].state, TaskState::kRunning);
  EXPECT_EQ(h.starts.back().trial, 1);
  EXPECT_EQ(h.starts.back().epochs, 30) << "its own, not the Plan's";
  EXPECT_EQ(job.attempts.back().trial, 1);
  EXPECT_EQ(job.plans.back().epochs, 20);
  ASSERT_NO_FATAL_FAILURE(Train(id, 3));
  EXPECT_EQ(h.TaskOf(id, 3).member->kind, "xgboost");
  EXPECT_EQ(h.TaskOf(id, 3).member->trial, 1);
  EXPECT_EQ(h.TaskOf(id, 4).trial, 1);
  EXPECT_EQ(h.TaskOf(id, 4).fold, 1);
  EXPECT_EQ(Decided(id), std::vector<std::string>{"models of further trials, as time allows"});
}

TEST_F(TrialsTest, TheJobEndsWhenAllAreTrained) {
  const std::string id = Begin();
  for (int task = 1; task <= 8; ++task) ASSERT_NO_FATAL_FAILURE(Train(id, task));
  EXPECT_TRUE(h.publishes.back().final);
  EXPECT_EQ(h.publishes.back().request.members.size(), 8u);
  EXPECT_FALSE(h.publishes.back().request.plan_cut);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(id).end_reason, JobEndReason::kCompleted);
  EXPECT_EQ(h.Stored(id).plans.size(), h.Stored(id).plans.back().revision);
}

TEST_F(TrialsTest, AWorseOneIsNamedAndGetsNoMoreFolds) {
  const std::string id = Begin();
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  ASSERT_NO_FATAL_FAILURE(Train(id, 3, 0.3));
  EXPECT_EQ(h.TaskOf(id, 4).trial, 2);
  const Decision last = h.Stored(id).decisions.back();
  EXPECT_THAT(last.cause, HasSubstr("accuracy of trees-2 (xgboost) is clearly worse"));
  EXPECT_EQ(last.to, "trial 1 gets no more folds");
}

TEST_F(TrialsTest, OneThatFailsIsToldAsFailed) {
  const std::string id = Begin();
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  h.Say(h.AttemptOf(id, 3), h.Ended(AttemptEndReason::kUserError, "no such library"));
  const Decision last = h.Stored(id).decisions.back();
  EXPECT_EQ(last.cause, "trees-2 (xgboost) failed on a fold");
  EXPECT_EQ(last.to, "trial 1 gets no more folds");
}

TEST_F(TrialsTest, AreStoppedEarlyEnoughToAnswerOnABusyMachine) {
  const std::string id = Begin();
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  const int64_t second = h.AttemptOf(id, 2);
  h.Say(second, h.Started(10));
  facts::Epoch epoch;
  epoch.epoch = 1;
  epoch.epoch_s = 0.1;
  h.Say(second, epoch);
  h.now += absl::Seconds(3);  // until its answers are there
  h.Say(second, h.Saved(true, true, 0.9, 1));
  h.Say(second, h.Ended());
  ASSERT_EQ(h.starts.back().trial, 1);
  EXPECT_LE(h.starts.back().stop_at, h.Stored(id).deadline - absl::Seconds(3));
}

TEST_F(TrialsTest, ARetryOfAFurtherModelIsNoDecision) {
  const std::string id = Begin();
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  const size_t decisions = h.Stored(id).decisions.size();
  h.Say(h.AttemptOf(id, 3), h.Ended(AttemptEndReason::kRankDied, "signal 9"));
  EXPECT_EQ(h.TaskOf(id, 3).state, TaskState::kPending);
  EXPECT_EQ(h.Stored(id).decisions.size(), decisions);
}

TEST_F(TrialsTest, StartBesideTheLastFoldWhereASlotIsIdle) {
  const std::string id = Begin(2);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kRunning);
  ASSERT_EQ(h.Stored(id).tasks.size(), 4u);
  EXPECT_EQ(h.TaskOf(id, 3).trial, 1);
  EXPECT_EQ(h.TaskOf(id, 3).state, TaskState::kRunning);
}

// Of 5 folds the Plan has 2, each of which may train for 45 s of the 60 s.
TEST_F(TrialsTest, AnIdleSlotIsExplainedWhereFoldsThatWereCutHaveNoTimeToComeBack) {
  h.Attach("w", 2);
  Job made = h.MakeJob("a", 5);
  made.spec.trials = {{"net", "mlp", 20, 5}, {"net-2", "mlp", 2, 5}};
  const std::string id = h.SubmitJob(std::move(made));
  h.PrepareJob(id);
  const int64_t first = h.AttemptOf(id, 1), second = h.AttemptOf(id, 2);
  for (const int64_t attempt : {first, second}) {
    h.Say(attempt, h.Started(100));
    h.Say(attempt, h.Probe(0.05));
  }
  for (int i = 1; i <= 6; ++i) {
    h.Wait(absl::Seconds(5));
    facts::Epoch epoch;
    epoch.epoch = i;
    epoch.epoch_s = 5;
    h.Say(first, epoch);
    h.Say(second, epoch);
  }
  ASSERT_EQ(h.Stored(id).plans.back().folds, 2);
  h.Say(first, h.Saved(true, true, 0.9, 6));
  h.Say(first, h.Ended());
  h.Publish(id, Quality::kDegraded);
  h.Wait(absl::Seconds(1));
  const Job job = h.Stored(id);
  EXPECT_EQ(job.tasks[2].state, TaskState::kRunning);
  EXPECT_EQ(job.tasks[3].state, TaskState::kDropped);
  EXPECT_EQ(Decided(id), (std::vector<std::string>{"9 epochs", "no further model fits"}));
}

TEST_F(TrialsTest, NoneStartsWhileAFoldOfTheFirstWaits) {
  const std::string id = Begin(2);
  // The second time it waits a moment.
  for (int i = 0; i < 2; ++i) {
    h.Say(h.AttemptOf(id, 2), h.Ended(AttemptEndReason::kRankDied, "signal 9"));
  }
  ASSERT_EQ(h.TaskOf(id, 2).state, TaskState::kPending);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  EXPECT_NE(h.TaskOf(id, 2).state, TaskState::kDone);
  h.Wait(absl::Seconds(1));
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kRunning);
}

TEST_F(TrialsTest, AModelOfAnotherTrialMakesRoomForAFoldOfTheFirst) {
  const std::string id = Begin(1);
  h.Attach("v", 1);
  ASSERT_EQ(h.TaskOf(id, 2).state, TaskState::kRunning);
  h.Attach("w", 1, {h.AttemptOf(id, 1)});  // facts are said in the last session
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_EQ(h.TaskOf(id, 3).trial, 1);
  const int64_t further = h.AttemptOf(id, 3);
  const Turn turn = h.Step({WorkerDied{"v", h.session}});
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kPending);
  ASSERT_EQ(turn.stops.size(), 1u);
  EXPECT_EQ(turn.stops[0].attempt, further);
  EXPECT_EQ(turn.stops[0].mode, StopMode::kPredict);
  h.Say(further, h.Saved(false, true, 0.9, 2));
  h.Say(further, h.Ended());
  EXPECT_EQ(h.TaskOf(id, 2).state, TaskState::kRunning);
}

TEST_F(TrialsTest, NoneStartsBeforeAFoldOfTheFirstWasMeasured) {
  const std::string id = Begin(4);
  EXPECT_EQ(h.Stored(id).tasks.size(), 3u) << "two slots are idle, but nothing tells what fits";
  h.Say(h.AttemptOf(id, 1), h.Started());
  h.Say(h.AttemptOf(id, 1), h.Probe(0.001));
  h.Wait(absl::Seconds(1));
  EXPECT_EQ(h.Stored(id).tasks.size(), 5u);
}

TEST_F(TrialsTest, SettingsThatWorkLongerWaitForWhatFits) {
  h.Attach("w", 1);
  Job job = h.MakeJob("a", 2);
  job.spec.trials = {
      {"trees", "lightgbm", 20, 5}, {"slow", "lightgbm", 20, 5}, {"net", "mlp", 7, 3}};
  job.spec_json = R"({"trials": [{"model": {"lightgbm": {"learning_rate": 0.1}}},
      {"model": {"lightgbm": {"learning_rate": 0.005, "num_leaves": 2000}}}, {"model": {"mlp": {}}}]})";
  const std::string id = h.SubmitJob(std::move(job));
  h.PrepareJob(id);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  EXPECT_EQ(h.TaskOf(id, 3).trial, 2);
}

TEST_F(TrialsTest, NoneStartsWhereNothingFits) {
  const std::string id = Begin();
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  const Job job = h.Stored(id);
  h.now = job.deadline - 0.1 * (job.deadline - job.accepted_at);
  h.Step({WorkerHeartbeat{"w", h.session, {h.AttemptOf(id, 2)}}});
  h.Say(h.AttemptOf(id, 2), h.Saved(true, true, 0.9, 5));
  h.Say(h.AttemptOf(id, 2), h.Ended());
  EXPECT_EQ(h.Stored(id).tasks.size(), 3u);
  ASSERT_FALSE(Decided(id).empty());
  EXPECT_EQ(Decided(id).back(), "no further model fits");
}

TEST_F(TrialsTest, AnIdleSlotIsExplainedWhileTheLastModelTrains) {
  const std::string id = Begin(2);
  for (int task = 1; task <= 7; ++task) ASSERT_NO_FATAL_FAILURE(Train(id, task));
  ASSERT_EQ(h.TaskOf(id, 8).state, TaskState::kRunning);
  const Decision last = h.Stored(id).decisions.back();
  EXPECT_EQ(last.cause, "all 4 trials have begun");
  EXPECT_EQ(last.to, "more time is not expected to gain");
  const size_t decisions = h.Stored(id).decisions.size();
  ASSERT_NO_FATAL_FAILURE(Train(id, 8));
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(id).decisions.size(), decisions) << "told once";
}

TEST_F(TrialsTest, ASecondLayerIsToldWithTheScoresThatItWasChosenBy) {
  const std::string id = Begin(1);
  for (int task = 1; task <= 7; ++task) ASSERT_NO_FATAL_FAILURE(Train(id, task));
  const int64_t last = h.AttemptOf(id, 8);
  h.Say(last, h.Started(10));
  h.Say(last, h.Saved(true, true, 0.9, 5));
  h.Say(last, h.Ended());
  PublishedPrediction joined = CoreHarness::Prediction(++h.number, Quality::kFull, h.now);
  joined.tuned.powers = {{0, 0.5}, {2, 0.75}};
  joined.oof_score = 0.25;
  joined.weighed_score = 0.5;
  h.Step({Published{id, joined, false}});
  ASSERT_EQ(h.State(id), JobState::kSucceeded);
  const std::vector<std::string> decided = Decided(id);
  EXPECT_EQ(std::count(decided.begin(), decided.end(), "a second layer joins the trials"), 1);
  EXPECT_THAT(h.Stored(id).decisions.back().cause,
              HasSubstr("accuracy out of fold is 0.25 by a second layer and 0.5 by weights"));
}

// ---- Of a search --------------------------------------------------------------

class SearchTest : public TrialsTest {
 protected:
  // Trials of one kind over a range, of which the first has its own point.
  std::string BeginSearch(const std::string& method, int slots = 1, size_t trials = 8) {
    h.Attach("w", slots);
    Job job = h.MakeJob("a", 2);
    job.spec.trials.assign(trials, {"mlp", "mlp", 20, 5});
    job.spec.search = {method, {{"model.mlp.dropout", "uniform(0, 0.5)"}}, 3};
    job.spec.trials[0].settings =
        std::make_shared<const Settings>(Settings{{"model.mlp.dropout", "0.1"}});
    const std::string id = h.SubmitJob(std::move(job));
    h.PrepareJob(id);
    return id;
  }
  std::string SettingOf(const std::string& id, size_t trial) {
    const Job job = h.Stored(id);
    const auto& settings = job.spec.trials[trial].settings;
    return settings == nullptr ? "" : (*settings)[0].second;
  }
};

TEST_F(SearchTest, ATrialHasSettingsInTheStoreBeforeItBegins) {
  const std::string id = BeginSearch("tpe");
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  EXPECT_EQ(SettingOf(id, 1), "") << "a fold of the first trial waits";
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  ASSERT_EQ(h.TaskOf(id, 3).trial, 1);
  const std::string drawn = SettingOf(id, 1);
  EXPECT_NE(drawn, "");
  EXPECT_EQ(SettingOf(id, 2), "");
  EXPECT_EQ((*h.starts.back().job->spec.trials[1].settings)[0].second, drawn);
  // A traind that starts anew knows them.
  h.Crash();
  h.Attach("w", 1, {h.AttemptOf(id, 3)});
  EXPECT_EQ(SettingOf(id, 1), drawn);
  ASSERT_NO_FATAL_FAILURE(Train(id, 3));
  ASSERT_NO_FATAL_FAILURE(Train(id, 4));
  EXPECT_EQ(h.TaskOf(id, 5).trial, 2);
  EXPECT_NE(SettingOf(id, 2), "");
  EXPECT_NE(SettingOf(id, 2), drawn);
  EXPECT_EQ(SettingOf(id, 1), drawn);
}

TEST_F(SearchTest, WithRungsOnlyTheBestGoOn) {
  const std::string id = BeginSearch("auto");
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  ASSERT_NO_FATAL_FAILURE(Train(id, 3, 0.89));
  EXPECT_EQ(h.TaskOf(id, 4).trial, 2) << "trial 1 has one fold";
  ASSERT_NO_FATAL_FAILURE(Train(id, 4, 0.95));
  EXPECT_EQ(h.TaskOf(id, 5).trial, 2);
  EXPECT_EQ(h.TaskOf(id, 5).fold, 1);
}

TEST_F(SearchTest, ANetworkStopsWithinAFoldWhereOthersAreBetterAfterAsManyEpochs) {
  const std::string id = BeginSearch("asha");
  const auto train_by_epochs = [&](int task, double metric) {
    const int64_t attempt = h.AttemptOf(id, task);
    h.Say(attempt, h.Started(10));
    for (int i = 1; i <= 8; ++i) {
      facts::Epoch epoch;
      epoch.epoch = i;
      epoch.epoch_s = 0.1;
      epoch.best_metric = metric;
      h.now += absl::Milliseconds(100);
      h.Say(attempt, epoch);
    }
    return attempt;
  };
  const auto end = [&](int64_t attempt, double score) {
    h.Say(attempt, h.Saved(true, true, score, 8));
    h.Say(attempt, h.Ended());
    h.Publish(id, Quality::kFull);
  };
  for (int task = 1; task <= 2; ++task) end(train_by_epochs(task, 0.9), 0.9);
  ASSERT_EQ(h.TaskOf(id, 3).trial, 1);
  end(train_by_epochs(3, 0.8), 0.8);
  EXPECT_TRUE(h.stops.empty()) << "two trials tell nothing yet";
  ASSERT_EQ(h.TaskOf(id, 4).trial, 2);
  const int64_t worse = train_by_epochs(4, 0.7);
  ASSERT_EQ(h.stops.size(), 1u);
  EXPECT_EQ(h.stops[0].attempt, worse);
  EXPECT_EQ(h.stops[0].mode, StopMode::kPredict);
  EXPECT_THAT(h.Stored(id).decisions.back().cause,
              HasSubstr("after 3 epochs of fold-0-trial-2 accuracy of mlp has place 3 of 3"));
}

TEST_F(SearchTest, AllTrialsEndTheJob) {
  const std::string id = BeginSearch("tpe");
  for (int task = 1; task <= 16; ++task) ASSERT_NO_FATAL_FAILURE(Train(id, task));
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.publishes.back().request.members.size(), 16u);
}

TEST_F(SearchTest, ATrialThatWaitsAtARungMayGoOn) {
  const std::string id = BeginSearch("auto", 2, 3);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  ASSERT_NO_FATAL_FAILURE(Train(id, 3, 0.89));
  ASSERT_EQ(h.TaskOf(id, 4).state, TaskState::kRunning);
  EXPECT_THAT(Decided(id), ::testing::Not(::testing::Contains("more time is not expected to gain")))
      << "trial 1 has an open fold";
  ASSERT_NO_FATAL_FAILURE(Train(id, 4, 0.88));
  EXPECT_EQ(h.TaskOf(id, 5).trial, 2) << "the other slot has run ahead of the rung";
  ASSERT_NO_FATAL_FAILURE(Train(id, 5, 0.88));
  EXPECT_EQ(Decided(id).back(), "more time is not expected to gain");
}

TEST_F(SearchTest, FewerTrialsThanAskedAreToldBeforeTheyBegin) {
  const std::string id = BeginSearch("tpe", 1, 200);
  ASSERT_NO_FATAL_FAILURE(Train(id, 1));
  ASSERT_NO_FATAL_FAILURE(Train(id, 2));
  const std::vector<Decision> all = h.Stored(id).decisions;
  const auto told = std::find_if(all.begin(), all.end(),
                                 [](const Decision& d) { return d.from == "200 trials"; });
  ASSERT_NE(told, all.end());
  EXPECT_EQ(told->to, "50 trials, and more as time allows");
  EXPECT_THAT(told->cause, HasSubstr("a fold of the first trial takes 500 ms, and "));
}

}  // namespace
}  // namespace traind
