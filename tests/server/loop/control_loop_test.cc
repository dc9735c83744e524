#include "server/loop/control_loop.h"

#include <absl/synchronization/notification.h>
#include <absl/time/clock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/publish/ended_job.h"
#include "common/publish/prediction_manifest.h"
#include "common/publish/publisher.h"
#include "server/store/memory_store.h"

namespace traind {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

// The machine's clocks, but each steps when told to. Threads: safe.
class SteppingClock final : public Clock {
 public:
  absl::Time WallNow() const override {
    return SystemClock().WallNow() + absl::Seconds(step_s_ + pause_s_);
  }
  absl::Duration MonotonicNow() const override {
    return SystemClock().MonotonicNow() + absl::Seconds(monotonic_step_s_ + pause_s_);
  }
  void Step(absl::Duration by) { step_s_ += absl::ToInt64Seconds(by); }
  void StepMonotonic(absl::Duration by) { monotonic_step_s_ += absl::ToInt64Seconds(by); }
  // As if the process had been stopped for so long.
  void Pause(absl::Duration by) { pause_s_ += absl::ToInt64Seconds(by); }

 private:
  std::atomic<int64_t> step_s_{0}, monotonic_step_s_{0}, pause_s_{0};
};

// A gateway without Workers that counts the messages.
class NoWorkers final : public WorkerGateway {
 public:
  void Send(const AckCommand&) override {
    ++acks;
    if (on_ack) on_ack();
  }
  void Send(const StartCommand&, absl::Time) override { ++starts; }
  void Send(const StopCommand&) override {}
  void Send(const MeetCommand&) override {}
  void Send(const ReplanCommand&, absl::Time) override {}
  void Send(const ShutdownCommand&) override {}
  void Note(const WorkerNote&) override {}
  void CloseAll() override { ++closed; }
  std::atomic<int> acks{0}, starts{0}, closed{0};
  std::function<void()> on_ack;  // set before the loop starts
};

// A store whose commits fail on demand, and that counts them.
class FragileStore final : public Store {
 public:
  absl::Status Commit(const Mutations& mutations) override {
    if (const absl::Status held = Hold(); !held.ok()) return held;
    ++commits;
    last_was_synced = mutations.durable;
    return store_.Commit(mutations);
  }
  absl::Status CheckpointLog() override { return log_failure; }
  absl::StatusOr<Snapshot> LoadSnapshot() override { return store_.LoadSnapshot(); }
  std::vector<absl::StatusOr<KnownSubmit>> FindSubmits(
      const std::vector<SubmitKey>& submits) override {
    return store_.FindSubmits(submits);
  }
  absl::StatusOr<Job> GetJob(const std::string& id) override {
    ++reads;
    return store_.GetJob(id);
  }
  absl::StatusOr<JobStamp> StampOf(const std::string& id) override { return store_.StampOf(id); }
  absl::StatusOr<std::vector<std::string>> FindByName(const std::string& name) override {
    return store_.FindByName(name);
  }
  absl::StatusOr<Job> FindByRequest(const std::string& owner, const std::string& id) override {
    return store_.FindByRequest(owner, id);
  }
  absl::StatusOr<std::vector<std::optional<KnownRequest>>> FindRequests(
      const std::vector<RequestKey>& requests) override {
    return store_.FindRequests(requests);
  }
  absl::StatusOr<JobPage> ListJobs(const JobFilter& filter) override {
    return store_.ListJobs(filter);
  }
  absl::StatusOr<std::vector<StoredMetric>> GetMetrics(const std::string& job, int64_t after,
                                                       int limit,
                                                       const std::string& name) override {
    return store_.GetMetrics(job, after, limit, name);
  }
  absl::StatusOr<std::vector<Checkpoint>> ListCheckpoints(const std::string& job) override {
    return store_.ListCheckpoints(job);
  }
  absl::StatusOr<std::vector<Answer>> ListAnswers(const std::string& job) override {
    return store_.ListAnswers(job);
  }
  absl::StatusOr<std::vector<Job>> FindTrained(const std::string& key,
                                               const std::string& sha256) override {
    return store_.FindTrained(key, sha256);
  }
  absl::StatusOr<std::vector<AttemptUsage>> UsageSince(absl::Time since) override {
    return store_.UsageSince(since);
  }
  absl::StatusOr<bool> HasOwner(const std::string& owner) override {
    return store_.HasOwner(owner);
  }
  absl::StatusOr<Measured> RecordedSpeed(const std::string& key, const std::string& sha256,
                                         int64_t bytes) override {
    return store_.RecordedSpeed(key, sha256, bytes);
  }
  absl::StatusOr<std::vector<StoredEvent>> GetEvents(const std::string& job, int64_t after,
                                                     int limit) override {
    return store_.GetEvents(job, after, limit);
  }
  absl::StatusOr<std::vector<EndedJob>> ListEnded() override { return store_.ListEnded(); }
  absl::StatusOr<std::vector<std::string>> ListDeleting(absl::Time now) override {
    return store_.ListDeleting(now);
  }
  absl::StatusOr<absl::Time> FindDeleted(const std::string& id) override {
    return store_.FindDeleted(id);
  }
  absl::StatusOr<bool> IsInASpec(const std::string& text) override {
    return store_.IsInASpec(text);
  }

  void FailWith(absl::Status status) {
    absl::MutexLock lock(&mutex_);
    failure_ = std::move(status);
  }
  void Block(bool blocked) {
    absl::MutexLock lock(&mutex_);
    blocked_ = blocked;
  }
  void WaitUntilBlocked() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&waiting_));
  }
  absl::Status log_failure;  // set before the loop starts
  std::atomic<int> commits{0};
  std::atomic<bool> last_was_synced{true};
  std::atomic<int> reads{0};  // that have to wait for a place among the readers

 private:
  absl::Status Hold() {
    absl::MutexLock lock(&mutex_);
    waiting_ = blocked_;
    const auto free = [this] {
      mutex_.AssertReaderHeld();
      return !blocked_;
    };
    mutex_.Await(absl::Condition(&free));
    waiting_ = false;
    return failure_;
  }
  MemoryStore store_;
  absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool blocked_ ABSL_GUARDED_BY(mutex_) = false;
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
};

Job NewJob(const std::string& id, const std::string& request_id = "") {
  Job job;
  job.id = id;
  job.request_id = request_id;
  job.spec.name = "t";
  job.spec.metric = "accuracy";
  job.spec_json = "{}";
  job.spec_sha256 = "0";
  return job;
}

class ControlLoopTest : public testing::Test {
 protected:
  ControlLoopTest() {
    char folder[] = "/tmp/loop_testXXXXXX";
    options_.state_dir = mkdtemp(folder);
    Start();
  }
  ~ControlLoopTest() override {
    store_.Block(false);
    loop_.reset();
    EXPECT_EQ(system(("rm -rf " + options_.state_dir).c_str()), 0);
  }
  void Start() {
    auto loop = ControlLoop::Create(options_, &store_, &clock_);
    ASSERT_TRUE(loop.ok()) << loop.status();
    loop_ = *std::move(loop);
    loop_->Start(&gateway_);
  }
  Reply Submit(Job job) {
    Reply reply;
    absl::Notification done;
    loop_->Submit(std::move(job), [&](const Reply& answer) {
      reply = answer;
      done.Notify();
    });
    EXPECT_TRUE(done.WaitForNotificationWithTimeout(kLong));
    return reply;
  }
  // Null if the Job has not ended in good time.
  std::shared_ptr<const Job> AwaitEnd(const std::string& id) {
    JobViews::View view = loop_->views().Find(id);
    const absl::Time give_up = absl::Now() + kLong;
    while (view.job && !IsTerminal(view.job->state) && absl::Now() < give_up) {
      view = loop_->views().Wait(id, view.change, absl::Seconds(1));
    }
    return view.job && IsTerminal(view.job->state) ? view.job : nullptr;
  }
  // As a Worker would that traind does not hear.
  void WritePrediction(const std::string& id, int number = 1) {
    PredictionManifest manifest;
    manifest.job = id;
    manifest.metric = "accuracy";
    manifest.prediction.number = number;
    manifest.prediction.quality = Quality::kFloor;
    manifest.prediction.at = absl::Now();
    const std::filesystem::path job = std::filesystem::path(options_.state_dir) / "jobs" / id;
    const std::string folder = "prediction-" + std::to_string(number);
    std::filesystem::create_directories(job / folder);
    std::ofstream(job / folder / "manifest.json") << EncodeManifest(manifest);
    std::filesystem::remove(job / "current");
    std::filesystem::create_symlink(folder, job / "current");
  }

  // Returns what remains of the Job's time once a step of the wall clock has been followed.
  absl::Duration LeftAfterStep(const std::string& id, absl::Time accepted_at) {
    JobViews::View view = loop_->views().Find(id);
    const absl::Duration give_up = SystemClock().MonotonicNow() + kLong;
    while (view.job->accepted_at == accepted_at && SystemClock().MonotonicNow() < give_up) {
      view = loop_->views().Wait(id, view.change, absl::Seconds(1));
    }
    return view.job->deadline - loop_->Now();
  }

  LoopOptions options_;
  SteppingClock clock_;
  FragileStore store_;
  NoWorkers gateway_;
  std::unique_ptr<ControlLoop> loop_;
};

TEST_F(ControlLoopTest, ASubmitIsStoredBeforeItIsAnswered) {
  const Reply reply = Submit(NewJob("t-1"));
  ASSERT_TRUE(reply.status.ok()) << reply.status;
  EXPECT_TRUE(reply.created);
  EXPECT_TRUE(store_.GetJob("t-1").ok());
  EXPECT_NE(loop_->views().Find("t-1").job, nullptr);
}

TEST_F(ControlLoopTest, WhatWaitsTogetherIsCommittedTogether) {
  store_.Block(true);
  std::atomic<int> answers{0};
  const auto count = [&](const Reply& reply) { answers += reply.status.ok(); };
  loop_->Submit(NewJob("first"), count);
  store_.WaitUntilBlocked();
  for (int i = 0; i < 50; ++i) loop_->Submit(NewJob("t-" + std::to_string(i)), count);
  EXPECT_EQ(answers, 0) << "answered before the commit";
  const int before = store_.commits;
  store_.Block(false);
  EXPECT_TRUE(Submit(NewJob("last")).status.ok());
  EXPECT_EQ(answers, 51);
  EXPECT_LE(store_.commits - before, 4);
}

TEST_F(ControlLoopTest, HeartbeatsThatComeSoonAfterATurnWaitForEachOther) {
  options_.gather_heartbeats = absl::Hours(1);
  Start();
  ASSERT_TRUE(Submit(NewJob("first")).status.ok());
  const LoopFigures::Counts before = loop_->figures();
  for (int i = 0; i < 100; ++i)
    loop_->Post(WorkerHeartbeat{"w-" + std::to_string(i), 1, {}, false});
  ASSERT_TRUE(Submit(NewJob("second")).status.ok());
  ASSERT_TRUE(Submit(NewJob("third")).status.ok());
  const LoopFigures::Counts after = loop_->figures();
  EXPECT_GE(after.events - before.events, 101u);
  EXPECT_LT(after.turns.count - before.turns.count, 20u);
}

TEST_F(ControlLoopTest, ALoopThatHangsIsNoticedAndOneThatGoesOnAgainIsToo) {
  store_.Block(true);
  loop_->Submit(NewJob("first"), [](const Reply&) {});
  store_.WaitUntilBlocked();
  EXPECT_LT(loop_->SinceLastTurn(), kLong);
  clock_.StepMonotonic(2 * kLong);
  EXPECT_GE(loop_->SinceLastTurn(), 2 * kLong);
  store_.Block(false);
  Submit(NewJob("second"));
  Submit(NewJob("third"));  // its turn began after that of the second
  EXPECT_LT(loop_->SinceLastTurn(), kLong);
}

TEST_F(ControlLoopTest, AFullDiskRefusesSubmitsAndHealsByItself) {
  store_.FailWith(absl::ResourceExhaustedError("disk full"));
  const Reply refused = Submit(NewJob("t-1"));
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status)) << refused.status;
  EXPECT_EQ(refused.job, nullptr);
  EXPECT_GE(gateway_.closed, 1) << "Workers have to say again what was lost";
  store_.FailWith(absl::OkStatus());
  EXPECT_TRUE(Submit(NewJob("t-1")).status.ok());
  EXPECT_TRUE(loop_->fatal().ok());
}

TEST_F(ControlLoopTest, AnUnknownOutcomeIsToldAsSuchAndEndsTheLoop) {
  store_.FailWith(absl::InternalError("disk I/O error"));
  EXPECT_TRUE(absl::IsUnavailable(Submit(NewJob("t-1")).status));
  store_.FailWith(absl::OkStatus());
  ASSERT_TRUE(loop_->WaitForFatal(kLong));
  EXPECT_EQ(loop_->fatal().message(), "disk I/O error");
  // The next start finds out what was stored.
  const int before = store_.commits;
  loop_.reset();
  EXPECT_EQ(store_.commits, before);
  Start();
  EXPECT_TRUE(Submit(NewJob("t-2")).status.ok());
}

TEST_F(ControlLoopTest, AChangeThatTheStoreRefusesEndsNothing) {
  store_.FailWith(absl::AbortedError("stale"));
  EXPECT_TRUE(absl::IsUnavailable(Submit(NewJob("t-1")).status));
  store_.FailWith(absl::OkStatus());
  EXPECT_TRUE(Submit(NewJob("t-2")).status.ok());
}

TEST_F(ControlLoopTest, ALogThatCannotBeMovedEndsTheLoop) {
  loop_.reset();
  store_.log_failure = absl::InternalError("disk I/O error");
  Start();
  EXPECT_TRUE(Submit(NewJob("t-1")).status.ok());
  EXPECT_TRUE(loop_->WaitForFatal(kLong));
}

TEST_F(ControlLoopTest, TheSameRequestIsOneJobAlsoAfterARestart) {
  const Reply first = Submit(NewJob("t-1", "r"));
  const Reply again = Submit(NewJob("t-2", "r"));
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_FALSE(again.created);
  EXPECT_EQ(again.job->id, first.job->id);
  loop_.reset();
  Start();
  const Reply later = Submit(NewJob("t-3", "r"));
  ASSERT_TRUE(later.status.ok()) << later.status;
  EXPECT_EQ(later.job->id, first.job->id);
}

TEST_F(ControlLoopTest, CallersThatWaitAtTheEndAreAnswered) {
  store_.Block(true);
  std::atomic<int> answers{0};
  for (int i = 0; i < 10; ++i) {
    loop_->Submit(NewJob("t-" + std::to_string(i)), [&](const Reply&) { ++answers; });
  }
  store_.Block(false);
  loop_->Stop();
  EXPECT_EQ(answers, 10);
}

TEST_F(ControlLoopTest, ABudgetEndsAJobWithoutAnyWorker) {
  Job job = NewJob("t-1");
  job.spec.budget = absl::Seconds(1);
  ASSERT_TRUE(Submit(std::move(job)).status.ok());
  const std::shared_ptr<const Job> ended = AwaitEnd("t-1");
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->state, JobState::kFailed);
  EXPECT_LE(ended->finished_at, ended->deadline);
  EXPECT_FALSE(ended->end_message.empty());
}

TEST_F(ControlLoopTest, APredictionThatNobodyToldOfIsFoundOnDisk) {
  Job job = NewJob("t-1");
  job.spec.budget = absl::Seconds(2);
  job.spec.has_test = true;
  ASSERT_TRUE(Submit(std::move(job)).status.ok());
  WritePrediction("t-1");
  const std::shared_ptr<const Job> ended = AwaitEnd("t-1");
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->state, JobState::kSucceeded);
  ASSERT_TRUE(ended->prediction.has_value());
  EXPECT_EQ(ended->prediction->quality, Quality::kFloor);
}

TEST_F(ControlLoopTest, APredictionThatAWorkerMadeWhileTraindWasStoppedIsNotTakenBack) {
  Job job = NewJob("t-1");
  job.spec.budget = absl::Hours(1);
  job.spec.has_test = true;
  ASSERT_TRUE(Submit(std::move(job)).status.ok());
  WritePrediction("t-1");
  loop_->Post(Published{"t-1", ReadStandingPrediction(options_.state_dir, "t-1"), true});
  Submit(NewJob("t-2"));  // its turn comes after the Prediction's
  ASSERT_TRUE(loop_->views().Find("t-1").job->prediction.has_value());
  WritePrediction("t-1", 2);
  clock_.Pause(absl::Hours(2));
  const std::shared_ptr<const Job> ended = AwaitEnd("t-1");
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->state, JobState::kSucceeded);
  EXPECT_EQ(ended->prediction->number, 2);
}

TEST_F(ControlLoopTest, ASubmitWaitsForNoReader) {
  EXPECT_TRUE(Submit(NewJob("t-1", "r")).created);
  Job done = NewJob("t-2", "done");
  done.spec.budget = absl::Milliseconds(1);
  ASSERT_TRUE(Submit(std::move(done)).status.ok());
  ASSERT_NE(AwaitEnd("t-2"), nullptr);
  EXPECT_EQ(Submit(NewJob("t-3", "done")).job->id, "t-2");
  EXPECT_EQ(Submit(NewJob("t-2")).job->id, "t-2-2");
  EXPECT_EQ(store_.reads, 0);
}

TEST_F(ControlLoopTest, ADamagedDatabaseEndsTheLoop) {
  store_.FailWith(absl::DataLossError("a page is damaged"));
  EXPECT_FALSE(Submit(NewJob("t-1")).status.ok());
  EXPECT_TRUE(loop_->WaitForFatal(kLong));
  EXPECT_TRUE(absl::IsDataLoss(loop_->fatal()));
}

TEST_F(ControlLoopTest, ABudgetKeepsItsRestWhenTheWallClockSteps) {
  for (const absl::Duration step : {absl::Hours(3), -absl::Hours(5)}) {
    Job job = NewJob("t" + absl::FormatDuration(step));
    const std::string id = job.id;
    job.spec.budget = absl::Hours(2);
    const Reply reply = Submit(std::move(job));
    ASSERT_TRUE(reply.status.ok()) << reply.status;
    loop_.reset();  // the second step comes sooner than a running loop follows one
    Start();
    clock_.Step(step);
    const absl::Duration left = LeftAfterStep(id, reply.job->accepted_at);
    EXPECT_GT(left, absl::Hours(2) - kLong) << step;
    EXPECT_LE(left, absl::Hours(2)) << step;
    EXPECT_LT(absl::AbsDuration(loop_->Now() - clock_.WallNow()), absl::Seconds(1)) << step;
    EXPECT_GE(gateway_.closed, 1) << "Workers have to be told of deadlines again";
  }
}

TEST_F(ControlLoopTest, ADeadlineAtATimeOfDayFollowsTheWallClock) {
  Job job = NewJob("t-1");
  job.spec.deadline = clock_.WallNow() + absl::Hours(3);
  job.spec.budget = absl::Hours(100);
  ASSERT_TRUE(Submit(std::move(job)).status.ok());
  clock_.Step(absl::Hours(3));
  const std::shared_ptr<const Job> ended = AwaitEnd("t-1");
  ASSERT_NE(ended, nullptr);
  EXPECT_EQ(ended->state, JobState::kFailed);
}

TEST_F(ControlLoopTest, OneStartWithAClockInTheFutureLeavesNoTrace) {
  loop_.reset();
  clock_.Step(absl::Hours(24 * 365));
  Start();
  Job job = NewJob("t-1");
  job.spec.budget = absl::Hours(1);
  ASSERT_TRUE(Submit(std::move(job)).status.ok());
  loop_.reset();
  clock_.Step(-absl::Hours(24 * 365));
  Start();
  EXPECT_LT(absl::AbsDuration(loop_->Now() - clock_.WallNow()), absl::Seconds(1));
  const auto kept = loop_->views().Find("t-1").job;
  ASSERT_NE(kept, nullptr);
  EXPECT_GT(kept->deadline - loop_->Now(), absl::Hours(1) - kLong);
  EXPECT_LE(kept->deadline - loop_->Now(), absl::Hours(1));
  Job soon = NewJob("t-2");
  soon.spec.deadline = clock_.WallNow() + absl::Minutes(10);
  EXPECT_TRUE(Submit(std::move(soon)).status.ok());
}

TEST_F(ControlLoopTest, WhatAWorkerPublishesForAJobThatIsOverIsTakenBack) {
  Job job = NewJob("t-1");
  job.spec.budget = absl::Milliseconds(100);
  job.spec.has_test = true;
  ASSERT_TRUE(Submit(std::move(job)).status.ok());
  const std::shared_ptr<const Job> ended = AwaitEnd("t-1");
  ASSERT_NE(ended, nullptr);
  ASSERT_FALSE(ended->prediction.has_value());
  WritePrediction("t-1");
  loop_->AdoptPrediction("t-1", AckCommand{});
  const std::filesystem::path current =
      std::filesystem::path(options_.state_dir) / "jobs" / "t-1" / "current";
  const absl::Duration give_up = SystemClock().MonotonicNow() + kLong;
  while (std::filesystem::exists(current) && SystemClock().MonotonicNow() < give_up) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_FALSE(std::filesystem::exists(current));
  EXPECT_TRUE(absl::IsFailedPrecondition(CheckNotEnded(options_.state_dir, "t-1")));
}

TEST_F(ControlLoopTest, NothingIsAcknowledgedBeforeItIsSynced) {
  loop_.reset();
  std::atomic<int> early{0};
  gateway_.on_ack = [&] { early += !store_.last_was_synced; };
  Start();
  WorkerAttached attached;
  attached.worker = "w";
  attached.boot = "b";
  attached.session = 1;
  loop_->Post(attached);  // is stored without a sync
  const absl::Duration give_up = SystemClock().MonotonicNow() + kLong;
  while (store_.last_was_synced && SystemClock().MonotonicNow() < give_up) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  ASSERT_FALSE(store_.last_was_synced);
  WorkerFact fact;
  fact.worker = "w";
  fact.session = 1;
  fact.sequence = 1;
  loop_->Post(fact);
  while (gateway_.acks == 0 && SystemClock().MonotonicNow() < give_up) {
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_EQ(gateway_.acks, 1);
  EXPECT_EQ(early, 0);
}

}  // namespace
}  // namespace traind
