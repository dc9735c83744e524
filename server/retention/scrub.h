// Looks for files of Jobs that were damaged while they lay on the disk.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/base/timed_wait.h"

namespace traind {

struct DamagedFile {
  std::string job;
  std::string path;      // relative to the state folder
  std::string why;       // "it does not fit its digest"
  std::string manifest;  // of the checkpoint, relative to the state folder; empty: it is none
};
// "job J: PATH is damaged: WHY".
std::string Text(const DamagedFile& file);

// Told of the bytes that were read; false: stop.
using ReadPace = std::function<bool(int64_t bytes)>;

// Reads the checkpoints of the Job's Attempts, those that it took over from other Jobs, and its
// standing Prediction, and returns what does not fit its digest. What a Rank removes meanwhile is
// not damaged.
std::vector<DamagedFile> FindDamage(const std::string& state_dir, const std::string& job,
                                    const ReadPace& pace);

// The Jobs with a folder, in the order of their names.
std::vector<std::string> JobsOnDisk(const std::string& state_dir);

struct ScrubberOptions {
  std::string state_dir;  // absolute
  // Reads so much in the mean, so that Ranks keep the disk. A file is read at one go.
  int64_t bytes_per_s = 16 << 20;
  // Between the ends of rounds and the next ones; also before the first. Infinite: no round.
  absl::Duration every = absl::Hours(6);
};

// Reads all Jobs' files again and again. Of a Job that may resume from a damaged checkpoint the
// manifest is renamed to MANIFEST.damaged, so that the checkpoint before is the newest; of others
// nothing is changed. Each damaged file is told once.
// Threads: safe.
class Scrubber {
 public:
  // resumes: whether the Job is active. tell: of each damaged file, on the scrubber's thread.
  Scrubber(ScrubberOptions options, std::function<bool(const std::string& job)> resumes,
           std::function<void(const DamagedFile&)> tell);
  ~Scrubber();

  void Start();
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // One round, on the caller's thread.
  void RunOnce() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // False: it is to stop.
  bool Wait(absl::Duration time) ABSL_LOCKS_EXCLUDED(mutex_);

  const ScrubberOptions options_;
  const std::function<bool(const std::string&)> resumes_;
  const std::function<void(const DamagedFile&)> tell_;
  std::set<std::string> told_;  // paths; of the thread that runs the rounds
  absl::Mutex mutex_;
  TimedCondVar stopped_;  // after a change of stopping_
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace traind
