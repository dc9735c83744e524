// The one thread that decides: it collects all waiting events, lets the core decide, commits one
// transaction, and only then acts and answers (group commit).
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
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/timed_wait.h"
#include "server/control/control_core.h"
#include "server/control/events.h"
#include "server/loop/figures.h"
#include "server/loop/publish_pool.h"
#include "server/loop/views.h"
#include "server/store/store.h"

namespace traind {

// Sends messages to Workers; the rpc edge implements it.
// Threads: called on the loop's thread; calls must not block. A message to a Worker that is not
// attached is dropped, because the core learns of the detachment.
class WorkerGateway {
 public:
  virtual ~WorkerGateway() = default;
  virtual void Send(const AckCommand& command) = 0;
  // `now`: the time to which the command's absolute times refer.
  virtual void Send(const StartCommand& command, absl::Time now) = 0;
  virtual void Send(const StopCommand& command) = 0;
  virtual void Send(const MeetCommand& command) = 0;
  virtual void Send(const ReplanCommand& command, absl::Time now) = 0;
  virtual void Send(const ShutdownCommand& command) = 0;
  // A Worker takes other Tasks than before, for those who list the Workers.
  virtual void Note(const WorkerNote& note) = 0;
  // Ends every stream. Workers then reconnect and repeat what was not acknowledged.
  virtual void CloseAll() = 0;
};

struct LoopOptions {
  std::string state_dir;  // absolute
  CoreOptions core;
  // The write-ahead log is moved into the database after the loop has been idle for
  // checkpoint_idle, at checkpoint_bytes as soon as nothing waits, and at most_log_bytes at once.
  // Callers wait meanwhile, some milliseconds per MiB. A warning tells when a foreign reader keeps
  // more than most_log_bytes from being moved.
  absl::Duration checkpoint_idle = absl::Seconds(2);
  int64_t checkpoint_bytes = 4 << 20;
  int64_t most_log_bytes = 64 << 20;
  // Heartbeats that come so soon after a turn wait for the others that come meanwhile: thousands of
  // Workers would else have a turn each.
  absl::Duration gather_heartbeats = absl::Milliseconds(20);
};

// Runs the control core.
// Threads: Start and Stop from one; the rest is safe from any. Ownership: store, clock and gateway
// outlive the loop.
class ControlLoop {
 public:
  using Answer = std::function<void(Reply)>;

  // Reads the store, and the Predictions that Workers published while no coordinator ran. No thread
  // is started yet.
  static absl::StatusOr<std::unique_ptr<ControlLoop>> Create(LoopOptions options, Store* store,
                                                             const Clock* clock);
  ~ControlLoop();

  // Starts the loop's thread. `gateway` reaches the Workers.
  void Start(WorkerGateway* gateway);
  // Waits until all posted events are committed, ends the thread, and moves the write-ahead log
  // into the database. Callers that still wait get Unavailable.
  void Stop();

  // Each call's answer is given on the loop's thread, after the commit, exactly once (after Stop:
  // at once, Unavailable).
  void Submit(Job job, Answer answer);
  // All of them in one turn, so that one commit stores them. Each has an answer of its own. The
  // limit of an owner's Jobs takes all that are new, or none.
  void SubmitAll(std::vector<std::pair<Job, Answer>> jobs);
  void Finish(const std::string& job, Answer answer);
  void Cancel(const std::string& job, Answer answer);
  void Pause(const std::string& job, Answer answer);
  void Resume(const std::string& job, Answer answer);
  void Update(traind::Update update, Answer answer);
  void Propose(traind::Propose event, Answer answer);
  void SetQuota(traind::SetQuota event, Answer answer);
  void RemoveQuota(QuotaSubject subject, Answer answer);
  void ListQuotas(Answer answer);
  void UpdateWorker(traind::UpdateWorker event, Answer answer);
  void Pin(const std::string& job, bool pinned, Answer answer);
  void Delete(const std::string& job, std::vector<int64_t> attempts, Answer answer);
  void Purge(const std::string& job, Answer answer);
  void ForgetHistory(const std::string& job, Answer answer);
  void Post(Event event);
  // Records that a Worker published by itself: reads the standing Prediction from disk, and sends
  // `ack` once it is stored.
  void AdoptPrediction(const std::string& job, AckCommand ack);

  // The core's time: that of the wall clock, counted by a monotonic clock between its steps. After
  // a step the Jobs' times have moved with it, so that a budget keeps what remained of it.
  absl::Time Now() const ABSL_LOCKS_EXCLUDED(anchor_mutex_);

  LoopFigures::Counts figures() const { return figures_.counts(); }
  const JobViews& views() const { return views_; }
  JobViews& views() { return views_; }

  // Set when the store has failed for good; the process should end with this error.
  absl::Status fatal() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Blocks until Stop is called, fatal() is set, or the timeout is over.
  bool WaitForFatal(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mutex_);
  // The time since the loop's thread began its last turn, which it does once a second at least. It
  // grows while a commit waits for the disk, and when the thread hangs.
  absl::Duration SinceLastTurn() const;

 private:
  ControlLoop(LoopOptions options, Store* store, const Clock* clock);
  absl::Status Load();
  void Run();
  // Runs one turn; returns when the core wants to be woken.
  absl::Time RunOnce(std::vector<Event> events, std::vector<AckCommand> acks);
  // Removes Submits whose request belongs to a terminal Job, which the core no longer knows, and
  // returns the answers to them.
  std::vector<Reply> AnswerFromStore(std::vector<Event>* events);
  // Sends the acknowledgements if what they acknowledge is synced, or keeps them until it is.
  void Acknowledge(std::vector<AckCommand> acks);
  void SyncWhenDue();
  void MoveLog() ABSL_LOCKS_EXCLUDED(mutex_);
  void WarnOfHeldLog();
  void Act(Turn turn, absl::Time now);
  // Both run on a thread of the pool.
  void EndPublishingFor(const std::string& job);
  absl::StatusOr<std::vector<TrainedFold>> FindFolds(const ReuseCommand& command);
  void Fail(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  void Recover(const Turn& turn, const absl::Status& failure);
  void AnswerAll(const std::vector<Reply>& replies);
  // Begins a turn with what is in the inbox.
  void Wake() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  template <typename Call>
  void PostCall(Call event, Answer answer) ABSL_LOCKS_EXCLUDED(mutex_);
  // traind was stopped: adds the Predictions of Jobs that are about to end, because what their
  // Workers say of them may come after the end.
  void AddPublishedAlone(std::vector<Event>* events) const;
  // Moves the stored times of active Jobs; the time is `after` then.
  absl::Status StoreStep(absl::Duration step, absl::Time after);
  // If the wall clock has stepped: moves the times, reads the store again and ends the Workers'
  // streams, because all absolute times in the core and in messages have changed. Returns when the
  // core wants to be woken; nullopt: there was no step.
  std::optional<absl::Time> FollowWallClock();

  const LoopOptions options_;
  Store* const store_;
  const Clock* const clock_;
  WorkerGateway* gateway_ = nullptr;
  JobViews views_;
  LoopFigures figures_;

  // Only the loop's thread uses the following (and Create, before it starts).
  std::unique_ptr<ControlCore> core_;
  std::vector<Event> adopted_;   // what was found on disk at the start
  absl::Duration look_at_wall_;  // on the monotonic clock: no step is followed before it
  bool log_written_ = false;     // since the last move of the whole log
  // On the monotonic clock: before it a log that could not be moved is not tried again.
  absl::Duration move_log_again_ = -absl::InfiniteDuration();
  // A warning tells that so much of the log is held; it comes again when that has doubled. 0: there
  // was none.
  int64_t warn_of_log_at_ = 0;
  // A commit for which nobody waits is not synced at once. Until a later one is, acknowledgements
  // wait, but no longer than sync_by_ (on the monotonic clock).
  bool unsynced_ = false;
  std::vector<AckCommand> unsent_acks_;
  absl::Duration sync_by_ = absl::InfiniteDuration();
  absl::Time last_commit_ = absl::InfinitePast();

  std::atomic<int64_t> last_turn_ns_{0};  // on the monotonic clock

  mutable absl::Mutex anchor_mutex_;
  absl::Duration anchor_ ABSL_GUARDED_BY(anchor_mutex_);  // wall clock minus monotonic clock

  mutable absl::Mutex mutex_;
  // After a change of stopping_, of what wakes the loop, or of fatal_.
  TimedCondVar news_, over_;
  std::vector<Event> inbox_ ABSL_GUARDED_BY(mutex_);
  bool urgent_ ABSL_GUARDED_BY(mutex_) = false;  // something of the inbox does not wait
  // On the monotonic clock: until then heartbeats wait, and then they are looked for.
  absl::Duration gather_until_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  std::vector<AckCommand> acks_ ABSL_GUARDED_BY(mutex_);  // due when inbox_ is committed
  absl::flat_hash_map<CallId, Answer> calls_ ABSL_GUARDED_BY(mutex_);
  CallId next_call_ ABSL_GUARDED_BY(mutex_) = 1;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;  // no more answers will be given
  absl::Status fatal_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<PublishPool> publishers_;
  // Reads checkpoints, which may take minutes; null: none was to be read.
  std::unique_ptr<PublishPool> readers_;
  std::thread thread_;
};

}  // namespace traind
