// The Worker's stream to traind: opened again and again for as long as it takes.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/wire/channel_credentials.h"
#include "proto/worker_service.grpc.pb.h"
#include "worker/daemon/mailbox.h"

namespace traind::worker {

// Returns a channel for files to each traind of HOST:PORT,HOST:PORT,... A call on a dead connection
// ends within 35 s. Errors: those of MakeChannelCredentials.
absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> MakeCoordinatorChannels(
    const std::string& addresses, const ChannelSecurity& security);

// The first of several addresses, and so on; without a comma there is one.
std::vector<std::string> SplitAddresses(const std::string& addresses);

// Opens one stream at a time. Each begins with kOpened, brings kMessages and ends
// with kClosed; then the next is tried, at growing distances with jitter (50 ms to
// 2 s; over a Unix socket to 250 ms). Of several addresses the next one is tried where nobody
// listens, or whoever does refuses the stream. What is sent belongs to a stream and ends with it:
// the event loop sends it again on the next. Threads: safe; two of its own wait in gRPC.
class CoordinatorClient {
 public:
  struct Event {
    enum Kind { kOpened, kMessage, kClosed } kind = kOpened;
    uint64_t stream = 0;  // grows
    v1::CoordinatorMessage message;
    std::string why;  // kClosed
  };

  // host:port, several of them with commas in between, or unix:PATH with a path of any length.
  // InvalidArgument, NotFound (no folder of the socket), those of MakeChannelCredentials.
  static absl::StatusOr<std::unique_ptr<CoordinatorClient>> Connect(
      const std::string& addresses, const ChannelSecurity& security = {});

  // Ends the stream and the threads.
  ~CoordinatorClient();

  // Events wait in it.
  Mailbox<Event>& events() { return events_; }

  // In order. false: the stream is over, or the message may be dropped and traind
  // does not read as fast as that.
  bool Send(uint64_t stream, v1::WorkerMessage message, bool may_drop);
  // Breaks it off; kClosed follows, and another try: at the next address if `elsewhere`.
  void CloseStream(uint64_t stream, bool elsewhere = false);
  // The address that is in use or tried now, as a number from 0 on. It is not at once another one
  // where nobody answers.
  size_t current() const { return current_; }
  // Sends what waits, for at most so long, then ends the stream.
  void Finish(absl::Duration timeout);

 private:
  using Stream = grpc::ClientReaderWriter<v1::WorkerMessage, v1::CoordinatorMessage>;

  CoordinatorClient(std::vector<std::string> targets, int folder_fd,
                    std::shared_ptr<grpc::ChannelCredentials> credentials);
  void RunReader();
  // Waits a moment for a connection; false: there is none, and another address may be current now.
  bool AwaitConnection(grpc::Channel& channel);
  void MoveOn();
  // One stream from its opening to its end; true: traind said something on it.
  bool RunStream(v1::WorkerService::Stub& stub);
  void RunWriter();
  bool WaitOrStop(absl::Duration time);

  const std::vector<std::string> targets_;
  const int folder_fd_;  // -1: no Unix socket
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  Mailbox<Event> events_;
  std::atomic<size_t> current_{0};
  int misses_ = 0;  // of the reader: waits for the current address without a connection

  // Not absl::Mutex: its timed waits follow the wall clock, which may be put back.
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_, down to the threads.
  bool stop_ = false;
  bool elsewhere_ = false;  // the stream was closed to try the next address
  uint64_t streams_ = 0;
  // Both belong to the open stream; null if there is none.
  grpc::ClientContext* context_ = nullptr;
  Stream* stream_ = nullptr;
  bool writing_ = false;
  std::deque<v1::WorkerMessage> queue_;

  std::thread reader_, writer_;
};

}  // namespace traind::worker
