// A Worker's stream at traind's side, without a thread of its own.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>

#include "proto/worker_service.pb.h"

namespace traind {

// So much may wait for a Worker that does not read.
struct WorkerStreamLimits {
  size_t messages = 1000;
  size_t bytes = 16 << 20;
};

// Reads one message at a time and writes from a bounded queue, in order, one message at a time.
// Threads: Send, End and Cancel are safe from any, and never wait for the Worker. Take and Ended
// are called on threads of gRPC, one call at a time, and must not block.
// Ownership: from Begin until gRPC has done with the call it keeps itself alive; whoever holds it
// longer may still call Send and Cancel, which then do nothing.
class WorkerStream : public grpc::ServerBidiReactor<v1::WorkerMessage, v1::CoordinatorMessage>,
                     public std::enable_shared_from_this<WorkerStream> {
 public:
  enum class WhenFull {
    kEnd,     // the stream is cancelled: the Worker has to attach anew
    kRefuse,  // only this message is not sent
  };

  // context: of the call.
  WorkerStream(grpc::CallbackServerContext* context, WorkerStreamLimits limits)
      : limits_(limits), context_(context) {}
  WorkerStream(const WorkerStream&) = delete;
  WorkerStream& operator=(const WorkerStream&) = delete;

  // Reads the first message. REQUIRES: a shared_ptr owns this.
  void Begin() ABSL_LOCKS_EXCLUDED(mutex_);
  // Sends the message when its turn comes; one that finds the stream over is dropped. An Ack joins
  // one that is the last in the queue, because it covers that. false: the queue is full.
  bool Send(v1::CoordinatorMessage message, WhenFull full) ABSL_LOCKS_EXCLUDED(mutex_);
  // Each message that was taken is followed by one of these: the next is read, or the call ends
  // with that status once the message that is being written has gone. What waits is dropped.
  void ReadNext() { StartRead(&incoming_); }
  void End(grpc::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels the call. Ended follows.
  void Cancel() ABSL_LOCKS_EXCLUDED(mutex_);

 protected:
  // Takes the next message, which lasts until ReadNext or End.
  virtual void Take(const v1::WorkerMessage& message) = 0;
  // No message comes any more. It is not called after End.
  virtual void Ended() = 0;

 private:
  void OnReadDone(bool ok) final;
  void OnWriteDone(bool ok) final ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() final ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const WorkerStreamLimits limits_;
  v1::WorkerMessage incoming_;  // gRPC's while it reads
  absl::Mutex mutex_;
  grpc::CallbackServerContext* context_ ABSL_GUARDED_BY(mutex_);  // null: gRPC has done with it
  std::shared_ptr<WorkerStream> self_ ABSL_GUARDED_BY(mutex_);
  bool open_ ABSL_GUARDED_BY(mutex_) = true;  // messages are still sent
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  v1::CoordinatorMessage outgoing_ ABSL_GUARDED_BY(mutex_);  // gRPC's while it is written
  std::deque<v1::CoordinatorMessage> queue_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<grpc::Status> end_ ABSL_GUARDED_BY(mutex_);  // due when nothing is being written
};

}  // namespace traind
