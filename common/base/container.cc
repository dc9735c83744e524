#include "common/base/container.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "common/base/durable_file.h"

namespace traind {
namespace {

constexpr char kGroups[] = "/sys/fs/cgroup";
// Version 1 says "no limit" by a number near 2^63.
constexpr int64_t kNoLimit = int64_t{1} << 60;

std::string Text(const std::string& path) { return ReadFile(path).value_or(""); }

std::optional<int64_t> Number(absl::string_view text) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number)) return std::nullopt;
  return number;
}

// The value of a line "key value" or "key: value kB".
std::optional<int64_t> ValueOf(absl::string_view key, const std::string& text) {
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() >= 2 && absl::StripSuffix(words[0], ":") == key) return Number(words[1]);
  }
  return std::nullopt;
}

// The folder of the process's group below the hierarchy that begins at `top`. In a container its
// path may be one of the host; `top` is then the container's own group.
std::string FolderOf(const std::string& top, absl::string_view path) {
  const std::string folder = absl::StrCat(top, path == "/" ? "" : path);
  return ReadFile(absl::StrCat(folder, "/cgroup.procs")).ok() ? folder : top;
}

// The groups of this process. A version that is not in use is empty.
struct Groups {
  std::string top, unified;  // version 2
  std::string memory, cpu;   // version 1
};

Groups GroupsOf(const std::string& root) {
  Groups groups;
  groups.top = absl::StrCat(root, kGroups);
  const std::string text = Text(absl::StrCat(root, "/proc/self/cgroup"));
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    // hierarchy:controllers:path
    const std::vector<absl::string_view> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    if (parts[1].empty()) groups.unified = FolderOf(groups.top, parts[2]);
    for (const absl::string_view controller : absl::StrSplit(parts[1], ',')) {
      const std::string top = absl::StrCat(groups.top, "/", controller);
      if (controller == "memory") groups.memory = FolderOf(top, parts[2]);
      if (controller == "cpu") groups.cpu = FolderOf(top, parts[2]);
    }
  }
  return groups;
}

// Calls `look` with the group's folder and each one above it.
template <typename Look>
void Upwards(const Groups& groups, const Look& look) {
  for (std::string folder = groups.unified; folder.size() >= groups.top.size();
       folder.resize(folder.rfind('/'))) {
    look(folder);
  }
}

double CoresOf(absl::string_view quota, absl::string_view period) {
  const auto us = Number(quota), of = Number(period);
  if (!us || !of || *us <= 0 || *of <= 0) return std::numeric_limits<double>::infinity();
  return static_cast<double>(*us) / static_cast<double>(*of);
}

void ReadUnified(const Groups& groups, ContainerLimits& limits) {
  Upwards(groups, [&limits](const std::string& folder) {
    const auto most = Number(Text(absl::StrCat(folder, "/memory.max")));
    const auto used = Number(Text(absl::StrCat(folder, "/memory.current")));
    if (most && *most < limits.memory) {
      const auto files = ValueOf("inactive_file", Text(absl::StrCat(folder, "/memory.stat")));
      limits.memory = *most;
      limits.memory_used = std::max<int64_t>(0, used.value_or(0) - files.value_or(0));
    }
    const std::string cpu = Text(absl::StrCat(folder, "/cpu.max"));
    const std::vector<absl::string_view> words =
        absl::StrSplit(cpu, absl::ByAnyChar(" \n"), absl::SkipEmpty());
    if (words.size() == 2) limits.cores = std::min(limits.cores, CoresOf(words[0], words[1]));
  });
}

void ReadFirstVersion(const Groups& groups, ContainerLimits& limits) {
  const auto of = [](const std::string& folder, const char* name) {
    return Text(absl::StrCat(folder, "/", name));
  };
  if (!groups.memory.empty()) {
    const std::string stat = of(groups.memory, "memory.stat");
    const auto most = ValueOf("hierarchical_memory_limit", stat);
    if (most && *most < std::min(limits.memory, kNoLimit)) {
      limits.memory = *most;
      limits.memory_used =
          std::max<int64_t>(0, Number(of(groups.memory, "memory.usage_in_bytes")).value_or(0) -
                                   ValueOf("total_inactive_file", stat).value_or(0));
    }
  }
  if (!groups.cpu.empty()) {
    limits.cores = std::min(limits.cores, CoresOf(of(groups.cpu, "cpu.cfs_quota_us"),
                                                  of(groups.cpu, "cpu.cfs_period_us")));
  }
}

int64_t MemoryOfMachine(const std::string& root, absl::string_view key) {
  constexpr int kKib = 10;
  return ValueOf(key, Text(absl::StrCat(root, "/proc/meminfo"))).value_or(0) << kKib;
}

}  // namespace

ContainerLimits ReadContainerLimits(const std::string& root) {
  ContainerLimits limits;
  const Groups groups = GroupsOf(root);
  ReadUnified(groups, limits);
  ReadFirstVersion(groups, limits);
  return limits;
}

int64_t UsableMemory(const std::string& root) {
  return std::min(MemoryOfMachine(root, "MemTotal"), ReadContainerLimits(root).memory);
}

int64_t AvailableMemory(const std::string& root) {
  const ContainerLimits limits = ReadContainerLimits(root);
  return std::min(MemoryOfMachine(root, "MemAvailable"),
                  std::max<int64_t>(0, limits.memory - limits.memory_used));
}

int64_t OutOfMemoryKills(const std::string& root) {
  const Groups groups = GroupsOf(root);
  for (const std::string& file :
       {absl::StrCat(groups.memory, "/memory.oom_control"),
        absl::StrCat(groups.unified, "/memory.events"), absl::StrCat(root, "/proc/vmstat")}) {
    if (const auto kills = ValueOf("oom_kill", Text(file))) return *kills;
  }
  return 0;
}

}  // namespace traind
