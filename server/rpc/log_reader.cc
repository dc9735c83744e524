#include "server/rpc/log_reader.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <utility>

#include "common/base/duration.h"
#include "common/base/log_format.h"

namespace traind {
namespace {

constexpr size_t kBlockBytes = 256 << 10;
// A longer line is passed in parts.
constexpr size_t kLongestLine = 64 << 10;

}  // namespace

bool LogFilter::Passes(const LogRecord& record) const {
  return record.level >= least && record.at >= since &&
         (grep == nullptr || RE2::PartialMatch(record.text, *grep));
}

// "2026-11-21T14:05:09.123Z I server/main.cc:42] text", as common/base/log.cc writes it.
bool ParseLogLine(absl::string_view line, LogRecord& record) {
  constexpr size_t kStamp = 24;
  if (!HasLogHead(line)) return false;
  const auto at = TimestampFromText(line.substr(0, kStamp));
  if (!at.ok()) return false;
  record.at = *at;
  record.level = LevelOfLogHead(line);
  record.text = std::string(line.substr(kLogHeadBytes));
  return true;
}

bool LogFile::Read(const LogFilter& filter, int tail, bool whole,
                   const std::function<bool(LogRecord)>& take) {
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return true;
  const absl::Cleanup closer = [fd] { close(fd); };
  struct stat file = {};
  if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) return true;
  if (file.st_size < offset_) offset_ = 0;
  std::deque<LogRecord> last;  // with a tail
  const auto add = [&](absl::string_view line, int64_t end) {
    offset_ = end;
    if (absl::EndsWith(line, "\r")) line.remove_suffix(1);
    LogRecord record;
    record.at = last_.at;
    record.level = last_.level;
    if (!ParseLogLine(line, record)) record.text = std::string(line);
    record.offset = end;
    last_.at = record.at;
    last_.level = record.level;
    if (line.empty() || !filter.Passes(record)) return true;
    if (tail == 0) return take(std::move(record));
    last.push_back(std::move(record));
    if (last.size() > static_cast<size_t>(tail)) last.pop_front();
    return true;
  };
  std::string block;  // begins at offset_
  while (true) {
    const size_t had = block.size();
    block.resize(had + kBlockBytes);
    const ssize_t got =
        pread(fd, block.data() + had, kBlockBytes, offset_ + static_cast<int64_t>(had));
    block.resize(had + static_cast<size_t>(got > 0 ? got : 0));
    const bool end = got <= 0;
    absl::string_view rest = block;
    while (!rest.empty()) {
      size_t length = rest.find('\n');
      const bool has_end = length != absl::string_view::npos;
      if (!has_end && rest.size() < kLongestLine && !(end && whole)) break;
      if (!has_end) length = rest.size();
      const size_t used = length + (has_end ? 1 : 0);
      if (!add(rest.substr(0, length), offset_ + static_cast<int64_t>(used))) return false;
      rest.remove_prefix(used);
    }
    block.erase(0, block.size() - rest.size());
    if (end) break;
  }
  for (LogRecord& record : last) {
    if (!take(std::move(record))) return false;
  }
  return true;
}

}  // namespace traind
