// The form of the log's lines.
#pragma once

namespace traind {

enum class LogFormat {
  kText,
  // A JSON object per line: {"at", "level", "where", "text"}.
  kJson,
};

// The default is kText.
// Threads: safe.
void SetLogFormat(LogFormat format);

}  // namespace traind
