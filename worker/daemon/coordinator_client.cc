#include "worker/daemon/coordinator_client.h"

#include <absl/random/random.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "worker/daemon/backoff.h"

namespace traind::worker {
namespace {

constexpr int kFirstBackoffMs = 50;
constexpr int kMaxBackoffMs = 2000;
// On one machine a try costs microseconds, and a traind that is back adopts sooner.
constexpr int kMaxBackoffUnixMs = 250;
constexpr int kConnectTimeoutMs = 2000;
// Messages that may wait for traind before droppable ones are dropped.
constexpr std::chrono::seconds kWriteEnds{1};
constexpr size_t kQueueForDroppable = 64;
constexpr std::chrono::milliseconds kConnectPatience{250};
// Then the next of several addresses is tried; who does not even refuse may be a dead machine.
constexpr int kMissesBeforeTheNext = 4;
constexpr int kMaxMessageBytes = 16 << 20;

// Heartbeats that nobody's TCP confirms for so long are a dead connection.
constexpr int kTcpUserTimeoutMs = 10'000;
// Pings, which switch that on; a server takes one in five minutes at most.
constexpr int kKeepaliveMs = 310'000;
// Who only receives a file notices a dead connection by pings alone; traind takes one in 20 s.
constexpr int kFilesKeepaliveMs = 25'000;

grpc::ChannelArguments ChannelArguments(int max_backoff_ms) {
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kTcpUserTimeoutMs);
  args.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  args.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, max_backoff_ms);
  args.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);  // that is what it means
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  args.SetMaxReceiveMessageSize(kMaxMessageBytes);
  args.SetMaxSendMessageSize(kMaxMessageBytes);
  return args;
}

std::string TargetOf(const std::string& host_port) { return absl::StrCat("dns:///", host_port); }

}  // namespace

std::vector<std::string> SplitAddresses(const std::string& addresses) {
  // A path of a socket may have commas.
  if (absl::StartsWith(addresses, "unix:")) return {addresses};
  return absl::StrSplit(addresses, ',');
}

absl::StatusOr<std::vector<std::shared_ptr<grpc::Channel>>> MakeCoordinatorChannels(
    const std::string& addresses, const ChannelSecurity& security) {
  ASSIGN_OR_RETURN(const auto credentials, MakeChannelCredentials(security));
  grpc::ChannelArguments args = ChannelArguments(kMaxBackoffMs);
  args.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kFilesKeepaliveMs);
  args.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (const std::string& address : SplitAddresses(addresses)) {
    channels.push_back(grpc::CreateCustomChannel(TargetOf(address), credentials, args));
  }
  return channels;
}

absl::StatusOr<std::unique_ptr<CoordinatorClient>> CoordinatorClient::Connect(
    const std::string& addresses, const ChannelSecurity& security) {
  ASSIGN_OR_RETURN(auto credentials, MakeChannelCredentials(security));
  if (!absl::StartsWith(addresses, "unix:")) {
    std::vector<std::string> targets;
    for (const std::string& address : SplitAddresses(addresses)) {
      if (address.find(':') == std::string::npos || absl::StartsWith(address, "unix:")) {
        return absl::InvalidArgumentError(absl::StrCat(
            "coordinator ", addresses, ": expected HOST:PORT[,HOST:PORT...] or unix:PATH"));
      }
      targets.push_back(TargetOf(address));
    }
    return std::unique_ptr<CoordinatorClient>(
        new CoordinatorClient(std::move(targets), -1, std::move(credentials)));
  }
  const std::string& address = addresses;
  absl::string_view path = absl::StripPrefix(address, "unix:");
  if (absl::StartsWith(path, "//")) path.remove_prefix(2);
  const size_t slash = path.rfind('/');
  const std::string folder(slash == path.npos ? "." : path.substr(0, slash + 1));
  const std::string name(slash == path.npos ? path : path.substr(slash + 1));
  if (name.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("coordinator ", address, ": no file name"));
  }
  // A socket's address holds 107 bytes, a path may be longer; and a path may hold
  // what a URI may not.
  const int fd = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("coordinator ", address));
  return std::unique_ptr<CoordinatorClient>(
      new CoordinatorClient({absl::StrCat("unix:/proc/self/fd/", fd, "/", name)}, fd,
                            grpc::InsecureChannelCredentials()));
}

CoordinatorClient::CoordinatorClient(std::vector<std::string> targets, int folder_fd,
                                     std::shared_ptr<grpc::ChannelCredentials> credentials)
    : targets_(std::move(targets)), folder_fd_(folder_fd), credentials_(std::move(credentials)) {
  reader_ = std::thread([this] { RunReader(); });
  writer_ = std::thread([this] { RunWriter(); });
}

CoordinatorClient::~CoordinatorClient() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  changed_.notify_all();
  reader_.join();
  writer_.join();
  if (folder_fd_ >= 0) close(folder_fd_);
}

bool CoordinatorClient::WaitOrStop(absl::Duration time) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoNanoseconds(time), [this] { return stop_; });
}

void CoordinatorClient::RunReader() {
  const int max_backoff_ms = folder_fd_ >= 0 ? kMaxBackoffUnixMs : kMaxBackoffMs;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (const std::string& target : targets_) {
    channels.push_back(
        grpc::CreateCustomChannel(target, credentials_, ChannelArguments(max_backoff_ms)));
  }
  absl::BitGen random;
  Backoff backoff(absl::Milliseconds(kFirstBackoffMs), absl::Milliseconds(max_backoff_ms));
  while (!WaitOrStop(absl::ZeroDuration())) {
    const auto& channel = channels[current_];
    if (!AwaitConnection(*channel)) continue;
    const auto stub = v1::WorkerService::NewStub(channel);
    const bool heard = RunStream(*stub);
    bool elsewhere = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      elsewhere = std::exchange(elsewhere_, false);
    }
    // A stream that traind refuses is not opened again at once.
    if (heard && !elsewhere) backoff.Reset();
    if (!heard || elsewhere) MoveOn();
    if (WaitOrStop(backoff.Next(random))) break;
  }
}

bool CoordinatorClient::AwaitConnection(grpc::Channel& channel) {
  // gRPC itself tries again and again to connect, with the distances above.
  if (channel.WaitForConnected(std::chrono::system_clock::now() + kConnectPatience)) {
    misses_ = 0;
    return true;
  }
  const bool refused = channel.GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_TRANSIENT_FAILURE;
  if (refused || ++misses_ >= kMissesBeforeTheNext) MoveOn();
  return false;
}

void CoordinatorClient::MoveOn() {
  current_ = (current_ + 1) % targets_.size();
  misses_ = 0;
}

bool CoordinatorClient::RunStream(v1::WorkerService::Stub& stub) {
  grpc::ClientContext context;
  const std::unique_ptr<Stream> stream = stub.Attach(&context);
  uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    number = ++streams_;
    context_ = &context;
    stream_ = stream.get();
    queue_.clear();
    if (stop_) context.TryCancel();
  }
  events_.Put({Event::kOpened, number, {}, ""});
  bool heard = false;
  v1::CoordinatorMessage message;
  while (stream->Read(&message)) {
    heard = true;
    events_.Put({Event::kMessage, number, std::move(message), ""});
    message = v1::CoordinatorMessage();
  }
  {
    std::unique_lock<std::mutex> lock(mutex_);
    stream_ = nullptr;
    // A Write may be in it still; it fails now that the stream is over. A cancelled stream no
    // longer says why traind has ended it.
    const auto written = [this] { return !writing_; };
    if (!changed_.wait_for(lock, kWriteEnds, written)) {
      context.TryCancel();
      changed_.wait(lock, written);
    }
    context_ = nullptr;
    queue_.clear();
  }
  const grpc::Status status = stream->Finish();
  events_.Put({Event::kClosed,
               number,
               {},
               status.ok() ? "traind closed the stream" : status.error_message()});
  return heard;
}

void CoordinatorClient::RunWriter() {
  while (true) {
    v1::WorkerMessage message;
    Stream* stream = nullptr;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || (stream_ != nullptr && !queue_.empty()); });
      if (stop_) return;
      message = std::move(queue_.front());
      queue_.pop_front();
      stream = stream_;
      writing_ = true;
    }
    const bool written = stream->Write(message);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      writing_ = false;
      // Read ends too then, and with it the stream.
      if (!written) queue_.clear();
    }
    changed_.notify_all();
  }
}

bool CoordinatorClient::Send(uint64_t stream, v1::WorkerMessage message, bool may_drop) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stream_ == nullptr || stream != streams_) return false;
    if (may_drop && queue_.size() >= kQueueForDroppable) return false;
    queue_.push_back(std::move(message));
  }
  changed_.notify_all();
  return true;
}

void CoordinatorClient::CloseStream(uint64_t stream, bool elsewhere) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (context_ == nullptr || stream != streams_) return;
  elsewhere_ = elsewhere;
  context_->TryCancel();
}

void CoordinatorClient::Finish(absl::Duration timeout) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout),
                      [this] { return stream_ == nullptr || (queue_.empty() && !writing_); });
    stop_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  changed_.notify_all();
}

}  // namespace traind::worker
