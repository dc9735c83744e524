// The check before the calls of a port that needs tokens: it tells who calls, and records it.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <optional>
#include <string>

#include "server/access/audit_log.h"
#include "server/access/caller.h"
#include "server/access/token_book.h"

namespace traind {

// A stream that stays open is checked again so often: a token that was revoked ends it.
inline constexpr absl::Duration kRecheckStreams = absl::Seconds(4);

// Threads: safe.
class Gate {
 public:
  static constexpr int kMostRefusals = 100;

  explicit Gate(const std::string& state_dir) : tokens_(state_dir), audit_(state_dir) {}

  // Checks a call as TokenBook::Check does. It records refusals, at most kMostRefusals a minute:
  // nobody pushes other lines out of the record by calls without a token.
  absl::StatusOr<Caller> Admit(absl::string_view method, absl::string_view authorization,
                               bool has_certificate, absl::Time now);
  // Records how a call ended that may change something. rpc: "CancelJob", of TrainingService.
  void Record(const Caller& caller, const std::string& rpc, const std::string& subject,
              const absl::Status& outcome, absl::Time now);

  TokenBook& tokens() { return tokens_; }

 private:
  // The refusal as it is recorded; nullopt: there were too many of late.
  std::optional<absl::Status> Thin(const absl::Status& refusal, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

  TokenBook tokens_;
  AuditLog audit_;
  absl::Mutex mutex_;
  absl::Time minute_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // its start
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;                          // in it
  int left_out_ ABSL_GUARDED_BY(mutex_) = 0;                          // not told yet
};

// "/traind.v1.TrainingService/CancelJob" for "CancelJob".
std::string TrainingMethod(absl::string_view rpc);

}  // namespace traind
