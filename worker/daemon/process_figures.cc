#include "worker/daemon/process_figures.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <dirent.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "common/base/durable_file.h"
#include "worker/daemon/process_stat.h"

namespace traind::worker {
namespace {

// Fields of the line "cpu" of /proc/stat: user nice system idle iowait irq softirq steal.
constexpr size_t kFields = 8, kSteal = 7;

double TicksToSeconds(int64_t ticks) {
  return static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Returns the children of all its threads, each of which may have some.
std::set<pid_t> ChildrenOf(pid_t pid) {
  std::set<pid_t> children;
  const std::string folder = absl::StrCat("/proc/", pid, "/task");
  DIR* const threads = opendir(folder.c_str());
  if (threads == nullptr) return children;
  while (const dirent* const entry = readdir(threads)) {
    const std::string list =
        ReadFile(absl::StrCat(folder, "/", entry->d_name, "/children")).value_or("");
    for (const absl::string_view word : absl::StrSplit(list, ' ', absl::SkipWhitespace())) {
      if (int child = 0; absl::SimpleAtoi(word, &child)) children.insert(child);
    }
  }
  closedir(threads);
  return children;
}

// `seen` ends a walk in which the kernel has given a number to another process.
void Add(pid_t pid, std::set<pid_t>& seen, ProcessFigures& sum) {
  if (!seen.insert(pid).second) return;
  const ProcessStat stat = StatOf(pid);
  if (!stat.exists) return;
  sum.cpu_s += TicksToSeconds(stat.user_ticks + stat.system_ticks + stat.children_ticks);
  sum.resident_bytes += stat.resident_pages * sysconf(_SC_PAGESIZE);
  for (const pid_t child : ChildrenOf(pid)) Add(child, seen, sum);
}

}  // namespace

ProcessFigures FiguresOf(pid_t pid) {
  ProcessFigures sum;
  std::set<pid_t> seen;
  Add(pid, seen, sum);
  return sum;
}

MachineTime ReadMachineTime() {
  const std::string stat = ReadFile("/proc/stat").value_or("");
  const std::vector<std::string> words =
      absl::StrSplit(stat.substr(0, stat.find('\n')), ' ', absl::SkipEmpty());
  MachineTime time;
  for (size_t i = 0; i < kFields && i + 1 < words.size(); ++i) {
    int64_t ticks = 0;
    if (!absl::SimpleAtoi(words[i + 1], &ticks)) break;
    time.all_s += TicksToSeconds(ticks);
    if (i == kSteal) time.steal_s = TicksToSeconds(ticks);
  }
  return time;
}

}  // namespace traind::worker
