#include "server/loop/control_loop.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "common/publish/prediction_manifest.h"
#include "server/store/memory_store.h"

namespace traind {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

// A gateway without Workers that counts the messages.
class NoWorkers final : public WorkerGateway {
 public:
  void Send(const AckCommand&) override { ++acks; }
  void Send(const StartCommand&, absl::Time) override { ++starts; }
  void Send(const StopCommand&) override {}
  void Send(const ReplanCommand&, absl::Time) override {}
  void Send(const ShutdownCommand&) override {}
  void CloseAll() override { ++closed; }
  std::atomic<int> acks{0}, starts{0}, closed{0};
};

// A store whose commits fail on demand, and that counts them.
class FragileStore final : public Store {
 public:
  absl::Status Commit(const Mutations& mutations) override {
    if (const absl::Status held = Hold(); !held.ok()) return held;
    ++commits;
    return store_.Commit(mutations);
  }
  absl::Status CheckpointLog() override { return store_.CheckpointLog(); }
  absl::StatusOr<Snapshot> LoadSnapshot() override { return store_.LoadSnapshot(); }
  absl::StatusOr<Job> GetJob(const std::string& id) override { return store_.GetJob(id); }
  absl::StatusOr<std::vector<std::string>> FindByName(const std::string& name) override {
    return store_.FindByName(name);
  }
  absl::StatusOr<Job> FindByRequest(const std::string& owner, const std::string& id) override {
    return store_.FindByRequest(owner, id);
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
  absl::StatusOr<std::vector<Job>> FindTrained(const std::string& key,
                                               const std::string& sha256) override {
    return store_.FindTrained(key, sha256);
  }
  absl::StatusOr<std::vector<Usage>> UsageSince(absl::Time since) override {
    return store_.UsageSince(since);
  }
  absl::StatusOr<bool> HasOwner(const std::string& owner) override {
    return store_.HasOwner(owner);
  }
  absl::StatusOr<Measured> RecordedSpeed(const std::string& key, const std::string& sha256,
                                         int64_t bytes) override {
    return store_.RecordedSpeed(key, sha256, bytes);
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
  std::atomic<int> commits{0};

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
    auto loop = ControlLoop::Create(options_, &store_, &SystemClock());
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
  void WritePrediction(const std::string& id) {
    PredictionManifest manifest;
    manifest.job = id;
    manifest.metric = "accuracy";
    manifest.prediction.number = 1;
    manifest.prediction.quality = Quality::kFloor;
    manifest.prediction.at = absl::Now();
    const std::filesystem::path job = std::filesystem::path(options_.state_dir) / "jobs" / id;
    std::filesystem::create_directories(job / "prediction-1");
    std::ofstream(job / "prediction-1" / "manifest.json") << EncodeManifest(manifest);
    std::filesystem::create_symlink("prediction-1", job / "current");
  }

  LoopOptions options_;
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

TEST_F(ControlLoopTest, AnUnknownOutcomeIsToldAsSuch) {
  store_.FailWith(absl::InternalError("disk I/O error"));
  EXPECT_TRUE(absl::IsUnavailable(Submit(NewJob("t-1")).status));
  store_.FailWith(absl::OkStatus());
  EXPECT_TRUE(Submit(NewJob("t-2")).status.ok());
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

}  // namespace
}  // namespace traind
