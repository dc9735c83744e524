// How long the disk takes to commit a small file now.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <string>
#include <vector>

#include "common/base/clock.h"

namespace traind {

// Disks differ by much in what a durable file takes, and a disk that others use differs from second
// to second. So some files are written and committed beside each other, as BackgroundCommits does,
// again and again, and timed. Threads: confined to one.
class CommitCost {
 public:
  // folder: it is there, and nothing stays in it. The clock must outlive the object.
  CommitCost(std::string folder, const Clock& clock);

  // Times files, unless that was done less than a second or twenty times its duration ago. Errors:
  // those of WriteFileDurably.
  absl::Status Update();
  // How long that took last.
  absl::Duration took() const { return took_; }
  // The duration of one file, the longest of the last few times; 0 before the first time.
  absl::Duration of_file() const;

 private:
  const std::string folder_;
  const Clock& clock_;
  absl::Duration timed_at_ = -absl::InfiniteDuration(), took_;
  std::vector<absl::Duration> last_;
};

}  // namespace traind
