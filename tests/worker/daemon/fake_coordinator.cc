#include "tests/worker/daemon/fake_coordinator.h"

#include <chrono>

namespace traind::worker {
namespace {

constexpr std::chrono::seconds kPatience(20);

}  // namespace

void FakeCoordinator::Start() {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(this);
  // A stream that is not read is full after 64 KiB, or gRPC lets it hold more and more.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  server_ = builder.BuildAndStart();
  if (const size_t end = address_.rfind(":0");
      end != std::string::npos && end + 2 == address_.size()) {
    address_ = address_.substr(0, end + 1) + std::to_string(port);
  }
}

void FakeCoordinator::Stop() {
  if (!server_) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

grpc::Status FakeCoordinator::Attach(grpc::ServerContext* context, Stream* stream) {
  v1::WorkerMessage message;
  while (stream->Read(&message)) {
    std::unique_lock<std::mutex> lock(mutex_);
    Await(lock, [this] { return reads_; });
    v1::CoordinatorMessage reply;
    if (message.has_hello()) {
      hellos_.push_back(message.hello());
      facts_first_ = 0;
      beaten_ = false;
      stream_ = stream;
      context_ = context;
      reply.mutable_welcome()->set_lease_ms(15'000);
      reply.mutable_welcome()->set_heartbeat_ms(20);
      reply.mutable_welcome()->set_epoch(epoch_);
      if (welcomes_) stream->Write(reply);
    } else if (message.has_heartbeat()) {
      heartbeat_ = message.heartbeat();
      beaten_ = true;
      if (heartbeat_.leaving() && !ended_) left_first_ = true;
    } else if (message.sequence() == 0) {
      ++progress_;
      last_progress_ = message.report().progress();
    } else {
      messages_.push_back(message);
      facts_first_ += !beaten_;
      if (message.report().has_ended()) ended_ = true;
      reply.mutable_ack()->set_sequence(message.sequence());
      if (acks_) stream->Write(reply);
    }
    changed_.notify_all();
  }
  std::unique_lock<std::mutex> lock(mutex_);
  if (stream_ == stream) stream_ = nullptr;
  changed_.notify_all();
  return grpc::Status::OK;
}

void FakeCoordinator::set_epoch(int64_t epoch) {
  std::unique_lock<std::mutex> lock(mutex_);
  epoch_ = epoch;
}

void FakeCoordinator::set_acks(bool on) {
  std::unique_lock<std::mutex> lock(mutex_);
  acks_ = on;
}

void FakeCoordinator::set_welcomes(bool on) {
  std::unique_lock<std::mutex> lock(mutex_);
  welcomes_ = on;
}

void FakeCoordinator::set_reads(bool on) {
  std::unique_lock<std::mutex> lock(mutex_);
  reads_ = on;
  changed_.notify_all();
}

bool FakeCoordinator::Await(std::unique_lock<std::mutex>& lock,
                            const std::function<bool()>& condition) {
  return changed_.wait_for(lock, kPatience, condition);
}

void FakeCoordinator::Send(const v1::CoordinatorMessage& message) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (Await(lock, [this] { return stream_ != nullptr; })) {
    stream_->Write(message);
  }
}

std::vector<v1::WorkerMessage> FakeCoordinator::messages() {
  std::unique_lock<std::mutex> lock(mutex_);
  return messages_;
}

std::vector<v1::Hello> FakeCoordinator::hellos() {
  std::unique_lock<std::mutex> lock(mutex_);
  return hellos_;
}

v1::Heartbeat FakeCoordinator::last_heartbeat() {
  std::unique_lock<std::mutex> lock(mutex_);
  return heartbeat_;
}

bool FakeCoordinator::told_of_leaving_first() {
  std::unique_lock<std::mutex> lock(mutex_);
  return left_first_;
}

int FakeCoordinator::facts_before_a_heartbeat() {
  std::unique_lock<std::mutex> lock(mutex_);
  Await(lock, [this] { return beaten_; });
  return facts_first_;
}

int64_t FakeCoordinator::progress_count() {
  std::unique_lock<std::mutex> lock(mutex_);
  return progress_;
}

bool FakeCoordinator::WaitFor(
    const std::function<bool(const std::vector<v1::WorkerMessage>&)>& condition) {
  std::unique_lock<std::mutex> lock(mutex_);
  return Await(lock, [&] { return condition(messages_); });
}

bool FakeCoordinator::WaitForHellos(size_t count) {
  std::unique_lock<std::mutex> lock(mutex_);
  return Await(lock, [&] { return hellos_.size() >= count; });
}

v1::Ended FakeCoordinator::WaitForEnded(int64_t attempt) {
  v1::Ended ended;
  WaitFor([&](const std::vector<v1::WorkerMessage>& messages) {
    for (const v1::WorkerMessage& message : messages) {
      if (message.report().attempt() != attempt || !message.report().has_ended()) continue;
      ended = message.report().ended();
      return true;
    }
    return false;
  });
  return ended;
}

bool FakeCoordinator::WaitForWarmRanks(int count) {
  std::unique_lock<std::mutex> lock(mutex_);
  return Await(lock, [&] { return heartbeat_.warm_ranks() >= count; });
}

bool FakeCoordinator::WaitForProgress() {
  std::unique_lock<std::mutex> lock(mutex_);
  const int64_t before = progress_;
  return Await(lock, [&] { return progress_ > before; });
}

bool FakeCoordinator::WaitForProgress(
    const std::function<bool(const v1::ProgressReport&)>& condition) {
  std::unique_lock<std::mutex> lock(mutex_);
  return Await(lock, [&] { return condition(last_progress_); });
}

}  // namespace traind::worker
