#include "worker/daemon/process_stat.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <string>
#include <vector>

#include "common/base/durable_file.h"

namespace traind::worker {
namespace {

// Fields behind the name, which ends with the last parenthesis.
constexpr size_t kMajorFaults = 9, kUserTicks = 11, kSystemTicks = 12, kChildrenUserTicks = 13,
                 kChildrenSystemTicks = 14, kResidentPages = 21;

int64_t NumberAt(const std::vector<std::string>& fields, size_t at) {
  int64_t number = 0;
  return at < fields.size() && absl::SimpleAtoi(fields[at], &number) ? number : 0;
}

}  // namespace

ProcessStat StatOf(pid_t pid) {
  const std::string stat = ReadFile(absl::StrCat("/proc/", pid, "/stat")).value_or("");
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos) return {};
  const std::vector<std::string> fields = absl::StrSplit(stat.substr(name_end + 2), ' ');
  ProcessStat process;
  process.exists = true;
  process.major_faults = NumberAt(fields, kMajorFaults);
  process.user_ticks = NumberAt(fields, kUserTicks);
  process.system_ticks = NumberAt(fields, kSystemTicks);
  process.children_ticks =
      NumberAt(fields, kChildrenUserTicks) + NumberAt(fields, kChildrenSystemTicks);
  process.resident_pages = NumberAt(fields, kResidentPages);
  return process;
}

}  // namespace traind::worker
