#include "worker/daemon/process_work.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "worker/daemon/process_stat.h"

namespace traind::worker {

int64_t WorkOf(pid_t pid) {
  const ProcessStat stat = StatOf(pid);
  if (!stat.exists) return 0;
  const int64_t ticks = stat.user_ticks + stat.system_ticks;
  int64_t work = ticks * 1000 / sysconf(_SC_CLK_TCK) + stat.major_faults;
  // Another user's process does not tell.
  const std::string io = ReadFile(absl::StrCat("/proc/", pid, "/io")).value_or("");
  const std::vector<std::string> first =
      absl::StrSplit(io.substr(0, io.find('\n')), ' ');  // rchar: 123
  int64_t bytes_read = 0;
  if (first.size() > 1 && absl::SimpleAtoi(first[1], &bytes_read)) work += bytes_read / 4096;
  return work;
}

}  // namespace traind::worker
