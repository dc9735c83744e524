// Runs the Worker of a standalone daemon: a separate process that outlives a killed traind, is
// found by the next one, and is restarted when it dies.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "common/base/timed_wait.h"
#include "common/base/worker_log_file.h"

namespace traind {

// An advisory lock on a file (flock), released when the process ends or this object is destroyed.
// Threads: confined to one.
class FileLock {
 public:
  // Creates the file if needed and writes this process's pid into it. Aborted: another process,
  // whose pid the message names, holds it.
  static absl::StatusOr<FileLock> Acquire(const std::string& path);
  // Whether some process holds it. A missing file is not held. Where no descriptor is
  // left to look at it, it counts as held.
  static bool IsHeld(const std::string& path);
  // Returns the pid that the holder wrote; 0: none.
  static pid_t Holder(const std::string& path);

  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

struct WorkerProcessOptions {
  std::string binary;                    // absolute
  std::string state_dir;                 // absolute; its worker.lock tells whether a Worker lives
  int slots = -1;                        // -1: the Worker counts its devices
  std::vector<std::string> labels = {};  // "rack=a"
  // A Worker that holds its lock and sends no heartbeat for so long hangs, and is killed.
  absl::Duration hang_after = absl::Seconds(60);
};

// Keeps one Worker alive.
// Threads: Start and Stop from one. `died` is called each time a Worker is found dead, before the
// next one is started: by Start, or on the supervisor's thread.
class WorkerSupervisor {
 public:
  // heartbeats: returns how many have come.
  WorkerSupervisor(WorkerProcessOptions options, std::function<void()> died,
                   std::function<int64_t()> heartbeats);
  ~WorkerSupervisor();

  // Starts a Worker unless one lives, and watches it from then on. NotFound: there is no such
  // binary.
  absl::Status Start();
  // Stops starting new Workers.
  void StopWatching();
  // Waits for the Worker to end; sends SIGTERM after `grace`, and SIGKILL after as long again.
  void WaitForEnd(absl::Duration grace);

 private:
  void Watch();
  // To be called every kWatchEvery while a Worker holds its lock.
  void KillIfHung();
  absl::Status Spawn();
  void ReapWorkers();
  std::string lock_path() const;

  const WorkerProcessOptions options_;
  const std::function<void()> died_;
  const std::function<int64_t()> heartbeats_;
  // Only thread_ uses these two.
  int64_t heard_ = 0;  // heartbeats at the last look
  // How long none came. It grows by looks, so that a time in which the machine was suspended or
  // traind was stopped does not count.
  absl::Duration silence_;
  absl::Mutex mutex_;
  TimedCondVar stopped_;  // after a change of stopping_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  // The Workers started here that have not been reaped, the newest last; used by Start's thread,
  // then by thread_, then by Start's again.
  std::vector<pid_t> children_;
  std::thread thread_;
};

}  // namespace traind
