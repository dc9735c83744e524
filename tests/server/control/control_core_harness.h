// Feeds a ControlCore by hand, in simulated time, and commits its turns to a MemoryStore,
// which refuses what a store would refuse.
// Threads: confined to one.
#pragma once

#include <absl/time/time.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/publish/fold_member.h"
#include "server/control/control_core.h"
#include "server/domain/names.h"
#include "server/store/memory_store.h"

namespace traind {

class CoreHarness {
 public:
  explicit CoreHarness(CoreOptions options = {})
      : options_(options), core_(std::make_unique<ControlCore>(options)) {}

  Turn Step(std::vector<Event> events = {}) {
    Turn turn = core_->Step(std::move(events), now);
    EXPECT_EQ(store.Commit(turn.mutations), absl::OkStatus());
    const bool later = turn.next_wakeup > now;
    EXPECT_TRUE(later) << "a turn wants itself again at once";
    wakeup_ = later ? turn.next_wakeup : absl::InfiniteFuture();  // or Wait would never end
    return turn;
  }
  // Lets time go by, waking the core whenever it wants; all turns in one.
  Turn Wait(absl::Duration duration) {
    const absl::Time end = now + duration;
    Turn all;
    while (wakeup_ <= end) {
      now = std::max(now, wakeup_);
      Append(&all, Step());
    }
    now = end;
    Append(&all, Step());
    return all;
  }

  static Job MakeJob(const std::string& request, int folds = 3) {
    Job job;
    job.id = "job-" + request;
    job.request_id = request;
    job.spec_sha256 = "sha-" + request;
    job.spec.name = request;
    job.spec.metric = "accuracy";
    job.spec.folds = folds;
    job.spec.has_test = true;
    job.spec.budget = absl::Seconds(60);
    return job;
  }
  std::string SubmitJob(Job job) {
    Turn turn = Step({Submit{7, std::move(job)}});
    EXPECT_EQ(turn.replies.size(), 1u);
    EXPECT_EQ(turn.replies[0].status, absl::OkStatus());
    Note(turn);
    return turn.replies[0].job->id;
  }

  WorkerAttached Hello(const std::string& worker, int slots, std::vector<int64_t> running = {},
                       const std::string& boot = "boot-1") {
    WorkerAttached hello;
    hello.worker = worker;
    hello.boot = boot;
    hello.session = ++session;
    hello.hostname = "host";
    for (int i = 0; i < slots; ++i) hello.slots.push_back({i, "cpu", "", "", 0});
    hello.running_attempts = std::move(running);
    return hello;
  }
  Turn Attach(const std::string& worker, int slots, std::vector<int64_t> running = {},
              const std::string& boot = "boot-1") {
    Turn turn = Step({Hello(worker, slots, std::move(running), boot)});
    Note(turn);
    return turn;
  }
  WorkerFact FactOf(int64_t attempt, std::optional<facts::Fact> fact,
                    const std::string& worker = "w") {
    return {worker, session, ++sequence, attempt, std::move(fact)};
  }
  Turn Say(int64_t attempt, std::optional<facts::Fact> fact, const std::string& worker = "w") {
    Turn turn = Step({FactOf(attempt, std::move(fact), worker)});
    Note(turn);
    return turn;
  }

  static facts::TableReady Table() {
    facts::TableReady ready;
    ready.table = "cache/k.table";
    ready.train_rows = 100;
    ready.test_rows = 10;
    return ready;
  }
  static facts::Probe Probe(double step_s, double predict_s = 0.05) {
    facts::Probe probed;
    probed.step_s = step_s;
    probed.step_p90_s = step_s;
    probed.timed_steps = 10;
    probed.evaluate_s = 0.01;
    probed.predict_s = predict_s;
    return probed;
  }
  static facts::Started Started(int64_t steps = 100) {
    facts::Started started;
    started.steps_per_epoch = steps;
    started.precision = "fp32";
    started.batch = 32;
    return started;
  }
  static facts::FoldSaved Saved(bool complete, bool last, double score = 0.9, double epochs = 20) {
    facts::FoldSaved saved;
    saved.complete = complete;
    saved.score = score;
    saved.epochs_done = epochs;
    saved.oof = "oof.npy";
    saved.oof_sha256 = std::to_string(score);
    saved.last = last;
    saved.stopped_by = complete ? StopCause::kEpochs : StopCause::kTime;
    saved.predict_s = 0.05;
    return saved;
  }
  static facts::Ended Ended(AttemptEndReason reason = AttemptEndReason::kCompleted,
                            std::string message = "") {
    return {reason, std::move(message)};
  }
  static facts::CheckpointSaved CheckpointAt(int64_t step, double epoch) {
    facts::CheckpointSaved saved;
    saved.step = step;
    saved.epoch = epoch;
    saved.manifest = "checkpoint-" + std::to_string(step) + ".json";
    return saved;
  }
  static PublishedPrediction Prediction(int number, Quality quality, absl::Time at) {
    PublishedPrediction prediction;
    prediction.number = number;
    prediction.quality = quality;
    prediction.at = at;
    prediction.sha256 = std::to_string(number);
    return prediction;
  }
  // Answers the publish that is wanted, if one is.
  Turn Publish(const std::string& job, Quality quality) {
    Turn turn = Step({Published{job, Prediction(++number, quality, now), false}});
    Note(turn);
    return turn;
  }

  // On the disk, nothing stands of which the core has not heard.
  Turn CancelJob(const std::string& job) {
    Turn all;
    Append(&all, Step({Cancel{1, job}}));
    for (int asked = 0; asked < 2 && core_->FindJob(job) != nullptr; ++asked) {
      Append(&all, Step({Published{job, absl::NotFoundError("nothing stands"), false}}));
    }
    return all;
  }

  // Reads the table and fits the floor; folds are started then.
  void PrepareJob(const std::string& job) {
    const int64_t attempt = AttemptOf(job, 0);
    Say(attempt, Table());
    Say(attempt, facts::FloorReady{"prior", 0.5});
    Publish(job, Quality::kFloor);
    Say(attempt, Ended());
  }
  void FinishFold(const std::string& job, int fold) {
    const int64_t attempt = AttemptOf(job, 1 + fold);
    Say(attempt, Saved(true, true));
    Say(attempt, Ended());
  }

  Job Stored(const std::string& job) {
    auto stored = store.GetJob(job);
    EXPECT_EQ(stored.status(), absl::OkStatus());
    return stored.ok() ? *stored : Job();
  }
  JobState State(const std::string& job) { return Stored(job).state; }
  Task TaskOf(const std::string& job, int task) {
    return Stored(job).tasks.at(static_cast<size_t>(task));
  }
  int64_t AttemptOf(const std::string& job, int task) { return TaskOf(job, task).attempt; }
  AttemptEndReason EndOf(const std::string& job, int64_t attempt) {
    for (const Attempt& row : Stored(job).attempts) {
      if (row.id == attempt) return row.end_reason;
    }
    ADD_FAILURE() << job << " has no Attempt " << attempt;
    return AttemptEndReason::kNone;
  }
  std::vector<std::string> Rules(const std::string& job) {
    std::vector<std::string> rules;
    for (const Decision& decision : Stored(job).decisions) rules.push_back(Name(decision.rule));
    return rules;
  }

  // kill -9: a new core from what is stored.
  void Crash() {
    core_ = std::make_unique<ControlCore>(options_);
    core_->Restore(*store.LoadSnapshot(), now);
    wakeup_ = now;
  }
  ControlCore& core() { return *core_; }

  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  MemoryStore store;
  uint64_t session = 0;
  int64_t sequence = 0;
  int number = 0;
  // The commands of the turns that the functions above have made.
  std::vector<StartCommand> starts;
  std::vector<StopCommand> stops;
  std::vector<PublishCommand> publishes;

 private:
  void Note(const Turn& turn) {
    starts.insert(starts.end(), turn.starts.begin(), turn.starts.end());
    stops.insert(stops.end(), turn.stops.begin(), turn.stops.end());
    publishes.insert(publishes.end(), turn.publishes.begin(), turn.publishes.end());
  }
  void Append(Turn* all, Turn turn) {
    const auto move = [](auto& from, auto& to) { to.insert(to.end(), from.begin(), from.end()); };
    Note(turn);
    move(turn.starts, all->starts);
    move(turn.stops, all->stops);
    move(turn.replans, all->replans);
    move(turn.publishes, all->publishes);
    move(turn.replies, all->replies);
    move(turn.shutdowns, all->shutdowns);
    move(turn.changed, all->changed);
  }

  const CoreOptions options_;
  std::unique_ptr<ControlCore> core_;
  absl::Time wakeup_ = absl::InfiniteFuture();
};

}  // namespace traind
