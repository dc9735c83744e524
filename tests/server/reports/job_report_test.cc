#include "server/reports/job_report.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
absl::Time At(double s) { return kStart + absl::Seconds(s); }

Attempt AttemptOf(TaskKind kind, double from, double to, int slots) {
  Attempt attempt;
  attempt.kind = kind;
  attempt.started_at = At(from);
  attempt.ended_at = At(to);
  attempt.slots.resize(static_cast<size_t>(slots));
  return attempt;
}

// Three folds of 20 epochs were asked for; one is done, one stopped, one was dropped.
Job CutJob() {
  Job job;
  job.spec.folds = 3;
  job.spec.epochs = 20;
  job.spec.higher_is_better = false;
  job.state = JobState::kSucceeded;
  job.accepted_at = At(0);
  job.started_at = At(0.5);
  job.finished_at = At(30);
  job.publish_s = 0.25;
  job.tasks.resize(4);
  job.tasks[0].kind = TaskKind::kPrepare;
  for (int k = 0; k < 3; ++k) job.tasks[1 + k].fold = k;
  const auto trained = [&](int fold, TaskState state, double epochs) {
    Task& task = job.tasks[1 + fold];
    task.state = state;
    task.epochs_planned = 20;
    task.epochs_done = epochs;
    task.member.emplace();
    task.member->complete = state == TaskState::kDone;
    task.member->epochs_done = epochs;
    task.measured.epoch_s = 0.9;
    task.measured.evaluate_s = 0.1;
    task.spent = {0.5, 1, 0.5};
  };
  trained(0, TaskState::kDone, 20);
  trained(1, TaskState::kPartial, 10);
  job.tasks[3].state = TaskState::kDropped;
  Plan plan;
  plan.folds = 2;
  plan.epochs = 20;
  job.plans = {plan};
  job.decisions = {{At(2), DecisionRule::kB2, "too slow", "3 folds", "2 folds"},
                   {At(3), DecisionRule::kB9, "faster", "10 epochs", "20 epochs"}};
  job.attempts = {AttemptOf(TaskKind::kPrepare, 0.5, 1.5, 0),
                  AttemptOf(TaskKind::kTrain, 1.5, 22, 1), AttemptOf(TaskKind::kTrain, 1.5, 12, 2)};
  return job;
}

TEST(JobReportTest, TheUsedShareIsOfTheWindowBeforeTheReserve) {
  Job job = CutJob();
  EXPECT_FALSE(ReportOf(job, {}, At(30)).used_share) << "it has no deadline";
  job.deadline = At(45);
  job.plans.back().reserve = absl::Seconds(5);
  job.plans.back().parallel_folds = 3;
  // There were 3 x 40 s: PREPARE took 3 x 1 s, folds 20.5 s and 2 x 10.5 s.
  EXPECT_NEAR(*ReportOf(job, {}, At(30)).used_share, (3 + 20.5 + 21) / 120, 1e-9);
  job.attempts[1].ended_at = absl::InfiniteFuture();
  EXPECT_NEAR(*ReportOf(job, {}, At(30)).used_share, (3 + 38.5 + 21) / 120, 1e-9);
  EXPECT_EQ(ReportOf(job, {}, At(30)).revisions, 0);
  job.plans.resize(3, job.plans[0]);
  EXPECT_EQ(ReportOf(job, {}, At(30)).revisions, 2);
  job.state = JobState::kRunning;
  EXPECT_FALSE(ReportOf(job, {}, At(30)).used_share);
}

TEST(JobReportTest, WhatTrainingTookIsAddedOverItsAttempts) {
  Job job = CutJob();
  const JobReport unmeasured = ReportOf(job, {}, At(40));
  EXPECT_FALSE(unmeasured.utilisation || unmeasured.energy_joules || unmeasured.epoch_device_s);
  job.attempts[1].slots = {0, 1};
  job.attempts[1].resources = {"", 20, 20, 0.9, "", 36, 5000, 300, 7000};
  job.attempts[2].slots = {2, 3};
  job.attempts[2].resources = {"", 10, 10, 0.6, "slow", 12, -1, 500, 0};
  const JobReport report = ReportOf(job, {}, At(40));
  EXPECT_DOUBLE_EQ(*report.utilisation, 0.8);
  EXPECT_EQ(report.peak_memory_bytes, 500);
  EXPECT_EQ(report.peak_device_bytes, 7000);
  EXPECT_DOUBLE_EQ(*report.energy_joules, 5000);
  EXPECT_DOUBLE_EQ(*report.epoch_device_s, 2);
  EXPECT_DOUBLE_EQ(*report.epoch_joules, 250) << "of the epochs whose energy is known";
}

TEST(JobReportTest, ModelsAreCountedBesideFolds) {
  Job job = CutJob();
  job.spec.seeds = 3;
  Task extra_seed = job.tasks[1];
  extra_seed.seed = 1;
  extra_seed.epochs_done = 4;
  job.tasks.push_back(extra_seed);
  extra_seed.seed = 2;
  extra_seed.state = TaskState::kFailed;
  extra_seed.member.reset();
  job.tasks.push_back(extra_seed);
  const JobReport report = ReportOf(job, {}, At(30));
  EXPECT_EQ(report.models_asked, 9);
  EXPECT_EQ(report.models_trained, 3);
  EXPECT_EQ(report.folds_done, 1);
  EXPECT_EQ(report.folds_partial, 1);
  EXPECT_EQ(report.epochs_done, 15) << "of the folds";
  EXPECT_EQ(report.more->buys, ReportOf(CutJob(), {}, At(30)).more->buys);
}

TEST(JobReportTest, PlannedAndDoneAreCounted) {
  const JobReport report = ReportOf(CutJob(), {}, At(40));
  EXPECT_EQ(report.folds_asked, 3);
  EXPECT_EQ(report.folds_planned, 2);
  EXPECT_EQ(report.folds_done, 1);
  EXPECT_EQ(report.folds_partial, 1);
  EXPECT_EQ(report.epochs_asked, 20);
  EXPECT_EQ(report.epochs_done, 15);
}

TEST(JobReportTest, EveryPhaseHasItsTimeAndTrainingIsTheRest) {
  const JobReport report = ReportOf(CutJob(), {}, At(40));
  EXPECT_NEAR(report.queue_s, 0.5, 1e-9);
  EXPECT_NEAR(report.prepare_s, 1, 1e-9);
  EXPECT_NEAR(report.probe_s, 1, 1e-9);
  EXPECT_NEAR(report.validate_s, 2, 1e-9);
  EXPECT_NEAR(report.predict_s, 1.25, 1e-9);
  EXPECT_NEAR(report.train_s, 20.5 + 10.5 - 1 - 2 - 1, 1e-9);
  EXPECT_NEAR(report.device_s, 20.5 + 2 * 10.5, 1e-9);
}

TEST(JobReportTest, OnlyCutsAreToldAsCuts) {
  const JobReport report = ReportOf(CutJob(), {}, At(40));
  ASSERT_EQ(report.cuts.size(), 1u);
  EXPECT_EQ(report.cuts[0], "3 folds -> 2 folds (B2: too slow)");
}

TEST(JobReportTest, WhatMoreTimeWouldBuyFollowsTheCurve) {
  std::vector<MetricPoint> metrics;
  for (int e = 1; e <= 10; ++e) {
    MetricPoint point;
    point.fold = 1;
    point.epoch = e;
    point.name = "val_metric";
    point.value = 0.2 + 1.0 / e;
    metrics.push_back(point);
  }
  const JobReport report = ReportOf(CutJob(), {metrics, {}}, At(40));
  ASSERT_TRUE(report.more);
  // One fold of 20 epochs and half of another, one second per epoch, one at a time.
  EXPECT_EQ(report.more->time, absl::Seconds(30));
  EXPECT_EQ(report.more->buys, "1 more fold, up to 10 more epochs for 1 fold");
  EXPECT_NEAR(report.more->now.value(), 0.3, 1e-9);
  EXPECT_NEAR(report.more->expected.value(), 0.25, 1e-9);
}

TEST(JobReportTest, AJobThatWasNotCutWantsNoMoreTime) {
  Job job = CutJob();
  job.spec.folds = 1;
  job.tasks.resize(2);
  EXPECT_FALSE(ReportOf(job, {}, At(40)).more);
  // A fold that ran out of patience would not use more time either.
  job.tasks[1].epochs_done = job.tasks[1].member->epochs_done = 8;
  EXPECT_FALSE(ReportOf(job, {}, At(40)).more);
}

// A Job with further trials whose time is over, and the answers that have stood meanwhile.
Job AutomaticJob() {
  Job job = CutJob();
  job.spec.folds = 1;
  job.tasks.resize(2);
  job.spec.trials.resize(3);
  job.deadline = At(32);
  job.decisions.clear();
  return job;
}
std::vector<Answer> FallingErrors() {
  std::vector<Answer> answers;
  for (int n = 1; n <= 8; ++n) {
    Answer answer;
    answer.number = n;
    answer.at = At(4 * n);
    answer.oof_score = 0.2 + 1.0 / n;
    answer.comparable = n > 1;
    answers.push_back(answer);
  }
  return answers;
}

TEST(JobReportTest, AnswersAreToldByTheTimeSinceTheJobsTimeBegan) {
  Job job = AutomaticJob();
  job.waited = absl::Seconds(1);
  job.state = JobState::kRunning;
  const JobReport report = ReportOf(job, {{}, FallingErrors()}, At(32));
  ASSERT_EQ(report.answers.size(), 8u);
  EXPECT_NEAR(report.answers[1].at_s, 7, 1e-9);
  EXPECT_EQ(report.answers[1].answer.number, 2);
  EXPECT_FALSE(report.more) << "it still runs";
}

TEST(JobReportTest, WhatMoreTrialsWouldBuyFollowsTheAnswers) {
  const JobReport report = ReportOf(AutomaticJob(), {{}, FallingErrors()}, At(40));
  ASSERT_TRUE(report.more);
  EXPECT_EQ(report.more->time, absl::Seconds(32));
  EXPECT_EQ(report.more->buys, "models of further trials");
  EXPECT_NEAR(report.more->now.value(), 0.325, 1e-9);
  EXPECT_NEAR(report.more->expected.value(), 0.2 + 1.0 / 16, 1e-6);
}

TEST(JobReportTest, NoMoreTrialsAreToldWhereNothingIsExpectedOfThem) {
  Job job = AutomaticJob();
  job.decisions.emplace_back().trial_note = {TrialNote::kNoGain};
  EXPECT_FALSE(ReportOf(job, {{}, FallingErrors()}, At(40)).more);
  job = AutomaticJob();
  job.spec.trials.resize(1);
  EXPECT_FALSE(ReportOf(job, {{}, FallingErrors()}, At(40)).more);
  job = AutomaticJob();
  job.finish_requested = true;
  EXPECT_FALSE(ReportOf(job, {{}, FallingErrors()}, At(40)).more);
}

TEST(JobReportTest, ColumnsAreToldTheMostImportantOneFirst) {
  std::vector<MetricPoint> metrics;
  const auto add = [&metrics](int fold, const char* name, double value) {
    MetricPoint point;
    point.fold = fold;
    point.name = name;
    point.value = value;
    metrics.push_back(point);
  };
  add(0, "importance:age", 9);  // of an Attempt that was lost
  add(0, "importance:age", 0.02);
  add(0, "importance:town: size", 0.05);
  add(0, "val_metric", 3);
  add(1, "importance:age", 0.04);
  const JobReport report = ReportOf(CutJob(), {metrics, {}}, At(40));
  ASSERT_EQ(report.importance.size(), 2u);
  EXPECT_EQ(report.importance[0].column, "town: size");
  EXPECT_FALSE(report.importance[0].error);
  EXPECT_EQ(report.importance[1].folds, 2);
  EXPECT_NEAR(report.importance[1].drop, 0.03, 1e-12);
  EXPECT_NEAR(report.importance[1].error.value(), 0.01, 1e-12);
}

TEST(JobReportTest, ColumnsAreWorthToTheAnswerWhatTheyAreToItsModelsByTheirWeights) {
  std::vector<MetricPoint> metrics;
  const auto add = [&metrics](int fold, int64_t attempt, const char* name, double value) {
    MetricPoint point;
    point.fold = fold;
    point.attempt = attempt;
    point.name = name;
    point.value = value;
    metrics.push_back(point);
  };
  add(0, 1, "importance:age", 0.1);
  add(0, 2, "importance:age", 0.5);
  add(0, 3, "importance:age", 9);  // a model that does not answer
  add(1, 4, "importance:age", 0.6);
  Job job = CutJob();
  job.prediction.emplace();
  for (const auto& [attempt, weight] :
       {std::pair<int, double>{1, 0.3}, {2, 0.1}, {4, 0.4}, {5, 0.2}}) {
    Member& member = job.prediction->members.emplace_back();
    member.attempt = attempt;
    member.weight = weight;
  }
  JobReport report = ReportOf(job, {metrics, {}}, At(40));
  ASSERT_EQ(report.importance.size(), 1u);
  EXPECT_EQ(report.importance[0].folds, 2);
  EXPECT_NEAR(report.importance[0].drop, (0.2 + 0.6) / 2, 1e-12);
  EXPECT_NEAR(report.importance[0].error.value(), 0.2, 1e-12);
  // Where none of the models that answer has told, the others tell.
  for (Member& member : job.prediction->members) member.attempt += 100;
  report = ReportOf(job, {metrics, {}}, At(40));
  ASSERT_EQ(report.importance.size(), 1u);
  EXPECT_NEAR(report.importance[0].drop, (9 + 0.6) / 2, 1e-12);
}

TEST(JobReportTest, ARunningJobCountsItsTimeSoFar) {
  Job job = CutJob();
  job.state = JobState::kRunning;
  job.attempts[1].ended_at = absl::InfiniteFuture();
  EXPECT_NEAR(ReportOf(job, {}, At(5)).device_s, 3.5 + 2 * 3.5, 1e-9);
  EXPECT_FALSE(ReportOf(job, {}, At(5)).more);
}

TEST(JobReportTest, PredictingWithAnotherJobsModelsIsNoTraining) {
  Job job;
  job.state = JobState::kSucceeded;
  job.accepted_at = At(0);
  job.started_at = At(0);
  job.finished_at = At(4);
  job.tasks.resize(1);
  job.tasks[0].kind = TaskKind::kPredict;
  job.attempts = {AttemptOf(TaskKind::kPredict, 0, 3, 1)};
  const JobReport report = ReportOf(job, {}, At(4));
  EXPECT_EQ(report.train_s, 0);
  EXPECT_EQ(report.predict_s, 3);
  EXPECT_EQ(report.device_s, 3);
}

}  // namespace
}  // namespace traind
