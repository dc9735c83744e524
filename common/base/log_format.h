// The form of the log's lines.
#pragma once

#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <cstddef>
#include <string>

#include "common/base/log.h"

namespace traind {

enum class LogFormat {
  kText,
  // A JSON object per line: {"at", "level", "where", "text"}.
  kJson,
};

// The default is kText.
// Threads: safe.
void SetLogFormat(LogFormat format);

// What a line of text begins with: "2026-11-21T14:05:09.123Z I ".
inline constexpr size_t kLogHeadBytes = 27;
std::string LogHead(absl::Time at, LogLevel level);

// Whether a line begins so, by its form; it may be one of kLogHeadBytes or more bytes.
bool HasLogHead(absl::string_view line);

// REQUIRES: HasLogHead(line).
LogLevel LevelOfLogHead(absl::string_view line);

}  // namespace traind
