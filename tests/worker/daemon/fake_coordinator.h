// A traind for tests: takes Workers' streams, remembers what they say, sends what
// the test wants. Threads: safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
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
  // Breaks the stream, as a kill does.
  void Stop();

  // As it was given, with the port that was taken instead of 0. REQUIRES: Start was called once.
  const std::string& address() const { return address_; }
  // The epoch that Welcome tells.
  void set_epoch(int64_t epoch);
  // Whether facts are acknowledged as they come (default).
  void set_acks(bool on);
  // Whether Welcome is sent (default).
  void set_welcomes(bool on);
  // Whether the stream is read (default); what a Worker sends meanwhile waits.
  void set_reads(bool on);
  // To the stream that is open; waits for one.
  void Send(const v1::CoordinatorMessage& message);

  // All since the start of the test, in order of arrival, Heartbeats and Progress left out.
  std::vector<v1::WorkerMessage> messages();
  std::vector<v1::Hello> hellos();
  v1::Heartbeat last_heartbeat();
  // Whether a Heartbeat has told that the Worker leaves before any Ended came.
  bool told_of_leaving_first();
  // How many facts came on the newest stream before its first Heartbeat; waits for that.
  int facts_before_a_heartbeat();
  int64_t progress_count();

  // Waits until it is true of messages(); false: not within 20 s.
  bool WaitFor(const std::function<bool(const std::vector<v1::WorkerMessage>&)>& condition);
  bool WaitForHellos(size_t count);
  // Ended of the attempt; the reason is UNSPECIFIED if it does not come.
  v1::Ended WaitForEnded(int64_t attempt);
  bool WaitForWarmRanks(int count);
  bool WaitForProgress();
  // Waits for a Progress of which it is true.
  bool WaitForProgress(const std::function<bool(const v1::ProgressReport&)>& condition);

 private:
  using Stream = grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::WorkerMessage>;
  grpc::Status Attach(grpc::ServerContext* context, Stream* stream) override;
  bool Await(std::unique_lock<std::mutex>& lock, const std::function<bool()>& condition);

  std::string address_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool acks_ = true;
  int64_t epoch_ = 0;
  bool welcomes_ = true;
  bool reads_ = true;
  bool ended_ = false;
  bool left_first_ = false;
  bool beaten_ = false;  // a Heartbeat came on this stream
  int facts_first_ = 0;
  Stream* stream_ = nullptr;
  grpc::ServerContext* context_ = nullptr;
  std::vector<v1::WorkerMessage> messages_;
  std::vector<v1::Hello> hellos_;
  v1::Heartbeat heartbeat_;
  int64_t progress_ = 0;
  v1::ProgressReport last_progress_;
};

}  // namespace traind::worker
