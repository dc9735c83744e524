#include "common/base/cores.h"

#include <absl/strings/str_cat.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "common/base/container.h"

namespace traind {

int UsableCores() {
  cpu_set_t set;
  const int seen = sched_getaffinity(0, sizeof(set), &set) == 0
                       ? CPU_COUNT(&set)
                       : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  // Of a container's last core it may have a part.
  const double most = std::ceil(ReadContainerLimits().cores);
  return std::max(1, static_cast<int>(std::min<double>(seen, most)));
}

absl::Status CheckSlots(int slots, int cores) {
  constexpr int kMostPerCore = 4;
  constexpr int kAlwaysTaken = 64;  // a machine may have that many GPUs
  const int most = std::max(kAlwaysTaken, kMostPerCore * cores);
  if (slots <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(slots, " slots on ", cores, " cores: at most ", most,
                   " are taken. A slot is a process that trains; more of them than cores make each "
                   "fold slower. Without the flag every GPU is a slot, or every core"));
}

}  // namespace traind
