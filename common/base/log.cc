#include "common/base/log.h"

#include <absl/base/thread_annotations.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/log_files.h"
#include "common/base/log_format.h"

namespace traind {
namespace {

constexpr size_t kMaxLine = 8192;
std::atomic<LogLevel> min_level{LogLevel::kInfo};
std::atomic<LogFormat> format{LogFormat::kText};

bool Takes(int fd) {
  pollfd poll_fd{fd, POLLOUT, 0};
  return poll(&poll_fd, 1, 0) > 0;
}

// Nobody waits for a terminal or a pipe that is not read: lines are dropped then, and counted.
class LogWriter {
 public:
  absl::Status LogTo(const std::string& path, int64_t max_bytes) {
    absl::MutexLock lock(&mutex_);
    const absl::StatusOr<int> fd = OpenLogFile(path);
    if (!fd.ok()) return fd.status();
    dup2(*fd, STDERR_FILENO);
    close(*fd);
    path_ = path;
    max_bytes_ = max_bytes;
    return absl::OkStatus();
  }

  void Write(absl::string_view line) {
    absl::MutexLock lock(&mutex_);
    // The file may also hold what others wrote to stderr.
    if (!path_.empty() && IsFull(STDERR_FILENO, static_cast<int64_t>(line.size()), max_bytes_)) {
      Rotate();
    }
    if (dropped_ > 0 && Takes(STDERR_FILENO)) {
      const bool json = format.load(std::memory_order_relaxed) == LogFormat::kJson;
      const std::string gap =
          absl::StrCat(json ? "{\"level\":\"warning\",\"text\":\"" : "(", dropped_,
                       " lines are missing here", json ? "\"}\n" : ")\n");
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
  void Rotate() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::vector<std::string> older;
    for (int i = 1; i <= kOldLogFiles; ++i) older.push_back(absl::StrCat(path_, ".", i));
    const absl::StatusOr<int> fd = RotateLogFiles(path_, older);
    if (!fd.ok()) return;
    dup2(*fd, STDERR_FILENO);
    close(*fd);
  }

  absl::Mutex mutex_;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string path_ ABSL_GUARDED_BY(mutex_);  // empty: stderr is no file of ours
  int64_t max_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

LogWriter& Writer() {
  static LogWriter* const writer = new LogWriter();
  return *writer;
}

}  // namespace

void SetMinLogLevel(LogLevel level) { min_level = level; }

void SetLogFormat(LogFormat chosen) { format = chosen; }

absl::Status LogToFile(const std::string& path, int64_t max_bytes) {
  return Writer().LogTo(path, max_bytes);
}

namespace {

// Of the levels, in their order.
constexpr absl::string_view kLetters = "IWE";

std::string StampOf(absl::Time at) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", at, absl::UTCTimeZone());
}

const char* LevelWord(LogLevel level) {
  return level == LogLevel::kInfo ? "info" : level == LogLevel::kWarning ? "warning" : "error";
}

// Appends the text with control bytes and, for JSON, quotes escaped, cut to kMaxLine bytes in all.
void AppendEscaped(absl::string_view text, bool json, std::string& line) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // A character of UTF-8 is not cut in two.
    if (line.size() >= kMaxLine && (byte & 0xC0) != 0x80) {
      line += "...";
      return;
    }
    if (byte < 0x20 || byte == 0x7f) {
      json ? absl::StrAppendFormat(&line, "\\u%04x", byte)
           : absl::StrAppendFormat(&line, "\\x%02x", byte);
    } else if (json && (c == '"' || c == '\\')) {
      line.append(1, '\\').append(1, c);
    } else {
      line += c;
    }
  }
}

}  // namespace

std::string LogHead(absl::Time at, LogLevel level) {
  return absl::StrCat(StampOf(at), " ", kLetters.substr(static_cast<size_t>(level), 1), " ");
}

bool HasLogHead(absl::string_view line) {
  constexpr absl::string_view kForm = "0000-00-00T00:00:00.000Z I ";
  static_assert(kForm.size() == kLogHeadBytes);
  if (line.size() < kForm.size()) return false;
  for (size_t i = 0; i < kForm.size(); ++i) {
    const bool fits = kForm[i] == '0'   ? absl::ascii_isdigit(line[i])
                      : kForm[i] == 'I' ? absl::StrContains(kLetters, line[i])
                                        : line[i] == kForm[i];
    if (!fits) return false;
  }
  return true;
}

LogLevel LevelOfLogHead(absl::string_view line) {
  return static_cast<LogLevel>(kLetters.find(line[kLogHeadBytes - 2]));
}

LogLine::~LogLine() {
  if (level_ < min_level.load(std::memory_order_relaxed)) return;
  const bool json = format.load(std::memory_order_relaxed) == LogFormat::kJson;
  const absl::Time now = absl::Now();
  const std::string where = absl::StrCat(file_, ":", line_);
  std::string line;
  if (json) {
    line = absl::StrCat("{\"at\":\"", StampOf(now), "\",\"level\":\"", LevelWord(level_),
                        "\",\"where\":\"", where, "\",\"text\":\"");
  } else {
    line = absl::StrCat(LogHead(now, level_), where, "] ");
  }
  AppendEscaped(stream_.str(), json, line);
  line += json ? "\"}\n" : "\n";
  Writer().Write(line);
}

}  // namespace traind
