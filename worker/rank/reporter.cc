#include "worker/rank/reporter.h"

#include <absl/status/status.h>
#include <poll.h>
#include <unistd.h>

#include "common/log.h"

namespace traind {
namespace {

constexpr absl::Duration kBetweenProgress = absl::Milliseconds(100);

// A Rank that nobody listens to has no reason to be.
void EndIfDeaf(const absl::Status& status) {
  if (status.ok()) return;
  TRAIND_LOG(ERROR) << "cannot tell the worker: " << status.ToString();
  _exit(1);
}

}  // namespace

void Reporter::Send(const rank_protocol::FromProcess& message) {
  EndIfDeaf(channel_.QueueLine(rank_protocol::Encode(message)));
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
  if (channel_.HasUnwritten()) EndIfDeaf(channel_.Flush());
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
