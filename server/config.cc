#include "server/config.h"

#include <absl/algorithm/container.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>
#include <utility>

#include "common/base/cores.h"
#include "common/base/durable_file.h"
#include "common/base/duration.h"
#include "common/base/engine_version.h"
#include "common/base/host_port.h"
#include "common/base/labels.h"
#include "common/base/quota_text.h"
#include "common/base/status_macros.h"
#include "common/base/suggest.h"
#include "server/objects/s3_location.h"

namespace traind {
namespace {

constexpr char kDefaultHttp[] = "127.0.0.1:0";
constexpr absl::Duration kLeastTakeover = absl::Seconds(1);
constexpr absl::Duration kMostTakeover = absl::Minutes(10);

// The Worker's program is in the folder beside this one's (.../server/traind,
// .../worker/trainworker) or, if installed, in the same folder.
std::string DefaultWorkerBinary() {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return "trainworker";
  std::string folder(self, static_cast<size_t>(length));
  folder.resize(folder.rfind('/'));
  const std::string beside = absl::StrCat(folder, "/trainworker");
  if (access(beside.c_str(), X_OK) == 0) return beside;
  return absl::StrCat(folder.substr(0, folder.rfind('/')), "/worker/trainworker");
}

// Who of this machine's users may call a standalone traind on loopback.
enum class LocalCallers { kOwn, kAny };

absl::StatusOr<std::string> RealPath(const std::string& path) {
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) == nullptr) return ErrnoStatus(errno, path);
  return std::string(resolved);
}

bool IsLoopback(const std::string& listen) {
  const std::string host = listen.substr(0, listen.rfind(':'));
  return host == "localhost" || host == "[::1]" || host.rfind("127.", 0) == 0;
}

// Checks an address that traind is to listen on.
absl::Status CheckListen(const char* flag, const std::string& address, bool safe) {
  if (const absl::Status form = CheckHostPort(address, 0); !form.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", form.message()));
  }
  if (safe || IsLoopback(address)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " ", address,
                   " is reachable from other machines, and connections are not encrypted; run "
                   "traind init-tls and give --tls DIR, or say --insecure if "
                   "everybody who reaches the port may do everything"));
}

ParsedFlags Wrong(const std::string& what) {
  std::cerr << "traind: error: " << what << "\nRun traind --help for the flags.\n";
  return {{}, kExitUsage};
}

// Suggests the flag that a wrong one probably stands for.
std::string Suggestion(const CLI::App& app, const std::string& text) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
  const auto begin = text.find("--");
  if (begin == std::string::npos) return "";
  const std::string word = text.substr(begin, text.find_first_of(" =:", begin) - begin);
  // The flag is right, but its value is wrong or missing.
  if (std::find(names.begin(), names.end(), word) != names.end()) return "";
  return DidYouMean(word, names);
}

// Reads "local: 45h per 7d" or "team=vision: 2h per 1d, fixed".
absl::StatusOr<Quota> ReadQuota(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string who = text.substr(0, colon);
  if (colon == std::string::npos || who.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' names nobody; write it like 'local: 45h per 7d'"));
  }
  ASSIGN_OR_RETURN(const QuotaText read, QuotaFromText(text.substr(colon + 1)));
  Quota quota;
  (who.find('=') == std::string::npos ? quota.subject.owner : quota.subject.label) = who;
  quota.allowance = read.allowance;
  quota.period = read.period;
  quota.rolling = read.rolling;
  return quota;
}

// The limits of retention as they stand on the command line.
struct KeepTexts {
  std::string jobs_for = "never";
  std::string metrics_for = "30d";
  std::string cache_for = "30d";
  std::string disk = "25%";
};

// Reads a duration, or "never" for no limit.
absl::Status ReadDurationOrNever(const char* flag, const std::string& text, absl::Duration* into) {
  if (text == "never") {
    *into = absl::InfiniteDuration();
    return absl::OkStatus();
  }
  const auto read = DurationFromText(text);
  if (!read.ok())
    return absl::InvalidArgumentError(absl::StrCat(flag, " ", read.status().message()));
  *into = *read;
  return absl::OkStatus();
}

// Reads "25%" of the file system, or a number of GiB.
absl::Status ReadKeepDisk(const std::string& text, Config* config) {
  absl::string_view number = text;
  double value = 0;
  const bool share = absl::ConsumeSuffix(&number, "%");
  if ((!share && !absl::ConsumeSuffix(&number, "GiB")) || !absl::SimpleAtod(number, &value) ||
      !(value > 0) || value > (share ? 100 : 1e6)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--keep-disk '", text,
                     "' is neither a share of the disk, like 25%, nor a "
                     "size, like 50GiB"));
  }
  if (share) {
    config->disk_share = value / 100;
  } else {
    config->retention.bytes = static_cast<int64_t>(value * (int64_t{1} << 30));
  }
  return absl::OkStatus();
}

absl::Status ReadKeep(const KeepTexts& keep, Config* config) {
  RetentionLimits& limits = config->retention;
  RETURN_IF_ERROR(ReadDurationOrNever("--keep-jobs-for", keep.jobs_for, &limits.job_age));
  RETURN_IF_ERROR(ReadDurationOrNever("--keep-metrics-for", keep.metrics_for, &limits.history_age));
  RETURN_IF_ERROR(ReadDurationOrNever("--keep-cache-for", keep.cache_for, &limits.cache_age));
  return ReadKeepDisk(keep.disk, config);
}

ParsedFlags Complete(Config config, const std::string& level,
                     const std::optional<std::string>& http, const std::vector<std::string>& quotas,
                     const KeepTexts& keep, LocalCallers callers) {
  if (const absl::Status read = ReadKeep(keep, &config); !read.ok()) {
    return Wrong(std::string(read.message()));
  }
  for (const std::string& text : quotas) {
    auto quota = ReadQuota(text);
    if (!quota.ok()) return Wrong(absl::StrCat("--quota ", quota.status().message()));
    config.quotas.push_back(*std::move(quota));
  }
  if (!config.standalone && config.slots >= 0) {
    return Wrong("--slots is the embedded Worker's: it needs --standalone");
  }
  if (!config.standalone && !config.worker_labels.empty()) {
    return Wrong("--label is the embedded Worker's: it needs --standalone");
  }
  if (const auto labels = ParseLabels(config.worker_labels); !labels.ok()) {
    return Wrong(absl::StrCat("--label: ", labels.status().message()));
  }
  if (const absl::Status slots = CheckSlots(config.slots, UsableCores()); !slots.ok()) {
    return Wrong(absl::StrCat("--slots: ", slots.message()));
  }
  if (const absl::Status listen =
          CheckListen("--listen", config.listen, config.insecure || !config.tls_dir.empty());
      !listen.ok()) {
    return Wrong(std::string(listen.message()));
  }
  if (!http) {
    config.http = config.standalone ? kDefaultHttp : "";
  } else {
    config.http = *http == "off" ? "" : *http;
  }
  if (!config.http.empty()) {
    const bool safe = config.insecure || !config.tls_dir.empty();
    if (const absl::Status listen = CheckListen("--http", config.http, safe); !listen.ok()) {
      return Wrong(std::string(listen.message()));
    }
    config.http_tls = !config.tls_dir.empty() && !IsLoopback(config.http);
  }
  config.own_user_only = callers == LocalCallers::kOwn && config.standalone &&
                         config.tls_dir.empty() && IsLoopback(config.listen) &&
                         (config.http.empty() || IsLoopback(config.http));
  if (!config.tls_dir.empty()) {
    auto folder = RealPath(config.tls_dir);
    if (!folder.ok()) {
      return Wrong(
          absl::StrCat("--tls ", folder.status().message(), "; traind init-tls makes the folder"));
    }
    config.tls_dir = *std::move(folder);
  }
  if (config.data_roots.empty()) {
    if (!config.standalone) return Wrong("--data-root is needed");
    config.data_roots.push_back(".");
  }
  for (std::string& root : config.data_roots) {
    auto resolved = RealPath(root);
    if (!resolved.ok()) return Wrong(absl::StrCat("--data-root ", resolved.status().message()));
    root = *std::move(resolved);
  }
  if (!config.on_end.empty()) {
    auto program = RealPath(config.on_end);
    if (!program.ok()) return Wrong(absl::StrCat("--on-end ", program.status().message()));
    if (access(program->c_str(), X_OK) != 0) {
      return Wrong(absl::StrCat("--on-end ", *program, " is not executable; chmod +x makes it so"));
    }
    config.on_end = *std::move(program);
  }
  if (const absl::Status made = MakeDirs(config.state_dir); !made.ok()) {
    return Wrong(absl::StrCat("--state: ", made.message()));
  }
  auto state = RealPath(config.state_dir);
  if (!state.ok()) return Wrong(absl::StrCat("--state: ", state.status().message()));
  config.state_dir = *std::move(state);
  if (IsBucket(config.artifacts) || IsBucket(config.restore_from)) {
    const std::string& bucket = IsBucket(config.artifacts) ? config.artifacts : config.restore_from;
    const auto location = ParseS3Location(bucket, ProcessEnviron);
    if (!location.ok()) return Wrong(std::string(location.status().message()));
  }
  if (IsBucket(config.artifacts)) {
    while (absl::EndsWith(config.artifacts, "/")) config.artifacts.pop_back();
  } else if (!config.artifacts.empty()) {
    if (const absl::Status made = MakeDirs(config.artifacts); !made.ok()) {
      return Wrong(absl::StrCat("--artifacts: ", made.message()));
    }
    auto folder = RealPath(config.artifacts);
    if (!folder.ok()) return Wrong(absl::StrCat("--artifacts: ", folder.status().message()));
    config.artifacts = *std::move(folder);
  } else if (config.standby) {
    return Wrong("--standby waits for an archive: it needs --artifacts");
  }
  if (!config.restore_from.empty()) {
    if (IsBucket(config.restore_from)) {
      while (absl::EndsWith(config.restore_from, "/")) config.restore_from.pop_back();
    } else {
      auto from = RealPath(config.restore_from);
      if (!from.ok()) return Wrong(absl::StrCat("--restore ", from.status().message()));
      config.restore_from = *std::move(from);
    }
    if (config.restore_from == config.artifacts) {
      return Wrong(
          "--restore makes a copy that goes its own way; to go on with the archive itself, give "
          "--artifacts alone");
    }
  }
  if (config.worker_binary.empty()) config.worker_binary = DefaultWorkerBinary();
  config.log_level = level == "warning" ? LogLevel::kWarning
                     : level == "error" ? LogLevel::kError
                                        : LogLevel::kInfo;
  return {std::move(config), std::nullopt};
}

}  // namespace

ParsedFlags ParseFlags(int argc, char** argv) {
  Config config;
  std::string level = "info";
  std::string log_format = "text";
  std::string local_users = "own";
  std::optional<std::string> http;
  std::vector<std::string> quotas, scripts, program_owners;
  KeepTexts keep;
  CLI::App app("traind - trains models and has a prediction before the deadline");
  app.add_flag("--standalone", config.standalone,
               "run a Worker on this machine, too; no other service is needed");
  app.add_option("--state", config.state_dir, "folder for the database, checkpoints and results")
      ->required();
  app.add_option("--listen", config.listen, "HOST:PORT for clients; port 0 takes any free one")
      ->capture_default_str();
  app.add_option("--http", http,
                 "HOST:PORT of the page and of calls as JSON; port 0 takes any free one, 'off' "
                 "opens none (default with --standalone: 127.0.0.1:0)");
  app.add_option("--http-host", config.http_hosts,
                 "a further name under which the HTTP port is reached, besides localhost and the "
                 "address of --http; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--data-root", config.data_roots,
                 "data are read only below this folder; may be repeated (default with "
                 "--standalone: the current folder)");
  app.add_option("--slots", config.slots,
                 "slots of the standalone Worker (default: its GPUs, or its cores)")
      ->check(CLI::Range(0, 4096));
  app.add_option("--label", config.worker_labels,
                 "NAME=VALUE: a label of the standalone Worker, for Jobs that ask for it; may be "
                 "repeated")
      ->allow_extra_args(false);
  app.add_option("--worker-binary", config.worker_binary, "the Worker's program");
  app.add_option("--tls", config.tls_dir,
                 "folder of the certificates (traind init-tls); --listen then speaks TLS, and "
                 "every call needs a token");
  app.add_option("--local-users", local_users,
                 "who of this machine's users may call a standalone traind on loopback: 'own', the "
                 "user it runs as and root, or 'any'")
      ->check(CLI::IsMember({"own", "any"}))
      ->capture_default_str();
  app.add_flag("--insecure", config.insecure,
               "allow an address that is not loopback without TLS and tokens");
  app.add_option(
         "--quota", quotas,
         "WHO: ALLOWANCE per PERIOD, the slot time that an owner or a label may use: 'local: "
         "45h per 7d', 'team=vision: 2h per 1d, fixed'; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--allow-script", scripts,
                 "SHA-256 of a TorchScript module that Jobs may train (model.script), or 'any'; "
                 "may be repeated; without it no module runs")
      ->allow_extra_args(false);
  app.add_flag("--allow-programs", config.programs,
               "Jobs may run programs of their users (trainctl run), with the rights of the "
               "Worker; without it none runs");
  app.add_option("--program-owner", program_owners,
                 "NAME of an owner whose Jobs may run programs; may be repeated; without it those "
                 "of all owners may, where --allow-programs is given")
      ->allow_extra_args(false);
  app.add_option_function<std::string>(
      "--preempt-after",
      [&config](const std::string& text) {
        const absl::Status read =
            ReadDurationOrNever("--preempt-after", text, &config.preempt_after.emplace());
        if (!read.ok()) throw CLI::ValidationError(std::string(read.message()));
      },
      "a Job of which nothing runs, and that waits for so long, gets slots of folds with a lower "
      "priority, which save a checkpoint and go on later (default 10s); never");
  app.add_option("--submit-rate", config.submit_rate,
                 "Jobs a second that each owner may submit, in the mean of a minute; 0: no limit")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  app.add_option("--owner-jobs", config.owner_jobs,
                 "how many Jobs of one owner may be there that are not over; 0: no limit")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--owner-slots", config.owner_slots,
                 "how many slots the folds of one owner may use at a time; 0: no limit")
      ->check(CLI::Range(0, 1'000'000'000))
      ->capture_default_str();
  app.add_option("--on-end", config.on_end,
                 "PROGRAM that runs when a Job has ended, with its id, its state and the path "
                 "of a file with the Job as JSON");
  app.add_option("--keep-jobs", config.retention.jobs,
                 "how many Jobs that are over are kept; pinned ones count, too")
      ->check(CLI::Range(int64_t{0}, kNoLimit))
      ->capture_default_str();
  app.add_option("--keep-jobs-for", keep.jobs_for,
                 "how long a Job is kept after its end: 90d; never: no limit")
      ->capture_default_str();
  app.add_option("--keep-metrics-for", keep.metrics_for,
                 "how long metrics and events of a Job are kept after its end")
      ->capture_default_str();
  app.add_option("--keep-cache-for", keep.cache_for,
                 "how long data that were read are kept after their last use")
      ->capture_default_str();
  app.add_option("--keep-disk", keep.disk,
                 "what the state folder may take: a share of its disk, 25%, or a size, 50GiB; "
                 "beyond it caches go, then the Jobs that ended first")
      ->capture_default_str();
  app.add_option("--artifacts", config.artifacts,
                 "folder, best on another machine, or s3://BUCKET/PREFIX, that gets the files of "
                 "Jobs and every change of the database before it is acknowledged; one traind at a "
                 "time has it");
  app.add_flag("--standby", config.standby,
               "wait until no other traind has --artifacts, then go on in its place");
  app.add_option_function<std::string>(
      "--takeover-after",
      [&config](const std::string& text) {
        const auto read = DurationFromText(text);
        if (!read.ok()) throw CLI::ValidationError(std::string(read.status().message()));
        if (*read < kLeastTakeover || *read > kMostTakeover) {
          throw CLI::ValidationError("it must be from 1s to 10m");
        }
        config.takeover_after = *read;
      },
      "how long a traind with --artifacts may give no sign of life before a standby takes over "
      "(default 6s); after two thirds of that it ends by itself");
  app.add_option("--restore", config.restore_from,
                 "first make the state folder of a copy of these --artifacts; it must have no "
                 "database yet");
  app.add_option_function<std::string>(
      "--scrub-every",
      [&config](const std::string& text) {
        const absl::Status read = ReadDurationOrNever("--scrub-every", text, &config.scrub_every);
        if (!read.ok()) throw CLI::ValidationError(std::string(read.message()));
        if (config.scrub_every < absl::Seconds(1)) {
          throw CLI::ValidationError("--scrub-every is at least 1s");
        }
      },
      "how often checkpoints and standing predictions are read, to find what was damaged on the "
      "disk (default 6h); never");
  app.add_flag("--accept-loss", config.accept_loss,
               "start with a database that lacks acknowledged changes, and give those up");
  app.add_option("--log-level", level, "info, warning or error")
      ->check(CLI::IsMember({"info", "warning", "error"}))
      ->capture_default_str();
  app.add_option("--log", config.log_file,
                 "the file to which the log is appended (default: stderr)");
  app.add_option("--log-bytes", config.log_bytes,
                 "how large that file becomes (default 16M); three older ones stay beside it")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--log-format", log_format, "text, or json: an object per line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.set_version_flag("--version", absl::StrCat("traind ", kTraindVersion));
  app.footer(
      "Exit codes: 0 stopped, 1 error, 2 wrong flags, 3 state folder in use, 4 port in use.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return {{}, app.exit(asked)};
  } catch (const CLI::ParseError& error) {
    // A misspelt flag may be the one that is missing.
    const std::vector<std::string> unknown = app.remaining();
    const std::string what = unknown.empty() || !absl::StartsWith(unknown[0], "--")
                                 ? error.what()
                                 : absl::StrCat("there is no flag ", unknown[0]);
    return Wrong(absl::StrCat(what, Suggestion(app, what)));
  }
  config.program_owners.insert(program_owners.begin(), program_owners.end());
  if (!program_owners.empty() && !config.programs) {
    return Wrong("--program-owner needs --allow-programs");
  }
  for (const std::string& script : scripts) {
    const bool digest = script.size() == 64 && absl::c_all_of(script, [](char c) {
                          return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
                        });
    if (!digest && script != "any") {
      return Wrong(absl::StrCat("--allow-script ", script,
                                " is neither a SHA-256 (64 digits and letters a to f) nor 'any'"));
    }
    config.scripts.insert(script);
  }
  config.log_json = log_format == "json";
  return Complete(std::move(config), level, http, quotas, keep,
                  local_users == "any" ? LocalCallers::kAny : LocalCallers::kOwn);
}

const std::string& Config::files_dir() const {
  return artifacts.empty() || IsBucket(artifacts) ? state_dir : artifacts;
}

}  // namespace traind
