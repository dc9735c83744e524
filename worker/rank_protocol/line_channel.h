// Whole lines over a pair of file descriptors: a socketpair, pipes or a terminal.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <string>

namespace traind::rank_protocol {

// Reads and writes lines of at most kMaxLineBytes; never leaves half a line on
// the wire followed by another. The descriptors' flags are left alone, as a
// terminal's are shared with the shell. SIGPIPE is the caller's to ignore where
// the writing end is no socket.
//
// Threads: one may read while any number write.
// Errors: OutOfRange = end of input, or nobody reads any more; DeadlineExceeded =
// not within the timeout; InvalidArgument = a line too long; Internal = the
// system's reason. After OutOfRange and InvalidArgument reading gives the same again.
class LineChannel {
 public:
  // Owns both, which may be the same one; -1: none.
  LineChannel(int read_fd, int write_fd) : read_fd_(read_fd), write_fd_(write_fd) {}
  ~LineChannel();
  LineChannel(const LineChannel&) = delete;
  LineChannel& operator=(const LineChannel&) = delete;

  // To poll for input. A line may already be here: read until DeadlineExceeded.
  int read_fd() const { return read_fd_; }
  int write_fd() const { return write_fd_; }

  // The next line without its newline. An unfinished last line is dropped. A zero
  // timeout takes what is here.
  absl::StatusOr<std::string> ReadLine(absl::Duration timeout);

  // Waits for room. What a timeout leaves unwritten goes ahead of the next line.
  absl::Status WriteLine(absl::string_view line, absl::Duration timeout);

  // For lines that may get lost: false = there was no room, the line was dropped.
  bool TryWriteLine(absl::string_view line);

  // For event loops: never waits. What has no room is kept (up to 16 MiB, else
  // ResourceExhausted) and goes out by Flush(), when write_fd() takes more.
  absl::Status QueueLine(absl::string_view line);
  absl::Status Flush();
  bool HasUnwritten() const;

 private:
  absl::Status FlushLocked(absl::Duration until) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int read_fd_;
  const int write_fd_;
  // Used by the reading thread only.
  std::string input_;
  size_t scanned_ = 0;  // input_ has no newline before this
  absl::Status read_status_;

  mutable absl::Mutex mutex_;
  std::string output_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind::rank_protocol
