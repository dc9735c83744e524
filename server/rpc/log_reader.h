// The logs of Attempts, read a line at a time from where an earlier read stopped.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <re2/re2.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/log.h"

namespace traind {

struct LogRecord {
  int64_t offset = 0;  // of the byte behind the line
  // The Worker gives a line of a library the moment at which it was read. In the log of a Worker,
  // and in logs of earlier releases, such lines have none; then those of the line before count.
  absl::Time at = absl::InfinitePast();
  LogLevel level = LogLevel::kInfo;
  std::string text;  // without moment and level
};

// Lines that do not pass are left out.
struct LogFilter {
  LogLevel least = LogLevel::kInfo;
  absl::Time since = absl::InfinitePast();
  std::shared_ptr<const RE2> grep;  // searched in the text; null: all pass

  bool Passes(const LogRecord& record) const;
};

// Reads the moment and the level at the beginning of a line. Returns false, and changes nothing,
// where the line has none.
bool ParseLogLine(absl::string_view line, LogRecord& record);

// One log file, which may still grow.
// Threads: confined to one.
class LogFile {
 public:
  // offset: the byte to begin at.
  explicit LogFile(std::string path, int64_t offset = 0)
      : path_(std::move(path)), offset_(offset) {}

  // Passes each new line that passes the filter to `take`, which returns false to stop. tail: only
  // the last so many of them; 0: all. whole: nothing will be added, so the last line counts even
  // without its end. A missing file has no lines. A file that was cut is read from its beginning.
  // Returns false if `take` stopped.
  bool Read(const LogFilter& filter, int tail, bool whole,
            const std::function<bool(LogRecord)>& take);

 private:
  const std::string path_;
  int64_t offset_;
  LogRecord last_;  // its moment and level count for lines without their own after it
};

}  // namespace traind
