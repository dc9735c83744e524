// traind's command line.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "server/domain/quota.h"
#include "server/retention/retention_plan.h"

namespace traind {

// Exit codes of traind (docs/OPERATIONS.md).
inline constexpr int kExitOk = 0;
inline constexpr int kExitError = 1;       // the store failed, or another error at run time
inline constexpr int kExitUsage = 2;       // wrong flags
inline constexpr int kExitStateInUse = 3;  // another traind has the state folder
inline constexpr int kExitPortInUse = 4;

struct Config {
  bool standalone = false;
  std::string state_dir;                  // absolute
  std::string listen = "127.0.0.1:7070";  // port 0: any free one
  // The address of the HTTP port; empty: there is none.
  std::string http;
  std::vector<std::string> http_hosts;     // further names of this host in HTTP requests
  std::vector<std::string> data_roots;     // absolute, links resolved
  int slots = -1;                          // -1: GPUs, or cores
  std::vector<std::string> worker_labels;  // of the standalone Worker: "rack=a"
  std::string worker_binary;               // absolute
  // When a Job of a higher priority stops folds of lower ones; infinite: never. Unset: as
  // CoreOptions has it.
  std::optional<absl::Duration> preempt_after;
  double submit_rate = 5000;  // Jobs a second of each owner; 0: no limit
  int owner_jobs = 0;         // of each owner, that are not over; 0: no limit
  int owner_slots = 0;        // that the folds of each owner use at a time; 0: no limit
  bool insecure = false;
  std::string tls_dir;    // absolute; empty: no TLS and no tokens
  bool http_tls = false;  // the HTTP port speaks TLS, too
  // Only the user of this process and root may call; set for loopback without tokens alone.
  bool own_user_only = false;
  std::vector<Quota> quotas;             // replace quotas of the same owners and labels
  std::set<std::string> scripts;         // SHA-256 of users' models that may run, or "any"
  bool programs = false;                 // Jobs may run programs of their users
  std::set<std::string> program_owners;  // whose Jobs; empty: all
  std::string on_end;                    // absolute path of a program; empty: none
  absl::Duration scrub_every = absl::Hours(6);
  RetentionLimits retention;  // bytes: kNoLimit where disk_share counts
  double disk_share = 0.25;   // of its file system, that the state folder may take
  bool accept_loss = false;   // see SqliteStoreOptions
  std::string artifacts;      // a folder's absolute path, or s3://...; empty: no archive
  bool standby = false;       // waits for the archive; needs artifacts
  absl::Duration takeover_after = absl::Seconds(6);
  std::string restore_from;  // the artifacts of which the state folder is made first; as above
  LogLevel log_level = LogLevel::kInfo;
  bool log_json = false;  // an object per line
  std::string log_file;   // empty: stderr
  int64_t log_bytes = kDefaultLogBytes;

  // Where the files of Jobs lie: a bucket has copies of them alone.
  const std::string& files_dir() const;
};

struct ParsedFlags {
  Config config;
  // Set if the process should exit right now with this code (--help, --version, a wrong flag); the
  // message has been printed.
  std::optional<int> exit_code;
};

ParsedFlags ParseFlags(int argc, char** argv);

}  // namespace traind
