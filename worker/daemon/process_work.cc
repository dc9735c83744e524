#include "worker/daemon/process_work.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"

namespace traind::worker {
namespace {

// Fields of /proc/PID/stat behind the name, which ends with the last parenthesis.
constexpr size_t kMajorFaults = 9, kUserTicks = 11, kSystemTicks = 12;

int64_t NumberAt(const std::vector<std::string>& fields, size_t at) {
  int64_t number = 0;
  return at < fields.size() && absl::SimpleAtoi(fields[at], &number) ? number : 0;
}

}  // namespace

int64_t WorkOf(pid_t pid) {
  const std::string folder = absl::StrCat("/proc/", pid, "/");
  const std::string stat = ReadFile(folder + "stat").value_or("");
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return 0;
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  const int64_t ticks = NumberAt(fields, kUserTicks) + NumberAt(fields, kSystemTicks);
  int64_t work = ticks * 1000 / sysconf(_SC_CLK_TCK) + NumberAt(fields, kMajorFaults);
  // Another user's process does not tell.
  const std::string io = ReadFile(folder + "io").value_or("");
  const std::vector<std::string> first =
      absl::StrSplit(io.substr(0, io.find('\n')), ' ');  // rchar: 123
  work += NumberAt(first, 1) / 4096;
  return work;
}

}  // namespace traind::worker
