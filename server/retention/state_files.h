// The files of a state folder, as retention sees them. Links are never followed.
#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/domain/job.h"

namespace traind {

// Returns the space that the file or folder takes on disk; a file with several names counts with
// its share. 0 if there is none.
int64_t BytesOnDisk(const std::string& path);

// Deletes the file or folder; that it is not there is no error. The folder that it was in is
// synced.
absl::Status RemoveDurably(const std::string& path);

struct FolderUse {
  int64_t bytes = 0;
  int64_t interim_bytes = 0;
  std::vector<std::string> interim;  // files, absolute
};
// Returns what the folder of a Job that is over takes. Interim are the files of Attempts without a
// part in a Prediction, in a fold's result or in its last checkpoint, but their logs, and
// Predictions that were replaced.
FolderUse UseOfJob(const std::string& state_dir, const Job& job);

struct CacheFiles {
  std::string key;
  absl::Time modified;
  int64_t bytes = 0;
  bool is_model_file = false;      // a user's module or weights, not data
  std::vector<std::string> files;  // absolute, the table first
};
std::vector<CacheFiles> ListCache(const std::string& state_dir);

// The files that clients have sent; keys are "uploads/<sha256>". `modified` is when one was last
// sent or asked for.
std::vector<CacheFiles> ListUploads(const std::string& state_dir);

struct TemporaryFile {
  std::string path;  // absolute
  int64_t bytes = 0;
};
// Returns the temporary files (common/base/durable_file.h) whose writers are gone: their process
// does not exist, nothing was written for a day, or another machine sends a file for a Job that is
// over (common/transfer/incoming_file.h). shared: other machines write there, too, so that the
// first does not count.
std::vector<TemporaryFile> ListAbandoned(const std::string& state_dir, bool shared, absl::Time now);

// Keeps the last `keep_bytes` of a log, from the start of a line, in PATH.1 and empties the log,
// whose writers append to it. What they write at that moment may be lost.
absl::Status RotateLog(const std::string& path, int64_t keep_bytes);

}  // namespace traind
