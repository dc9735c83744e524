// The Worker of a standalone daemon: a process of its own that outlives a killed
// traind, is found again by the next one, and is started anew when it dies.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <thread>

namespace traind {

// An advisory lock on a file (flock) that ends with the process, or this object.
class FileLock {
 public:
  // Creates the file if need be and writes this process's pid into it.
  // Aborted: held by another process, whose pid the message names.
  static absl::StatusOr<FileLock> Acquire(const std::string& path);
  // Whether some process holds it. A missing file is not held.
  static bool IsHeld(const std::string& path);
  // The pid that the holder wrote; 0: none.
  static pid_t Holder(const std::string& path);

  FileLock(FileLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

struct WorkerProcessOptions {
  std::string binary;     // absolute
  std::string state_dir;  // absolute; its worker.lock tells whether one lives
  int slots = -1;         // -1: the Worker counts its devices
};

// Keeps one Worker alive.
// Threads: Start and Stop from one. `died` is called each time a Worker is found
// dead, before the next is started: by Start, or on the supervisor's thread.
class WorkerSupervisor {
 public:
  WorkerSupervisor(WorkerProcessOptions options, std::function<void()> died);
  ~WorkerSupervisor();

  // Starts a Worker unless one lives; watches from then on. NotFound: no such binary.
  absl::Status Start();
  // No new Worker is started from here on.
  void StopWatching();
  // Waits for the Worker to end; after `grace` SIGTERM, after as long again SIGKILL.
  void WaitForEnd(absl::Duration grace);

 private:
  void Watch();
  absl::Status Spawn();
  std::string lock_path() const;

  const WorkerProcessOptions options_;
  const std::function<void()> died_;
  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  pid_t child_ = 0;  // started last; of Start's thread, then of thread_, then of Start's again
  std::thread thread_;
};

}  // namespace traind
