#include "worker/daemon/gpu_check.h"

#include <absl/strings/str_cat.h>
#include <poll.h>

#include <memory>

#include "common/base/clock.h"
#include "worker/daemon/child.h"

namespace traind::worker {
namespace {

absl::Status StatusOf(const ExitStatus& ended) {
  if (ended.kind == ExitStatus::kExited && ended.code == 0) return absl::OkStatus();
  // The Rank's last words are the cause where it came to say them.
  const bool told = ended.kind == ExitStatus::kExited && !ended.last_line.empty();
  return absl::UnavailableError(told ? ended.last_line : ExitText(ended));
}

// Waits until the process says something or ends, for a while.
void AwaitEvent(const Child& child, absl::Duration patience) {
  pollfd fds[] = {{child.exit_fd(), POLLIN, 0}, {child.stderr_fd(), POLLIN, 0}};
  poll(fds, 2, static_cast<int>(absl::ToInt64Milliseconds(patience)));
}

}  // namespace

std::vector<absl::Status> CheckGpus(const std::string& trainrank, const std::vector<Slot>& gpus,
                                    absl::Duration patience) {
  const Clock& clock = SystemClock();
  const absl::Duration until = clock.MonotonicNow() + patience;
  std::vector<absl::Status> checked(gpus.size());
  std::vector<std::unique_ptr<Child>> ranks(gpus.size());
  for (size_t i = 0; i < gpus.size(); ++i) {
    ChildOptions options;
    options.program = trainrank;
    options.args = {"check-device"};
    options.env = {absl::StrCat("CUDA_VISIBLE_DEVICES=", gpus[i].uuid)};
    int error = 0;
    auto started = Child::Start(options, &error);
    if (started.ok()) {
      ranks[i] = *std::move(started);
    } else {
      checked[i] = absl::UnavailableError(started.status().message());
    }
  }
  for (size_t i = 0; i < gpus.size(); ++i) {
    while (ranks[i] != nullptr) {
      ranks[i]->DrainStderr();
      if (const auto ended = ranks[i]->Reap(); ended.has_value()) {
        checked[i] = StatusOf(*ended);
        break;
      }
      const absl::Duration left = until - clock.MonotonicNow();
      if (left <= absl::ZeroDuration()) {
        checked[i] = absl::DeadlineExceededError(
            absl::StrCat("it did not answer within ", absl::FormatDuration(patience)));
        break;
      }
      AwaitEvent(*ranks[i], left);
    }
  }
  return checked;
}

}  // namespace traind::worker
