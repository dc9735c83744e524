#include "common/base/log.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <unistd.h>

#include <atomic>
#include <string>

namespace traind {
namespace {

constexpr size_t kMaxLine = 8192;
std::atomic<LogLevel> min_level{LogLevel::kInfo};

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
  // A single write keeps the lines of several threads apart.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace traind
