#include "worker/task/reporter.h"

#include <absl/status/status.h>
#include <poll.h>
#include <unistd.h>

#include "common/base/log.h"

namespace traind {
namespace {

constexpr absl::Duration kBetweenProgress = absl::Milliseconds(100);

}  // namespace

void Reporter::Check(const absl::Status& status) {
  if (status.ok()) return;
  if (absl::IsResourceExhausted(status)) {
    // A Worker that stands still for so long will not mind a gap; training goes on.
    absl::MutexLock lock(&mutex_);
    if (lost_++ == 0) TRAIND_LOG(ERROR) << "messages are lost: " << status.ToString();
    return;
  }
  // A Rank that nobody listens to has no reason to be.
  TRAIND_LOG(ERROR) << "cannot tell the worker: " << status.ToString();
  _exit(1);
}

void Reporter::Send(const rank_protocol::FromProcess& message) {
  Check(channel_.QueueLine(rank_protocol::Encode(message)));
}

void Reporter::SendProgress(const rank_protocol::Progress& progress) {
  {
    absl::MutexLock lock(&mutex_);
    const absl::Duration now = clock_.MonotonicNow();
    if (now - last_progress_ < kBetweenProgress) return;
    last_progress_ = now;
  }
  channel_.TryWriteLine(rank_protocol::Encode(progress));
}

void Reporter::Flush() {
  if (channel_.HasUnwritten()) Check(channel_.Flush());
}

void Reporter::Drain(absl::Duration timeout) {
  const absl::Duration until = clock_.MonotonicNow() + timeout;
  while (channel_.HasUnwritten() && clock_.MonotonicNow() < until) {
    pollfd writable{channel_.write_fd(), POLLOUT, 0};
    poll(&writable, 1, 100);
    Flush();
  }
}

}  // namespace traind
