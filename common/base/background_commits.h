// Durable files that are committed beside each other: a disk takes several syncs at once in about
// the time of one.
#pragma once

#include <absl/status/status.h>

#include <deque>
#include <functional>
#include <future>

namespace traind {

// Threads: confined to one; each commit runs on a thread of its own, or in Add() or Finish() where
// the system gives no thread. The destructor waits for the commits that run and drops their errors.
// Errors: those of the commits.
class BackgroundCommits {
 public:
  // Starts `commit`; waits for the oldest one first if too many run. Returns the error of a commit
  // that has ended; after an error no further commit is started.
  absl::Status Add(std::function<absl::Status()> commit);
  // Waits for all commits. Returns the error of the first one that failed.
  absl::Status Finish();

 private:
  void TakeOldest();

  std::deque<std::future<absl::Status>> running_;
  absl::Status first_error_;
};

}  // namespace traind
