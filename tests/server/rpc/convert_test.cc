#include "server/rpc/job_conversion.h"

#include <gtest/gtest.h>

#include "server/rpc/worker_conversion.h"

namespace traind {
namespace {

const absl::Time kNow = absl::FromUnixMillis(1'795'000'000'123);

Job RunningJob() {
  Job job;
  job.id = "a-1";
  job.spec.name = "a";
  job.spec.metric = "accuracy";
  job.state = JobState::kRunning;
  job.accepted_at = kNow - absl::Seconds(10);
  job.deadline = kNow + absl::Seconds(50);
  Task prepare;
  prepare.kind = TaskKind::kPrepare;
  Task fold;
  fold.fold = 0;
  fold.state = TaskState::kRunning;
  fold.epochs_planned = 20;
  fold.epochs_done = 3;
  fold.live.emplace();
  fold.live->at = kNow - absl::Seconds(1);
  fold.live->epoch = 3.5;
  fold.live->loss = 0.25;
  job.tasks = {prepare, fold};
  return job;
}

TEST(ConvertTest, ARunningJobHasItsTimeAndLiveFigures) {
  const v1::Job job = ToProto(RunningJob(), {"/state", kNow, false});
  EXPECT_EQ(job.remaining_s(), 50);
  EXPECT_FALSE(job.has_started_at());
  EXPECT_FALSE(job.has_finished_at());
  EXPECT_FALSE(job.has_predictions());
  EXPECT_EQ(job.results_dir(), "/state/jobs/a-1");
  ASSERT_EQ(job.folds_size(), 1);  // PREPARE is none
  EXPECT_EQ(job.folds(0).progress().done(), 3.5);
  EXPECT_EQ(job.folds(0).progress().planned(), 20);
  EXPECT_EQ(job.folds(0).live().loss(), 0.25);
}

TEST(ConvertTest, StaleFiguresAndThoseOfAListAreLeftOut) {
  EXPECT_FALSE(ToProto(RunningJob(), {"/s", kNow + absl::Seconds(20), false}).folds(0).has_live());
  EXPECT_FALSE(ToProto(RunningJob(), {"/s", kNow, true}).folds(0).has_live());
}

TEST(ConvertTest, AJobWithoutADeadlineHasNoTimeLeft) {
  Job job = RunningJob();
  job.deadline = absl::InfiniteFuture();
  const v1::Job out = ToProto(job, {"/s", kNow, false});
  EXPECT_FALSE(out.has_deadline());
  EXPECT_FALSE(out.has_remaining_s());
}

TEST(ConvertTest, TheFloorsScoreIsTheLatestOne) {
  Job job = RunningJob();
  job.prediction.emplace();
  job.prediction->floor_score = 0.1;  // when it was published
  EXPECT_EQ(ToProto(job, {"/s", kNow, false}).scores().floor(), 0.1);
  job.floor_score = 0.97;
  EXPECT_EQ(ToProto(job, {"/s", kNow, false}).scores().floor(), 0.97);
}

TEST(ConvertTest, APredictionsPathIsAbsoluteAndItsFoldsAreInOrder) {
  Job job = RunningJob();
  PublishedPrediction p;
  p.number = 2;
  p.path = "jobs/a-1/prediction-2/predictions.csv";
  p.quality = Quality::kDegraded;
  p.members.resize(2);
  p.members[0].fold = 3;
  p.members[1].fold = 1;
  p.oof_score = 0.9;
  p.at = kNow;
  job.prediction = p;
  const v1::Job out = ToProto(job, {"/state", kNow, false});
  EXPECT_EQ(out.predictions().path(), "/state/jobs/a-1/prediction-2/predictions.csv");
  EXPECT_EQ(out.quality(), v1::QUALITY_DEGRADED);
  ASSERT_EQ(out.predictions().folds_size(), 2);
  EXPECT_EQ(out.predictions().folds(0), 1);
  EXPECT_EQ(out.scores().oof(), 0.9);
  EXPECT_FALSE(out.scores().has_test());
  // Without rows to predict there is a score, and no file.
  job.prediction->number = 0;
  const v1::Job scored = ToProto(job, {"/state", kNow, false});
  EXPECT_FALSE(scored.has_predictions());
  EXPECT_EQ(scored.scores().oof(), 0.9);
}

TEST(ConvertTest, TimesBeforeTheEpochAreValid) {
  const auto time = ToProto(absl::FromUnixMillis(-1));
  EXPECT_EQ(time.seconds(), -1);
  EXPECT_EQ(time.nanos(), 999'000'000);
}

TEST(ConvertWorkerTest, DeadlinesTravelAsWhatRemains) {
  Job job = RunningJob();
  job.spec_json = "{}";
  StartCommand start;
  start.worker = "w";
  start.attempt = 9;
  start.job = std::make_shared<const Job>(job);
  start.fold = 0;
  start.slots = {1, 2};
  start.deadline = kNow + absl::Milliseconds(1500);
  const v1::StartTask out = ToProto(start, kNow).start();
  EXPECT_EQ(out.remaining_ms(), 1500);
  EXPECT_EQ(out.stop_ms(), -1);
  EXPECT_EQ(out.world_size(), 2);
  start.stop_at = kNow - absl::Seconds(1);
  EXPECT_EQ(ToProto(start, kNow).start().stop_ms(), 0);
  start.deadline = absl::InfiniteFuture();
  EXPECT_EQ(ToProto(start, kNow).start().remaining_ms(), -1);
}

}  // namespace
}  // namespace traind
