// Jobs that wait for the ends of others (`after`).
#include <gmock/gmock.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Job After(const std::string& request, std::vector<std::string> jobs) {
  Job job = CoreHarness::MakeJob(request);
  job.after = std::move(jobs);
  return job;
}

Job AfterAnyEnd(const std::string& request, std::vector<std::string> jobs) {
  Job job = After(request, std::move(jobs));
  job.spec.after_any_end = true;
  return job;
}

void CancelJob(CoreHarness& h, const std::string& id) { h.Step({Cancel{9, id}}); }

// Trains all folds; the Job has succeeded.
void RunJob(CoreHarness& h, const std::string& id, int folds) {
  h.PrepareJob(id);
  for (int fold = 0; fold < folds; ++fold) h.FinishFold(id, fold);
  for (int i = 0; i < 3 && !IsTerminal(h.State(id)); ++i) h.Publish(id, Quality::kFull);
  ASSERT_EQ(h.State(id), JobState::kSucceeded);
}

TEST(CoreAfterTest, NothingOfAWaitingJobStartsAndItTellsWhy) {
  CoreHarness h;
  const std::string first = h.SubmitJob(CoreHarness::MakeJob("a", 2));
  const std::string second = h.SubmitJob(After("b", {first}));
  h.Attach("w", 4);
  h.Wait(absl::Seconds(3));
  for (const StartCommand& start : h.starts) EXPECT_EQ(start.job->id, first);
  const auto job = h.core().FindJob(second);
  EXPECT_EQ(job->state, JobState::kQueued);
  EXPECT_EQ(job->pending_reason, PendingReason::kOtherJobs);
  EXPECT_EQ(job->waits_for, "the end of job " + first);
}

TEST(CoreAfterTest, TheTimeOfItsBudgetBeginsWithTheEndOfTheLast) {
  CoreHarness h;
  h.Attach("w", 4);
  const std::string a = h.SubmitJob(CoreHarness::MakeJob("a", 2));
  const std::string b = h.SubmitJob(CoreHarness::MakeJob("b", 2));
  const std::string last = h.SubmitJob(After("c", {a, b}));
  EXPECT_EQ(h.Stored(last).deadline, absl::InfiniteFuture());
  h.Wait(absl::Seconds(10));
  RunJob(h, a, 2);
  EXPECT_THAT(h.Stored(last).after, ElementsAre(b));
  EXPECT_EQ(h.AttemptOf(last, 0), 0);
  h.Wait(absl::Seconds(5));
  RunJob(h, b, 2);
  const Job job = h.Stored(last);
  EXPECT_THAT(job.after, IsEmpty());
  EXPECT_EQ(job.deadline, h.now + absl::Seconds(60));
  EXPECT_EQ(ClockStart(job), h.now);
  EXPECT_EQ(job.tasks[0].state, TaskState::kRunning);
  EXPECT_THAT(h.Rules(last), Contains("after"));
  RunJob(h, last, 3);
}

TEST(CoreAfterTest, AGivenDeadlineStaysAndEndsAWaitingJob) {
  CoreHarness h;
  Job forever = CoreHarness::MakeJob("a");
  forever.spec.budget.reset();
  const std::string first = h.SubmitJob(forever);
  Job job = After("b", {first});
  job.spec.budget.reset();
  job.spec.deadline = h.now + absl::Seconds(20);
  const std::string second = h.SubmitJob(job);
  h.Wait(absl::Seconds(19));
  EXPECT_EQ(h.State(second), JobState::kQueued);
  h.Wait(absl::Seconds(2));
  EXPECT_EQ(h.State(second), JobState::kFailed);
  EXPECT_EQ(h.Stored(second).end_reason, JobEndReason::kBudgetReached);
  EXPECT_EQ(h.Stored(second).end_message, "its deadline came before the end of job " + first);
}

TEST(CoreAfterTest, AJobThatWasCancelledCancelsThoseThatNeededItsSuccess) {
  CoreHarness h;
  const std::string a = h.SubmitJob(CoreHarness::MakeJob("a"));
  const std::string b = h.SubmitJob(After("b", {a}));
  const std::string c = h.SubmitJob(After("c", {b}));
  const std::string d = h.SubmitJob(AfterAnyEnd("d", {b}));
  CancelJob(h, a);
  EXPECT_EQ(h.State(b), JobState::kCancelled);
  EXPECT_EQ(h.Stored(b).end_reason, JobEndReason::kAfterFailed);
  EXPECT_EQ(h.Stored(b).end_message, "it was to run after job " + a + ", which is CANCELLED");
  EXPECT_EQ(h.State(c), JobState::kCancelled);
  // Any end will do.
  EXPECT_EQ(h.State(d), JobState::kQueued);
  EXPECT_THAT(h.Stored(d).after, IsEmpty());
}

TEST(CoreAfterTest, ALongChainEndsInOneTurn) {
  CoreHarness h;
  std::string last = h.SubmitJob(CoreHarness::MakeJob("0"));
  const std::string first = last;
  for (int i = 1; i < 3000; ++i) last = h.SubmitJob(After(std::to_string(i), {last}));
  CancelJob(h, first);
  EXPECT_EQ(h.State(last), JobState::kCancelled);
}

TEST(CoreAfterTest, ARestartForgetsNothing) {
  CoreHarness h;
  const std::string a = h.SubmitJob(CoreHarness::MakeJob("a", 2));
  const std::string b = h.SubmitJob(After("b", {a}));
  h.Crash();
  EXPECT_EQ(h.core().FindJob(b)->waits_for, "the end of job " + a);
  h.Attach("w", 2);
  EXPECT_EQ(h.AttemptOf(b, 0), 0);
  h.Wait(absl::Seconds(7));
  RunJob(h, a, 2);
  const absl::Time runs_from = h.now;
  h.Wait(absl::Seconds(2));
  h.Crash();
  EXPECT_EQ(ClockStart(h.Stored(b)), runs_from);
  EXPECT_EQ(h.Stored(b).deadline, runs_from + absl::Seconds(60));
}

TEST(CoreAfterTest, AJobThatEndedWhileTheSubmitWasCheckedCounts) {
  CoreHarness h;
  const std::string a = h.SubmitJob(CoreHarness::MakeJob("a"));
  CancelJob(h, a);
  Turn turn = h.Step({Submit{7, After("b", {a})}});
  ASSERT_THAT(turn.replies, SizeIs(1));
  EXPECT_TRUE(absl::IsFailedPrecondition(turn.replies[0].status));
  EXPECT_THAT(std::string(turn.replies[0].status.message()),
              HasSubstr("after.jobs: job " + a + " is CANCELLED"));
  const std::string c = h.SubmitJob(AfterAnyEnd("c", {a}));
  EXPECT_THAT(h.Stored(c).after, IsEmpty());
  EXPECT_EQ(h.Stored(c).deadline, h.now + absl::Seconds(60));
  // Nobody knows any more how that one ended, so the client asks again.
  turn = h.Step({Submit{8, After("d", {"job-long-ago"})}});
  EXPECT_TRUE(absl::IsUnavailable(turn.replies.at(0).status));
}

TEST(CoreAfterTest, WhatDoesNotFitAWaitingJobIsRefused) {
  CoreHarness h;
  const std::string a = h.SubmitJob(CoreHarness::MakeJob("a"));
  const std::string b = h.SubmitJob(After("b", {a}));
  Update update;
  update.job = b;
  update.budget = absl::Seconds(5);
  EXPECT_TRUE(absl::IsFailedPrecondition(h.Step({update}).replies.at(0).status));
  EXPECT_TRUE(absl::IsFailedPrecondition(h.Step({Finish{4, b}}).replies.at(0).status));
  EXPECT_TRUE(h.Step({Cancel{5, b}}).replies.at(0).status.ok());
  EXPECT_EQ(h.Stored(b).end_reason, JobEndReason::kCancelledByUser);
  CancelJob(h, a);
}

TEST(CoreAfterTest, APausedJobWaitsForBoth) {
  CoreHarness h;
  h.Attach("w", 2);
  const std::string a = h.SubmitJob(CoreHarness::MakeJob("a"));
  const std::string b = h.SubmitJob(After("b", {a}));
  h.Step({Pause{4, b}});
  h.Step({Resume{5, b}});
  EXPECT_EQ(h.AttemptOf(b, 0), 0);
  h.Step({Pause{6, b}});
  RunJob(h, a, 3);
  EXPECT_EQ(h.State(b), JobState::kPaused);
  h.Step({Resume{7, b}});
  EXPECT_EQ(h.TaskOf(b, 0).state, TaskState::kRunning);
}

}  // namespace
}  // namespace traind
