// The tokens that traind knows: their hashes in a file of the state folder.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/access/caller.h"
#include "server/access/roles.h"

namespace traind {

inline constexpr char kTokenFile[] = "tokens";

struct TokenEntry {
  std::string sha256;  // of the token's text, lower-case hex
  std::string name;
  Role role = Role::kViewer;
  absl::Time expires = absl::InfiniteFuture();
};

// A line per token: hash, name, role, expiry in seconds since 1970 or "never".
// Errors: DataLoss names the line.
absl::StatusOr<std::vector<TokenEntry>> ParseTokens(absl::string_view text);

// The file as it stands; a missing one has no tokens.
absl::StatusOr<std::vector<TokenEntry>> ReadTokens(const std::string& state_dir);

// Makes a random token, stores its hash, and returns its text.
// Errors: InvalidArgument: a bad name; AlreadyExists: a token has that name.
// REQUIRES: nobody else changes the file meanwhile.
absl::StatusOr<std::string> AddToken(const std::string& state_dir, TokenEntry entry);
// NotFound: no token has that name. REQUIRES: as AddToken.
absl::Status RevokeToken(const std::string& state_dir, const std::string& name);

// Decides on calls by the file, which it reads again when it has changed.
// Threads: safe.
class TokenBook {
 public:
  explicit TokenBook(std::string state_dir);

  // Who calls, if that caller may. method: see NeedOf; one that is open has a caller without a
  // name. authorization: "Bearer TOKEN", or empty. has_certificate: the caller showed a certificate
  // of this traind's CA, which Workers must.
  // Errors: Unauthenticated, PermissionDenied, with what to do; Unavailable: the file is damaged.
  absl::StatusOr<Caller> Check(absl::string_view method, absl::string_view authorization,
                               bool has_certificate, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whose token it is, whatever that one may call. Errors: Unauthenticated; Unavailable.
  absl::StatusOr<Caller> Find(absl::string_view authorization, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether there is a token of this name, which may have expired.
  bool Knows(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Identifies a version of the file: each replacement has another one.
  struct Version {
    uint64_t inode = 0;
    int64_t bytes = 0, changed_ns = 0;
    bool operator==(const Version& other) const {
      return inode == other.inode && bytes == other.bytes && changed_ns == other.changed_ns;
    }
  };
  absl::Status Refresh() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string state_dir_;
  absl::Mutex mutex_;
  bool read_ ABSL_GUARDED_BY(mutex_) = false;
  Version version_ ABSL_GUARDED_BY(mutex_);
  std::vector<TokenEntry> tokens_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind
