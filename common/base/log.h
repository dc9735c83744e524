// Writes one line per event to stderr: "2026-11-21T14:05:09.123Z I server/main.cc:42] text".
// Control bytes are escaped; a line is cut at 8 KiB. Nobody waits for the reader of stderr: lines
// that it does not take are dropped and counted.
//   TRAIND_LOG(INFO) << "job " << id << " accepted";
#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <sstream>
#include <string>

namespace traind {

enum class LogLevel { kInfo, kWarning, kError };

// Lines below this level are not written (default kInfo).
// Threads: safe.
void SetMinLogLevel(LogLevel level);

// How large a log file becomes, and how many older ones stay beside it.
constexpr int64_t kDefaultLogBytes = 16 << 20;
constexpr int kOldLogFiles = 3;

// Makes stderr this file, which is appended to. A line that would make it larger than max_bytes
// goes to a new file; the old one becomes PATH.1, that PATH.2 and so on up to kOldLogFiles. A disk
// that is full stops this, and no writer waits for it. Errors: those of open.
absl::Status LogToFile(const std::string& path, int64_t max_bytes);

// Collects one line and writes it when destroyed.
// Threads: confined to one.
class LogLine {
 public:
  LogLine(LogLevel level, const char* file, int line) : level_(level), file_(file), line_(line) {}
  ~LogLine();
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
  std::ostringstream& stream() { return stream_; }

 private:
  LogLevel level_;
  const char* file_;
  int line_;
  std::ostringstream stream_;
};

inline constexpr LogLevel kLogINFO = LogLevel::kInfo;
inline constexpr LogLevel kLogWARNING = LogLevel::kWarning;
inline constexpr LogLevel kLogERROR = LogLevel::kError;

}  // namespace traind

// The macro is not called LOG because LibTorch defines that name.
#define TRAIND_LOG(level) ::traind::LogLine(::traind::kLog##level, __FILE__, __LINE__).stream()
