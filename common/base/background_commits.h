// Durable files that are committed beside each other: a disk takes several syncs at once in about
// the time of one.
#pragma once

#include <absl/status/status.h>

#include <deque>
#include <functional>
#include <future>

namespace traind {

// Threads: confined to one; what is added runs on threads of its own.
class BackgroundCommits {
 public:
  // Waits for what still runs.
  ~BackgroundCommits() = default;

  // Starts `commit`; waits for the oldest one first if too many run. Returns the error of one that
  // has ended, after which nothing is started.
  absl::Status Add(std::function<absl::Status()> commit);
  // Waits for all. Returns the first error.
  absl::Status Finish();

 private:
  void TakeOldest();

  std::deque<std::future<absl::Status>> running_;
  absl::Status first_error_;
};

}  // namespace traind
