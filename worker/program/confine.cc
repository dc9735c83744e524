#include "worker/program/confine.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace traind {
namespace {

// ---- Landlock, whose header some systems lack ---------------------------------

constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1;
// Rights: to write into a file; to remove folders, and files; to make nodes of seven kinds; to move
// across folders (from the second version on); to shorten files (from the third on).
constexpr uint64_t kWriteFile = uint64_t{1} << 1;
constexpr uint64_t kMakeAndRemove = uint64_t{0x1FF} << 4;
constexpr uint64_t kRefer = uint64_t{1} << 13, kTruncate = uint64_t{1} << 14;

struct Ruleset {
  uint64_t handled_fs = 0;
};
struct __attribute__((packed)) PathRule {
  uint64_t allowed = 0;
  int32_t folder = -1;
};

int AddFolder(int ruleset, const std::string& folder, uint64_t allowed) {
  PathRule rule;
  rule.allowed = allowed;
  rule.folder = open(folder.c_str(), O_PATH | O_CLOEXEC);
  if (rule.folder < 0) return errno == ENOENT ? 0 : errno;
  const long added = syscall(kAddRule, ruleset, kPathBeneath, &rule, 0);
  const int error = added == 0 ? 0 : errno;
  close(rule.folder);
  return error;
}

// ---- networks -------------------------------------------------------------------

int WriteText(const char* path, const char* text) {
  const int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const auto size = static_cast<ssize_t>(strlen(text));
  const int error = write(file, text, strlen(text)) == size ? 0 : errno;
  close(file);
  return error;
}

// In a namespace of users of its own the process is who it was.
int MapUser(uid_t user, gid_t group) {
  char text[64];
  if (const int error = WriteText("/proc/self/setgroups", "deny"); error != 0) return error;
  std::snprintf(text, sizeof text, "%u %u 1", user, user);
  if (const int error = WriteText("/proc/self/uid_map", text); error != 0) return error;
  std::snprintf(text, sizeof text, "%u %u 1", group, group);
  return WriteText("/proc/self/gid_map", text);
}

int RaiseLoopback() {
  const int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (any < 0) return errno;
  ifreq loopback = {};
  std::strncpy(loopback.ifr_name, "lo", sizeof loopback.ifr_name - 1);
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  const int error = ioctl(any, SIOCSIFFLAGS, &loopback) == 0 ? 0 : errno;
  close(any);
  return error;
}

}  // namespace

int LeaveNetwork() {
  if (unshare(CLONE_NEWNET) != 0) {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return errno;
    if (const int error = MapUser(user, group); error != 0) return error;
  }
  return RaiseLoopback();
}

int WriteOnlyTo(const std::vector<std::string>& folders) {
  const long version = syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  if (version < 1) return errno;
  Ruleset rules;
  rules.handled_fs = kWriteFile | kMakeAndRemove;
  if (version >= 2) rules.handled_fs |= kRefer;
  if (version >= 3) rules.handled_fs |= kTruncate;
  const auto ruleset = static_cast<int>(syscall(kCreateRuleset, &rules, sizeof rules, 0));
  if (ruleset < 0) return errno;
  std::vector<std::string> all = folders;
  all.insert(all.end(), {"/tmp", "/var/tmp", "/dev"});
  int error = 0;
  for (const std::string& folder : all) {
    if (error == 0) error = AddFolder(ruleset, folder, rules.handled_fs);
  }
  if (error == 0 && syscall(kRestrictSelf, ruleset, 0) != 0) error = errno;
  close(ruleset);
  return error;
}

}  // namespace traind
