#include "worker/rank_protocol/line_channel.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "common/base/clock.h"
#include "worker/rank_protocol/messages.h"

namespace traind::rank_protocol {
namespace {

constexpr size_t kMaxUnwritten = 16 << 20;
constexpr size_t kReadBytes = 64 << 10;

absl::Status SystemError(const char* what) {
  return absl::InternalError(absl::StrCat(what, ": ", strerror(errno)));
}

// Waits for events until then; false: not by then.
absl::StatusOr<bool> Wait(int fd, short events, absl::Duration until) {
  while (true) {
    int timeout_ms = -1;
    if (until != absl::InfiniteDuration()) {
      const absl::Duration left =
          std::max(until - SystemClock().MonotonicNow(), absl::ZeroDuration());
      // Rounded up: a wait of 0.4 ms must not spin.
      timeout_ms = static_cast<int>(
          std::min<int64_t>(absl::ToInt64Milliseconds(left + absl::Microseconds(999)), 1 << 30));
    }
    pollfd poll_fd{fd, events, 0};
    const int ready = poll(&poll_fd, 1, timeout_ms);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return SystemError("poll");
    if (ready == 0 && SystemClock().MonotonicNow() >= until) return false;
  }
}

// Writes what goes without waiting; 0: nothing for now; -1: errno.
ssize_t WriteSome(int fd, absl::string_view bytes) {
  ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && errno == ENOTSOCK) {
    // A pipe that polls as writable takes PIPE_BUF bytes without blocking.
    pollfd poll_fd{fd, POLLOUT, 0};
    if (poll(&poll_fd, 1, 0) <= 0) return 0;
    sent = write(fd, bytes.data(), std::min<size_t>(bytes.size(), PIPE_BUF));
  }
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return 0;
  return sent;
}

absl::Duration Until(absl::Duration timeout) {
  return timeout <= absl::ZeroDuration() ? absl::ZeroDuration()
                                         : SystemClock().MonotonicNow() + timeout;
}

}  // namespace

LineChannel::~LineChannel() {
  if (read_fd_ >= 0) close(read_fd_);
  if (write_fd_ >= 0 && write_fd_ != read_fd_) close(write_fd_);
}

absl::StatusOr<std::string> LineChannel::ReadLine(absl::Duration timeout) {
  const absl::Duration until = Until(timeout);
  while (true) {
    const size_t newline = input_.find('\n', scanned_);
    if (newline != std::string::npos) {
      std::string line = input_.substr(0, newline);
      input_.erase(0, newline + 1);
      scanned_ = 0;
      return line;
    }
    scanned_ = input_.size();
    if (!read_status_.ok()) return read_status_;
    if (input_.size() > kMaxLineBytes) {
      return read_status_ = absl::InvalidArgumentError(
                 absl::StrCat("a line of over ", kMaxLineBytes, " bytes"));
    }
    absl::StatusOr<bool> ready = Wait(read_fd_, POLLIN, until);
    if (!ready.ok()) return ready.status();
    if (!*ready) return absl::DeadlineExceededError("no line yet");
    const size_t before = input_.size();
    input_.resize(before + kReadBytes);
    const ssize_t got = read(read_fd_, &input_[before], kReadBytes);
    const int error = errno;
    input_.resize(before + std::max<ssize_t>(got, 0));
    // A socket's peer that died with input unread gives ECONNRESET, a closed
    // terminal EIO: both are the end.
    if (got == 0 || (got < 0 && (error == ECONNRESET || error == EIO))) {
      read_status_ = absl::OutOfRangeError("end of input");
    } else if (got < 0 && error != EINTR && error != EAGAIN) {
      errno = error;
      read_status_ = SystemError("read");
    }
  }
}

absl::Status LineChannel::FlushLocked(absl::Duration until) {
  size_t done = 0;
  absl::Status status;
  while (done < output_.size()) {
    const ssize_t sent = WriteSome(write_fd_, absl::string_view(output_).substr(done));
    if (sent < 0) {
      status = errno == EPIPE || errno == ECONNRESET
                   ? absl::OutOfRangeError("nobody reads the other end")
                   : SystemError("write");
      break;
    }
    done += static_cast<size_t>(sent);
    if (sent > 0) continue;
    absl::StatusOr<bool> ready = Wait(write_fd_, POLLOUT, until);
    if (!ready.ok() || !*ready) {
      status =
          ready.ok() ? absl::DeadlineExceededError("the other end takes no more") : ready.status();
      break;
    }
  }
  output_.erase(0, done);
  return status;
}

absl::Status LineChannel::WriteLine(absl::string_view line, absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  absl::StrAppend(&output_, line, "\n");
  return FlushLocked(Until(timeout));
}

bool LineChannel::TryWriteLine(absl::string_view line) {
  // A writer that waits holds the mutex: then there is no room either.
  if (!mutex_.TryLock()) return false;
  bool room = FlushLocked(absl::ZeroDuration()).ok();
  if (room) {
    absl::StrAppend(&output_, line, "\n");
    const size_t whole = output_.size();
    const absl::Status status = FlushLocked(absl::ZeroDuration());
    if (absl::IsDeadlineExceeded(status) && output_.size() == whole) {
      output_.clear();
      room = false;
    } else {
      room = status.ok() || absl::IsDeadlineExceeded(status);
    }
  }
  mutex_.Unlock();
  return room;
}

absl::Status LineChannel::QueueLine(absl::string_view line) {
  absl::MutexLock lock(&mutex_);
  if (output_.size() + line.size() > kMaxUnwritten) {
    return absl::ResourceExhaustedError("the other end does not read");
  }
  absl::StrAppend(&output_, line, "\n");
  const absl::Status status = FlushLocked(absl::ZeroDuration());
  return absl::IsDeadlineExceeded(status) ? absl::OkStatus() : status;
}

absl::Status LineChannel::Flush() {
  absl::MutexLock lock(&mutex_);
  const absl::Status status = FlushLocked(absl::ZeroDuration());
  return absl::IsDeadlineExceeded(status) ? absl::OkStatus() : status;
}

bool LineChannel::HasUnwritten() const {
  absl::MutexLock lock(&mutex_);
  return !output_.empty();
}

}  // namespace traind::rank_protocol
