#include "worker/daemon/memory_guard.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"

namespace traind::worker {

PrivateMemory PrivateMemoryOf(pid_t pid) {
  constexpr int kKib = 10;
  const std::string status = ReadFile(absl::StrCat("/proc/", pid, "/status")).value_or("");
  PrivateMemory memory;
  for (const absl::string_view line : absl::StrSplit(status, '\n')) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    int64_t kib = 0;
    if (words.size() < 2 || !absl::SimpleAtoi(words[1], &kib)) continue;
    if (words[0] == "VmData:") memory.mapped = kib << kKib;
    if (words[0] == "RssAnon:") memory.resident = kib << kKib;
  }
  return memory;
}

void MemoryGuard::Look() { before_ = std::exchange(seen_, kills_()); }

bool MemoryGuard::RanOut() {
  const bool ran_out = kills_() > before_;
  if (ran_out) seen_ = std::max(seen_, ++before_);
  short_ = short_ || ran_out;
  return ran_out;
}

void MemoryGuard::Limit(pid_t pid, int64_t share) {
  constexpr int64_t kLeast = int64_t{64} << 20;
  const PrivateMemory memory = PrivateMemoryOf(pid);
  const auto most = static_cast<rlim_t>(memory.mapped + std::max(kLeast, share - memory.resident));
  const rlimit limit = {most, RLIM_INFINITY};
  prlimit(pid, RLIMIT_DATA, &limit, nullptr);
}

void MemoryGuard::EndFirst(pid_t pid) {
  // Without the right to, the kernel decides by size alone.
  std::ofstream(absl::StrCat("/proc/", pid, "/oom_score_adj")) << 500;
}

}  // namespace traind::worker
