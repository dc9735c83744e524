// Which token each Worker came with first: no other may take its id, and with it its Attempts.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <functional>
#include <map>
#include <string>

namespace traind {

inline constexpr char kWorkerOwnersFile[] = "worker_tokens";

// A line "TOKEN'S NAME WORKER'S ID" per Worker in a file of the state folder. One token may have
// many Workers.
// Threads: safe. Ownership: what known_token uses outlives the object.
class WorkerOwners {
 public:
  // known_token: whether there is a token of this name; a Worker whose token was revoked may come
  // with another.
  WorkerOwners(std::string state_dir, std::function<bool(const std::string&)> known_token);

  // Takes the id for the token, durably. Errors: PermissionDenied: it is another token's;
  // Unavailable: the file cannot be read or written.
  absl::Status Claim(const std::string& worker, const std::string& token)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string path_;
  const std::function<bool(const std::string&)> known_token_;
  absl::Mutex mutex_;
  bool read_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, std::string> tokens_ ABSL_GUARDED_BY(mutex_);  // by Worker
};

}  // namespace traind
