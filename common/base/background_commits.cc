#include "common/base/background_commits.h"

#include <utility>

namespace traind {

void BackgroundCommits::TakeOldest() {
  first_error_.Update(running_.front().get());
  running_.pop_front();
}

absl::Status BackgroundCommits::Add(std::function<absl::Status()> commit) {
  constexpr size_t kAtOnce = 4;
  if (running_.size() == kAtOnce) TakeOldest();
  if (!first_error_.ok()) return first_error_;
  // libstdc++ starts a thread, and takes the second way only where it gets none.
  running_.push_back(std::async(std::launch::async | std::launch::deferred, std::move(commit)));
  return absl::OkStatus();
}

absl::Status BackgroundCommits::Finish() {
  while (!running_.empty()) TakeOldest();
  return first_error_;
}

}  // namespace traind
