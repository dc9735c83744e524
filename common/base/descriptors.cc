#include "common/base/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace traind {
namespace {

// traind opens the files of a few Jobs at a time.
constexpr int64_t kReserved = 64;

}  // namespace

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

int64_t DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, INT64_MAX));
}

bool IsReservedDescriptor(int fd) {
  const int64_t limit = DescriptorLimit();
  return fd >= limit - std::min(kReserved, limit / 4);
}

}  // namespace traind
