#include "worker/program/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace traind {
namespace {

// The beginning of a file of /proc; empty: the process is gone.
std::string ReadStart(pid_t pid, const char* name) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/%s", static_cast<int>(pid), name);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  char bytes[4096];
  const ssize_t size = read(fd, bytes, sizeof bytes);
  close(fd);
  return size > 0 ? std::string(bytes, static_cast<size_t>(size)) : std::string();
}

// 0: not known. A zombie counts as gone, as it runs nothing.
pid_t ParentOf(pid_t pid) {
  const std::string stat = ReadStart(pid, "stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > stat.size()) return 0;
  if (stat[name_end + 2] == 'Z') return 0;
  return static_cast<pid_t>(std::strtol(stat.c_str() + name_end + 3, nullptr, 10));
}

// The environment of a process; empty: it is gone, or another user's.
std::string EnvironmentOf(pid_t pid) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%d/environ", static_cast<int>(pid));
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> all;
  DIR* const proc = opendir("/proc");
  if (proc == nullptr) return all;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid > 0) all.push_back(pid);
  }
  closedir(proc);
  return all;
}

}  // namespace

std::vector<pid_t> Descendants(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : AllProcesses()) children.emplace(ParentOf(pid), pid);
  std::vector<pid_t> found = {root};
  for (size_t i = 0; i < found.size(); ++i) {
    const auto [begin, end] = children.equal_range(found[i]);
    for (auto it = begin; it != end; ++it) found.push_back(it->second);
  }
  found.erase(found.begin());
  return found;
}

bool Catches(pid_t pid, int signal) {
  const std::string status = ReadStart(pid, "status");
  const size_t at = status.find("\nSigCgt:");
  if (at == std::string::npos) return false;
  const unsigned long long mask = std::strtoull(status.c_str() + at + 8, nullptr, 16);
  return (mask >> (signal - 1)) & 1;
}

int KillDescendants() {
  constexpr int kRounds = 200;
  constexpr useconds_t kPause = 10'000;
  const std::vector<pid_t> first = Descendants(getpid());
  std::vector<pid_t> left = first;
  for (int round = 0; round < kRounds && !left.empty(); ++round) {
    for (const pid_t pid : left) kill(pid, SIGKILL);
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    left = Descendants(getpid());
    if (!left.empty()) usleep(kPause);
  }
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
  return static_cast<int>(first.size());
}

int KillByVariable(const std::string& variable) {
  const std::string whole = std::string(1, '\0') + variable + '\0';
  int killed = 0;
  for (const pid_t pid : AllProcesses()) {
    if (pid == getpid()) continue;
    if ((std::string(1, '\0') + EnvironmentOf(pid)).find(whole) == std::string::npos) continue;
    killed += kill(pid, SIGKILL) == 0;
  }
  return killed;
}

}  // namespace traind
