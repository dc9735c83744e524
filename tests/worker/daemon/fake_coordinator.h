// A traind for tests: takes Workers' streams, remembers what they say, sends what
// the test wants. Threads: safe.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/worker_service.grpc.pb.h"

namespace traind::worker {

class FakeCoordinator final : public v1::WorkerService::Service {
 public:
  // address: as ServerBuilder takes it.
  explicit FakeCoordinator(std::string address) : address_(std::move(address)) {}
  ~FakeCoordinator() override { Stop(); }

  void Start();
  // As if killed: the stream breaks.
  void Stop();

  // Whether facts are acknowledged as they come (default).
  void set_acks(bool on);
  // Whether Welcome is sent (default).
  void set_welcomes(bool on);
  // To the stream that is open; waits for one.
  void Send(const v1::CoordinatorMessage& message);

  // All since the start of the test, in order of arrival, Heartbeats and Progress left out.
  std::vector<v1::WorkerMessage> messages();
  std::vector<v1::Hello> hellos();
  v1::Heartbeat last_heartbeat();
  int64_t progress_count();

  // Waits until it is true of messages(); false: not within 20 s.
  bool WaitFor(const std::function<bool(const std::vector<v1::WorkerMessage>&)>& condition);
  bool WaitForHellos(size_t count);
  // Ended of the attempt; the reason is UNSPECIFIED if it does not come.
  v1::Ended WaitForEnded(int64_t attempt);
  bool WaitForWarmRanks(int count);
  bool WaitForProgress();

 private:
  using Stream = grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>;
  grpc::Status Attach(grpc::ServerContext* context, Stream* stream) override;
  bool Await(const std::function<bool()>& condition) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string address_;
  std::unique_ptr<grpc::Server> server_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  bool acks_ ABSL_GUARDED_BY(mutex_) = true;
  bool welcomes_ ABSL_GUARDED_BY(mutex_) = true;
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  grpc::ServerContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<v1::WorkerMessage> messages_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::Hello> hellos_ ABSL_GUARDED_BY(mutex_);
  v1::Heartbeat heartbeat_ ABSL_GUARDED_BY(mutex_);
  int64_t progress_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace traind::worker
