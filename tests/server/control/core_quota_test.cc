// Quotas: refused, warned, cut short, stopped.
#include <gmock/gmock.h>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Quota QuotaOf(absl::Duration allowance, absl::Duration period = absl::Hours(1)) {
  Quota quota;
  quota.subject.owner = "local";
  quota.allowance = allowance;
  quota.period = period;
  return quota;
}

QuotaState SetOne(CoreHarness& h, Quota quota) {
  SetQuota event;
  event.call = 3;
  event.quota = std::move(quota);
  Turn turn = h.Step({event});
  EXPECT_THAT(turn.replies, SizeIs(1));
  EXPECT_EQ(turn.replies[0].status, absl::OkStatus());
  return turn.replies[0].quotas.at(0);
}

QuotaState Look(CoreHarness& h) {
  Turn turn = h.Step({ListQuotas{4}});
  return turn.replies.at(0).quotas.at(0);
}

// Two folds are training, on one slot each.
std::string Train(CoreHarness& h, Job job) {
  const std::string id = h.SubmitJob(std::move(job));
  h.Attach("w", 2);
  h.PrepareJob(id);
  for (int fold = 0; fold < 2; ++fold) {
    h.Say(h.AttemptOf(id, 1 + fold), CoreHarness::Started());
    h.Say(h.AttemptOf(id, 1 + fold), CoreHarness::Probe(0.001));
  }
  return id;
}

TEST(CoreQuotaTest, RunningAndEndedAttemptsAreCounted) {
  CoreHarness h;
  SetOne(h, QuotaOf(absl::Hours(1)));
  const std::string id = Train(h, CoreHarness::MakeJob("a", 2));
  h.Wait(absl::Seconds(5));
  EXPECT_NEAR(Look(h).used_s, 10, 0.1);
  h.FinishFold(id, 0);
  h.Wait(absl::Seconds(2));
  EXPECT_NEAR(Look(h).used_s, 12, 0.2);
}

// Where much runs, the use is not counted anew each time.
TEST(CoreQuotaTest, ManyFoldsAreCountedAndStoppedLikeFew) {
  CoreOptions options;
  options.lease = absl::Minutes(5);
  CoreHarness h(options);
  SetOne(h, QuotaOf(absl::Seconds(2500)));
  Job many = CoreHarness::MakeJob("a", 100);
  many.spec.budget = absl::Minutes(10);
  const std::string id = h.SubmitJob(std::move(many));
  h.Attach("w", 100);
  h.PrepareJob(id);
  const absl::Time start = h.now;
  for (int i = 0; i < 100; ++i) h.Wait(absl::Milliseconds(100));
  EXPECT_NEAR(Look(h).used_s, 1000, 2);
  for (int fold = 0; fold < 30; ++fold) h.FinishFold(id, fold);
  EXPECT_NEAR(Look(h).used_s, 1000, 2);
  for (int i = 0; i < 100; ++i) h.Wait(absl::Milliseconds(100));
  EXPECT_NEAR(Look(h).used_s, 1700, 4);
  EXPECT_THAT(h.Rules(id), testing::Not(Contains("quota")));
  const auto stopped = [&] { return h.Stored(id).quota_reached; };
  while (h.now < start + absl::Seconds(60) && !stopped()) h.Wait(absl::Milliseconds(50));
  EXPECT_NEAR(absl::ToDoubleSeconds(h.now - start), 20 + 800.0 / 70, 0.5);
}

TEST(CoreQuotaTest, WhatWasUsedSurvivesARestart) {
  CoreHarness h;
  SetOne(h, QuotaOf(absl::Hours(1)));
  const std::string id = Train(h, CoreHarness::MakeJob("a", 2));
  h.Wait(absl::Seconds(5));
  h.FinishFold(id, 0);
  h.FinishFold(id, 1);
  h.Crash();
  h.Step();
  EXPECT_NEAR(Look(h).used_s, 10, 0.2);
}

TEST(CoreQuotaTest, WithNothingLeftASubmitIsRefusedWithTheMomentOfTheNext) {
  CoreHarness h;
  SetQuota event;
  event.quota = QuotaOf(absl::Seconds(60));
  event.history = {{"local", {}, h.now - absl::Minutes(2), h.now - absl::Minutes(1), 1}};
  h.Step({event});
  Turn turn = h.Step({Submit{7, CoreHarness::MakeJob("a")}});
  ASSERT_THAT(turn.replies, SizeIs(1));
  EXPECT_TRUE(absl::IsResourceExhausted(turn.replies[0].status));
  EXPECT_THAT(std::string(turn.replies[0].status.message()),
              HasSubstr("user local has used 60 s of 1m00s per 1h00m; something is free again at"));
  // Another owner's Jobs are not concerned.
  Job other = CoreHarness::MakeJob("b");
  other.owner = "bob";
  turn = h.Step({Submit{8, other}});
  EXPECT_EQ(turn.replies[0].status, absl::OkStatus());
  // An hour later all is free again.
  h.Wait(absl::Hours(1));
  turn = h.Step({Submit{9, CoreHarness::MakeJob("c")}});
  EXPECT_EQ(turn.replies[0].status, absl::OkStatus());
}

TEST(CoreQuotaTest, AJobThatMayWantMoreThanIsLeftIsToldAndGetsThat) {
  CoreHarness h;
  SetOne(h, QuotaOf(absl::Seconds(20)));
  const std::string id = Train(h, CoreHarness::MakeJob("a", 2));
  EXPECT_THAT(h.Rules(id), Contains("quota"));
  h.Wait(absl::Seconds(12));
  // 20 s on two slots are 10 s; the folds were told to stop by then.
  const Job job = h.Stored(id);
  EXPECT_TRUE(job.quota_reached);
  EXPECT_THAT(h.stops, Contains(testing::Field(&StopCommand::mode, StopMode::kPredict)));
  EXPECT_THAT(job.warnings, Contains(HasSubstr("more than 50 %")));
  for (int fold = 0; fold < 2; ++fold) {
    h.Say(h.AttemptOf(id, 1 + fold), CoreHarness::Saved(false, true));
    h.Say(h.AttemptOf(id, 1 + fold), CoreHarness::Ended(AttemptEndReason::kStoppedInTime));
  }
  for (int i = 0; i < 3; ++i) h.Publish(id, Quality::kDegraded);
  EXPECT_EQ(h.State(id), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(id).end_reason, JobEndReason::kQuotaReached);
  EXPECT_LE(Look(h).used_s, 26);
}

// One whose fold has had its turn has no share of the slots while it waits for a further one (B9).
TEST(CoreQuotaTest, AJobWhoseFoldWaitsToComeBackEndsWhereNothingIsLeft) {
  CoreOptions options;
  options.lease = absl::Minutes(5);
  CoreHarness h(options);
  h.Attach("w", 1);
  std::vector<std::string> jobs;
  for (const char* name : {"a", "b"}) {
    Job job = CoreHarness::MakeJob(name, 1);
    job.spec.epochs = 40;
    jobs.push_back(h.SubmitJob(std::move(job)));
    h.PrepareJob(jobs.back());
  }
  const int64_t attempt = h.AttemptOf(jobs[0], 1);
  h.Say(attempt, CoreHarness::Started());
  h.Say(attempt, CoreHarness::Probe(0.02));
  h.Wait(absl::Seconds(20));
  h.Say(attempt, CoreHarness::CheckpointAt(1000, 10));
  h.Say(attempt, CoreHarness::Saved(false, true, 0.8, 10));
  h.Say(attempt, CoreHarness::Ended(AttemptEndReason::kStoppedInTime));
  h.Publish(jobs[0], Quality::kDegraded);
  ASSERT_EQ(h.TaskOf(jobs[0], 1).state, TaskState::kPending);
  SetQuota event;
  event.call = 3;
  event.quota = QuotaOf(absl::Seconds(15));
  event.history = {{"local", {}, h.now - absl::Seconds(20), h.now, 1}};
  h.Step({event});
  EXPECT_TRUE(h.Stored(jobs[1]).quota_reached);
  const Job job = h.Stored(jobs[0]);
  EXPECT_TRUE(job.quota_reached);
  EXPECT_EQ(job.tasks[1].state, TaskState::kPartial);
  for (int i = 0; i < 2; ++i) h.Publish(jobs[0], Quality::kDegraded);
  EXPECT_EQ(h.State(jobs[0]), JobState::kSucceeded);
  EXPECT_EQ(h.Stored(jobs[0]).end_reason, JobEndReason::kQuotaReached);
}

TEST(CoreQuotaTest, ALabelsQuotaCountsAllJobsWithIt) {
  CoreHarness h;
  Quota quota = QuotaOf(absl::Hours(1));
  quota.subject = {"", "team=a"};
  SetOne(h, quota);
  Job job = CoreHarness::MakeJob("a", 2);
  job.owner = "bob";
  job.spec.labels = {{"team", "a"}};
  Train(h, job);
  h.Wait(absl::Seconds(5));
  EXPECT_NEAR(Look(h).used_s, 10, 0.1);
}

TEST(CoreQuotaTest, ABoundedPlanIsMadeForWhatIsLeft) {
  CoreHarness h;
  SetOne(h, QuotaOf(absl::Seconds(20)));
  Job job = CoreHarness::MakeJob("a", 2);  // 60 s, 20 epochs
  const std::string id = h.SubmitJob(job);
  h.Attach("w", 2);
  h.PrepareJob(id);
  for (int fold = 0; fold < 2; ++fold) {
    h.Say(h.AttemptOf(id, 1 + fold), CoreHarness::Started());
    h.Say(h.AttemptOf(id, 1 + fold), CoreHarness::Probe(0.01));  // a second an epoch
  }
  for (int epoch = 1; epoch <= 3; ++epoch) {
    h.Wait(absl::Seconds(1));
    for (int fold = 0; fold < 2; ++fold) {
      facts::Epoch done;
      done.epoch = epoch;
      done.step = 100 * epoch;
      done.epoch_s = 1;
      h.Say(h.AttemptOf(id, 1 + fold), done);
    }
  }
  EXPECT_LT(h.Stored(id).plans.back().epochs, 20);
}

TEST(CoreQuotaTest, AnUnknownOwnersQuotaIsAnErrorAndAKnownOnesCanGo) {
  CoreHarness h;
  SetQuota event;
  event.call = 1;
  event.quota = QuotaOf(absl::Hours(1));
  event.quota.subject.owner = "bob";
  event.known = false;
  Turn turn = h.Step({event});
  EXPECT_TRUE(absl::IsNotFound(turn.replies.at(0).status));
  EXPECT_THAT(std::string(turn.replies[0].status.message()), HasSubstr("user bob is not known"));
  SetOne(h, QuotaOf(absl::Hours(1)));
  turn = h.Step({RemoveQuota{2, {"local", ""}}});
  EXPECT_EQ(turn.replies.at(0).status, absl::OkStatus());
  turn = h.Step({RemoveQuota{2, {"local", ""}}});
  EXPECT_TRUE(absl::IsNotFound(turn.replies.at(0).status));
  turn = h.Step({ListQuotas{3}});
  EXPECT_THAT(turn.replies.at(0).quotas, IsEmpty());
}

}  // namespace
}  // namespace traind
