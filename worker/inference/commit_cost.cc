#include "worker/inference/commit_cost.h"

#include <absl/strings/str_cat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/background_commits.h"
#include "common/base/durable_file.h"

namespace traind {

CommitCost::CommitCost(std::string folder, const Clock& clock)
    : folder_(std::move(folder)), clock_(clock) {}

absl::Status CommitCost::Update() {
  constexpr absl::Duration kEvery = absl::Seconds(1);
  constexpr int kOwnDurations = 20;  // so it takes a twentieth of the time at most
  constexpr int kFiles = 12;
  constexpr size_t kTimes = 4;
  const absl::Duration began = clock_.MonotonicNow();
  if (began - timed_at_ < std::max(kEvery, kOwnDurations * took_)) return absl::OkStatus();
  std::vector<std::string> paths;
  BackgroundCommits commits;
  absl::Status written;
  for (int i = 0; i < kFiles && written.ok(); ++i) {
    const std::string path = paths.emplace_back(absl::StrCat(folder_, "/commit-", i, ".bin"));
    written = commits.Add([path] { return WriteFileDurably(path, "timed"); });
  }
  written = commits.Finish();
  timed_at_ = clock_.MonotonicNow();
  took_ = timed_at_ - began;
  for (const std::string& path : paths) unlink(path.c_str());
  if (!written.ok()) return written;
  last_.push_back(took_ / kFiles);
  if (last_.size() > kTimes) last_.erase(last_.begin());
  return absl::OkStatus();
}

absl::Duration CommitCost::of_file() const {
  return last_.empty() ? absl::ZeroDuration() : *std::max_element(last_.begin(), last_.end());
}

}  // namespace traind
