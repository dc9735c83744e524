// The files of traind's state folder, for a Worker that has a folder of its own.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"

namespace traind::worker {

// Ends a transfer from another thread.
// Threads: safe.
class TransferStop {
 public:
  void Stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    if (cancel_) cancel_();
  }
  bool stopped() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stopped_;
  }
  // cancel ends the call that is under way; null: none is. It runs at once if Stop came before.
  void OnStop(std::function<void()> cancel) {
    const std::lock_guard<std::mutex> lock(mutex_);
    cancel_ = std::move(cancel);
    if (stopped_ && cancel_) cancel_();
  }

 private:
  mutable std::mutex mutex_;
  bool stopped_ = false;
  std::function<void()> cancel_;
};

// A file of traind's: with a path in its state folder, or one that the Job's spec names in a field.
struct RemoteFile {
  std::string job;
  std::string path;
  std::string field;  // where path is empty
};

// What traind says of a file before it sends it.
struct RemoteContent {
  FileDigest digest;
  bool folder = false;  // the bytes are the pack of a folder
  std::string table;    // the file in the folder that the field names; empty: it names the folder
};

// Calls that wait for traind. Errors: Unavailable and DataLoss may be tried again;
// FailedPrecondition: the Job is over; NotFound; Cancelled: stopped.
// Threads: safe.
class RemoteFiles {
 public:
  // Chooses where a file goes, once its content is known; empty: it is there already.
  using Destination = std::function<std::string(const RemoteContent&)>;

  virtual ~RemoteFiles() = default;
  // Whether traind has, in its state folder, the file `name` with this content.
  virtual absl::StatusOr<bool> HasFile(const std::string& name, const std::string& content,
                                       TransferStop& stop) = 0;
  // Returns paths of files that travel, relative to the state folder.
  virtual absl::StatusOr<std::vector<std::string>> List(const std::string& job,
                                                        const std::string& folder,
                                                        TransferStop& stop) = 0;
  // Durable when it returns. It goes on where an earlier call was broken off.
  virtual absl::Status Fetch(const RemoteFile& file, const Destination& destination,
                             TransferStop& stop) = 0;
  // Durable at traind's when it returns; likewise. Returns the bytes of the file, or 0 where traind
  // had it already.
  virtual absl::StatusOr<int64_t> Send(const std::string& job, const std::string& path,
                                       const std::string& local, TransferStop& stop) = 0;
  // Removes the Attempt's checkpoints whose names are not among `keep`.
  virtual absl::Status DropCheckpoints(const std::string& job, int64_t attempt,
                                       const std::vector<std::string>& keep,
                                       TransferStop& stop) = 0;
};

}  // namespace traind::worker
