#include "common/base/log.h"

#include <absl/base/thread_annotations.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>

namespace traind {
namespace {

constexpr size_t kMaxLine = 8192;
std::atomic<LogLevel> min_level{LogLevel::kInfo};

bool Takes(int fd) {
  pollfd poll_fd{fd, POLLOUT, 0};
  return poll(&poll_fd, 1, 0) > 0;
}

// Nobody waits for a terminal or a pipe that is not read: lines are dropped then, and counted.
class LogWriter {
 public:
  void Write(absl::string_view line) {
    absl::MutexLock lock(&mutex_);
    if (dropped_ > 0 && Takes(STDERR_FILENO)) {
      const std::string gap = absl::StrCat("(", dropped_, " lines are missing here)\n");
      dropped_ = 0;
      [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, gap.data(), gap.size());
    }
    // A pipe that polls as writable takes PIPE_BUF bytes at once. A part keeps the lines of several
    // processes apart.
    for (absl::string_view rest = line; !rest.empty();) {
      if (!Takes(STDERR_FILENO)) {
        ++dropped_;
        return;
      }
      const ssize_t written =
          write(STDERR_FILENO, rest.data(), std::min<size_t>(rest.size(), PIPE_BUF));
      if (written <= 0) return;
      rest.remove_prefix(static_cast<size_t>(written));
    }
  }

 private:
  absl::Mutex mutex_;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

void WriteLine(absl::string_view line) {
  static LogWriter* const writer = new LogWriter();
  writer->Write(line);
}

}  // namespace

void SetMinLogLevel(LogLevel level) { min_level = level; }

LogLine::~LogLine() {
  if (level_ < min_level.load(std::memory_order_relaxed)) return;
  std::string line =
      absl::StrCat(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone()), " ",
                   level_ == LogLevel::kInfo      ? "I"
                   : level_ == LogLevel::kWarning ? "W"
                                                  : "E",
                   " ", file_, ":", line_, "] ");
  for (const char c : stream_.str()) {
    if (line.size() >= kMaxLine) {
      line += "...";
      break;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&line, "\\x%02x", static_cast<unsigned char>(c));
    } else {
      line += c;
    }
  }
  line += '\n';
  WriteLine(line);
}

}  // namespace traind
