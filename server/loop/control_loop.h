// The one thread that decides: it takes all waiting events, lets the core decide,
// commits one transaction, and only then acts and answers (group commit).
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "server/control/control_core.h"
#include "server/control/events.h"
#include "server/loop/publish_pool.h"
#include "server/loop/views.h"
#include "server/store/store.h"

namespace traind {

// The way to the Workers; the rpc edge implements it. Calls come from the loop's
// thread and must not block. A message to a Worker that is not attached is
// dropped: the core hears of the detachment.
class WorkerGateway {
 public:
  virtual ~WorkerGateway() = default;
  virtual void Send(const AckCommand& command) = 0;
  // `now` is the time that the commands' absolute times were computed against.
  virtual void Send(const StartCommand& command, absl::Time now) = 0;
  virtual void Send(const StopCommand& command) = 0;
  virtual void Send(const ReplanCommand& command, absl::Time now) = 0;
  virtual void Send(const ShutdownCommand& command) = 0;
  // Ends every stream: Workers come back and send again what was not acknowledged.
  virtual void CloseAll() = 0;
};

struct LoopOptions {
  std::string state_dir;  // absolute
  CoreOptions core;
  // The write-ahead log is moved into the database when the loop has been idle for
  // so long; at checkpoint_bytes as soon as nothing waits; at most_log_bytes at once.
  // Callers wait meanwhile, some milliseconds for each MiB.
  absl::Duration checkpoint_idle = absl::Seconds(2);
  int64_t checkpoint_bytes = 4 << 20;
  int64_t most_log_bytes = 64 << 20;
};

// Threads: Start and Stop from one; the rest is safe from any. Ownership: store,
// clock and gateway outlive the loop.
class ControlLoop {
 public:
  using Answer = std::function<void(Reply)>;

  // Reads what the store knows (and the Predictions that Workers published while
  // no coordinator was there). Nothing runs yet.
  static absl::StatusOr<std::unique_ptr<ControlLoop>> Create(LoopOptions options, Store* store,
                                                             const Clock* clock);
  ~ControlLoop();

  // The loop's thread starts. `gateway` is where Workers are reached.
  void Start(WorkerGateway* gateway);
  // Waits until what was posted is committed, then ends the thread; moves the
  // write-ahead log into the database. Callers still waiting get Unavailable.
  void Stop();

  // The answer comes on the loop's thread, after the commit, exactly once (after
  // Stop: at once, Unavailable).
  void Submit(Job job, Answer answer);
  void Finish(const std::string& job, Answer answer);
  void Cancel(const std::string& job, Answer answer);
  void Pause(const std::string& job, Answer answer);
  void Resume(const std::string& job, Answer answer);
  void Update(traind::Update update, Answer answer);
  void SetQuota(traind::SetQuota event, Answer answer);
  void RemoveQuota(QuotaSubject subject, Answer answer);
  void ListQuotas(Answer answer);
  void Post(Event event);
  // A Worker published by itself: the standing Prediction is read from disk, and
  // `ack` sent when that is stored.
  void AdoptPrediction(const std::string& job, AckCommand ack);

  // The time as the core counts it: wall-clock time at the start (or the last one
  // stored, if the wall clock has gone back since) plus what a monotonic clock
  // counted from there.
  absl::Time Now() const;

  const JobViews& views() const { return views_; }
  JobViews& views() { return views_; }

  // Set when the store failed for good; the process should end with this.
  absl::Status fatal() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until Stop was called, fatal() is set, or the time is over.
  bool WaitForFatal(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ControlLoop(LoopOptions options, Store* store, const Clock* clock);
  absl::Status Load();
  void Run();
  // One turn; returns when the core wants to be woken.
  absl::Time RunOnce(std::vector<Event> events, std::vector<AckCommand> acks);
  // Takes out Submits of requests that belong to Jobs which are over, of which the
  // core knows nothing any more; the answers to them.
  std::vector<Reply> AnswerFromStore(std::vector<Event>* events);
  void MoveLog() ABSL_LOCKS_EXCLUDED(mutex_);
  void Act(Turn turn, absl::Time now);
  // On a thread of the pool.
  absl::StatusOr<std::vector<TrainedFold>> FindFolds(const ReuseCommand& command);
  void Recover(const Turn& turn, const absl::Status& failure);
  void AnswerAll(const std::vector<Reply>& replies);
  template <typename Call>
  void PostCall(Call event, Answer answer) ABSL_LOCKS_EXCLUDED(mutex_);
  void NoteWallClock();

  const LoopOptions options_;
  Store* const store_;
  const Clock* const clock_;
  WorkerGateway* gateway_ = nullptr;
  JobViews views_;

  // The loop's thread only (and Create's, before it starts).
  std::unique_ptr<ControlCore> core_;
  std::vector<Event> adopted_;  // Predictions found on disk at the start
  absl::Time anchor_wall_;      // fixed after Create
  absl::Duration anchor_monotonic_;
  absl::Duration wall_offset_;  // wall clock minus Now(), as last logged
  bool log_written_ = false;    // since the last move of the log
  absl::Time last_commit_ = absl::InfinitePast();

  mutable absl::Mutex mutex_;
  std::vector<Event> inbox_ ABSL_GUARDED_BY(mutex_);
  std::vector<AckCommand> acks_ ABSL_GUARDED_BY(mutex_);  // due when inbox_ is committed
  absl::flat_hash_map<CallId, Answer> calls_ ABSL_GUARDED_BY(mutex_);
  CallId next_call_ ABSL_GUARDED_BY(mutex_) = 1;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // nobody will answer any more
  absl::Status fatal_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<PublishPool> publishers_;
  std::thread thread_;
};

}  // namespace traind
