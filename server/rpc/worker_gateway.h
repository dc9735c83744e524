// The Workers' side of traind: WorkerService, and the way back to each Worker.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/timed_wait.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/access/gate.h"
#include "server/control/events.h"
#include "server/loop/control_loop.h"
#include "server/loop/publish_pool.h"
#include "server/rpc/worker_stream.h"

namespace traind {

struct WorkerGatewayOptions {
  absl::Duration lease = absl::Seconds(15);
  absl::Duration heartbeat = absl::Seconds(2);
  absl::Duration shutdown_grace = absl::Seconds(10);
  std::string coordinator_id;
  int64_t epoch = 0;                    // of the archive; 0: there is none
  std::vector<std::string> data_roots;  // absolute, links resolved
  Gate* gate = nullptr;                 // Workers have tokens; outlives the gateway
  // Decides whether a token's Worker may have that id; empty: every one.
  std::function<absl::Status(const std::string& worker, const std::string& token)> claim;
  WorkerStreamLimits stream;
};

// One stream per Worker; a second one of the same Worker ends the first. Streams hold no threads:
// those of gRPC read and write them, and two of the gateway's own do what may wait for a disk.
// Send never waits for a Worker. A Worker that lets its queue run full is cut off: it attaches anew
// and learns what is to be done, as after any broken stream.
// Threads: safe. Ownership: the clock outlives the gateway, and the gateway the gRPC server.
class GrpcWorkerGateway final : public WorkerGateway, public v1::WorkerService::CallbackService {
 public:
  using Post = std::function<void(Event)>;
  // A Worker published this Job's Prediction by itself; the Ack is due once that is
  // stored.
  using WorkerPublished = std::function<void(const std::string& job, AckCommand ack)>;

  GrpcWorkerGateway(WorkerGatewayOptions options, const Clock* clock, Post post,
                    WorkerPublished published);
  ~GrpcWorkerGateway() override;

  grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>* Attach(
      grpc::CallbackServerContext* context) override;

  void Send(const AckCommand& command) override;
  void Send(const StartCommand& command, absl::Time now) override;
  void Send(const StopCommand& command) override;
  void Send(const MeetCommand& command) override;
  void Send(const ReplanCommand& command, absl::Time now) override;
  void Send(const ShutdownCommand& command) override;
  void Note(const WorkerNote& note) override ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseAll() override;

  // Asks a serving Attempt, and waits for its answer. Unavailable: it is not there, did not answer
  // within `patience`, or too much waits for its Worker; Aborted: it was lost while it had the
  // rows; else what the Rank says (InvalidArgument names the row).
  absl::StatusOr<v1::PredictRowsReply> Ask(const std::string& worker, v1::AskRows ask,
                                           absl::Duration patience) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns how many have come from all Workers.
  int64_t heartbeats() const { return heartbeats_.load(); }
  // Returns the number of the stream that was opened last; 0: none was.
  uint64_t newest_session() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Every Worker seen since the start that has not left, and those that take nothing new. Slots do
  // not tell what runs there.
  std::vector<v1::WorkerInfo> Workers() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until no Worker is attached. false: the time is over.
  bool WaitForNone(absl::Duration timeout) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr int kDiskThreads = 2;
  struct Session;

  // Answers the first message of a stream: opens the session, or ends the stream.
  void Greet(const std::shared_ptr<Session>& session, const v1::Hello& hello);
  // May wait for the disk.
  void Claim(const std::shared_ptr<Session>& session, const v1::Hello& hello);
  // Tells the log of a Worker that may not attach, and returns what it is answered.
  grpc::Status Refuse(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void Open(const std::shared_ptr<Session>& session, const v1::Hello& hello)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Its stream has ended.
  void Close(const std::shared_ptr<Session>& session);
  void Forget(const std::shared_ptr<Session>& session) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes a later message.
  void Take(const std::shared_ptr<Session>& session, const v1::WorkerMessage& message);
  // Whether the Worker's token still counts, looked up now and then.
  absl::Status CheckAgain(Session& session) const;
  // Gives back what a Worker was asked whose stream has ended or has given way to a new one.
  void GiveBack(const std::string& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeAnswer(const v1::RowsAnswered& answer) ABSL_LOCKS_EXCLUDED(mutex_);
  // nullopt: a report that this traind does not know, or must not believe.
  static std::optional<facts::Fact> ReadFact(const Session& session,
                                             const v1::AttemptReport& report);
  void Enqueue(const std::string& worker, uint64_t session, v1::CoordinatorMessage message)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Seen(const Session& session, const v1::Heartbeat& heartbeat) ABSL_LOCKS_EXCLUDED(mutex_);

  const WorkerGatewayOptions options_;
  const Clock* const clock_;
  const Post post_;
  const WorkerPublished published_;
  std::atomic<int64_t> heartbeats_{0};
  mutable absl::Mutex mutex_;
  mutable TimedCondVar answered_;  // after an answer, or the end of a session
  absl::flat_hash_map<std::string, std::shared_ptr<Session>> sessions_
      ABSL_GUARDED_BY(mutex_);  // by worker
  absl::flat_hash_map<std::string, v1::WorkerInfo> known_ ABSL_GUARDED_BY(mutex_);
  std::string refused_ ABSL_GUARDED_BY(mutex_);  // what the last refusal said
  uint64_t last_session_ ABSL_GUARDED_BY(mutex_) = 0;
  struct Question;
  absl::flat_hash_map<uint64_t, Question*> questions_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_question_ ABSL_GUARDED_BY(mutex_) = 0;
  PublishPool disk_{kDiskThreads};  // the last member: its work uses the others
};

}  // namespace traind
