#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <cmath>
#include <filesystem>

#include "client/contexts.h"
#include "client/exit_codes.h"
#include "client/render_table.h"
#include "client/verbs.h"
#include "client/version.h"
#include "common/base/duration.h"
#include "common/base/refused_files.h"
#include "common/spec/field_text.h"

namespace traind {
namespace {

// A heartbeat is this old at most.
constexpr absl::Duration kHeartbeat = absl::Seconds(10);
constexpr absl::Duration kSlow = absl::Milliseconds(200);
constexpr double kLeastShare = 0.02, kLowShare = 0.1;  // of a disk

// Prints a line for each check and keeps the worst one.
// Threads: confined to one.
class Findings {
 public:
  Findings(Environment& environment, bool color) : environment_(environment), color_(color) {}

  void Ok(const std::string& what, const std::string& text) { Print("ok", "32", what, text); }
  void Warn(const std::string& what, const std::string& text) { Print("warn", "33", what, text); }
  void Fail(const std::string& what, const std::string& text) {
    failed_ = true;
    Print("fail", "31", what, text);
  }
  bool failed() const { return failed_; }

 private:
  void Print(const char* word, const char* tint, const std::string& what, const std::string& text) {
    const std::string mark = absl::StrFormat("%-4s", word);
    environment_.out << (color_ ? absl::StrCat("\x1b[", tint, "m", mark, "\x1b[0m") : mark)
                     << absl::StrFormat("  %-9s  %s\n", what, Printable(text, 1000));
  }

  Environment& environment_;
  const bool color_;
  bool failed_ = false;
};

void CheckConfig(const Environment& environment, Findings& findings) {
  const auto file = ReadContexts(environment.config_file);
  if (!file.ok()) {
    findings.Fail("config", std::string(file.status().message()));
  } else if (!file->current.empty()) {
    findings.Ok("config", absl::StrCat(environment.config_file, ", context ", file->current));
  }
}

void CheckVersions(const v1::ListWorkersReply& workers, Findings& findings) {
  for (const v1::WorkerInfo& worker : workers.workers()) {
    if (worker.version().empty() || absl::StrContains(worker.version(), kClientVersion)) continue;
    findings.Warn("version",
                  absl::StrCat("trainctl is ", kClientVersion, ", Worker ", worker.id(), " is ",
                               worker.version(), "; install the same release everywhere"));
    return;
  }
  findings.Ok("version", absl::StrCat("trainctl and Workers are ", kClientVersion));
}

// A connected Worker was heard a heartbeat ago by the clock of traind's machine.
void CheckClock(const v1::WorkerInfo& worker, absl::Time now, Findings& findings) {
  const absl::Duration behind = now - ToTime(worker.last_seen());
  if (behind > -absl::Seconds(2) && behind < kHeartbeat + absl::Seconds(2)) {
    findings.Ok("clock", "agrees with that of traind's machine");
    return;
  }
  findings.Warn("clock",
                absl::StrCat("differs from that of traind's machine by about ",
                             DurationToText(behind < absl::ZeroDuration() ? -behind : behind),
                             "; deadlines that you give as a time of day are meant by "
                             "this clock. Let both machines follow NTP"));
}

// full: that of traind's disk.
void CheckWorkers(const v1::ListWorkersReply& workers, bool full, absl::Time now,
                  Findings& findings) {
  int connected = 0, gpus = 0, cores = 0;
  const v1::WorkerInfo* heard = nullptr;
  for (const v1::WorkerInfo& worker : workers.workers()) {
    if (!worker.connected()) {
      findings.Warn("worker",
                    absl::StrCat(worker.id(), " on ", worker.hostname(), " is not connected since ",
                                 ClockText(worker.last_seen(), now),
                                 full ? "; it comes back once the disk has space"
                                      : "; is its trainworker running?"));
      continue;
    }
    heard = &worker;
    ++connected;
    for (const v1::SlotInfo& slot : worker.slots()) ++(slot.device() == "cuda" ? gpus : cores);
  }
  if (connected == 0) {
    findings.Fail("worker",
                  full ? "no Worker is connected: traind takes none while the disk is full"
                       : "no Worker is connected, so nothing trains: start trainworker, or "
                         "traind with --standalone");
    return;
  }
  findings.Ok("worker", absl::StrCat(connected, " connected, with ", gpus + cores, " slots"));
  std::error_code error;
  if (gpus > 0) {
    findings.Ok("devices", absl::StrCat(gpus, gpus == 1 ? " GPU" : " GPUs"));
  } else if (std::filesystem::exists("/dev/nvidia0", error)) {
    findings.Warn("devices",
                  "this machine has an NVIDIA device, but slots are CPU cores: see why "
                  "with trainctl logs --worker --grep 'driver|GPU'");
  } else {
    findings.Ok("devices", absl::StrCat(cores, " CPU cores; there is no GPU"));
  }
  CheckVersions(workers, findings);
  CheckClock(*heard, now, findings);
}

std::string SizeText(double bytes) {
  return bytes < 1e9 ? absl::StrFormat("%.3g MB", bytes / 1e6)
                     : absl::StrFormat("%.3g GB", bytes / 1e9);
}

// The disk of the state folder, if it is on this machine. Returns whether it is full.
bool CheckDisk(const v1::ListJobsReply& jobs, const Environment& environment, Findings& findings) {
  if (jobs.jobs().empty()) return false;
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::path(jobs.jobs(0).results_dir()).parent_path();
  if (folder.empty() || !std::filesystem::exists(folder, error)) return false;
  const auto space = environment.disk_space(folder);
  if (space.capacity == 0) return false;
  const double share = static_cast<double>(space.available) / static_cast<double>(space.capacity);
  const std::string text =
      absl::StrFormat("%s free (%.0f %%) at %s", SizeText(static_cast<double>(space.available)),
                      100 * share, folder.string());
  if (share < kLeastShare) {
    findings.Fail("disk", text +
                              "; Jobs will end with STORAGE_FULL. Free some: trainctl gc, "
                              "trainctl delete JOB");
  } else if (share < kLowShare) {
    findings.Warn("disk", text + "; see what could go: trainctl gc --dry-run");
  } else {
    findings.Ok("disk", text);
  }
  return share < kLeastShare;
}

// Whether traind may read a file of data: it looks at the file as for a plan.
void CheckData(const std::string& path, TrainingClient& client, Findings& findings) {
  std::error_code error;
  v1::PlanRequest request;
  request.mutable_spec()->set_api("v1");
  request.mutable_spec()->mutable_data()->set_train(
      std::filesystem::absolute(path, error).lexically_normal().string());
  request.mutable_spec()->mutable_data()->set_target("-");
  request.mutable_spec()->mutable_task()->set_type("regression");
  const absl::Status status = client.Plan(request).status();
  const RefusedFiles refused = RefusedFilesOf(status);
  // That it has no column of that name is no matter: traind has read it.
  const auto file = refused.find("data.train");
  if (file == refused.end()) return findings.Ok("data", "traind reads " + path);
  const bool outside = file->second == FileProblem::kOutsideRoots;
  findings.Fail("data",
                absl::StrCat(status.message(),
                             outside ? "; start traind with a --data-root that covers it" : ""));
}

}  // namespace

// Ends with kExitError if a check failed, with kExitUnreachable if traind cannot be reached.
int RunDoctor(const Arguments& arguments, Environment& environment) {
  Findings findings(environment, UsesColor(arguments, environment));
  CheckConfig(environment, findings);
  TrainingClient client = MakeClient(arguments, environment);
  const absl::Duration start = environment.clock.MonotonicNow();
  const auto workers = client.ListWorkers();
  if (!workers.ok()) {
    findings.Fail("traind",
                  absl::StrCat(workers.status().message(),
                               ". Is it running? traind --standalone --state DIR; or name "
                               "another with --server, $TRAINCTL_SERVER or a context"));
    return ExitCodeOf(workers.status());
  }
  const absl::Duration took = environment.clock.MonotonicNow() - start;
  const std::string answer =
      absl::StrCat(arguments.server, " answers in ", absl::ToInt64Milliseconds(took), " ms");
  took < kSlow ? findings.Ok("traind", answer)
               : findings.Warn("traind", answer + ", which is slow; is the machine overloaded?");
  v1::ListJobsRequest request;
  request.set_page_size(1);
  const auto jobs = client.ListJobsPage(request);
  // Where the disk is full, Workers are gone because of that.
  const bool full = jobs.ok() && CheckDisk(*jobs, environment, findings);
  CheckWorkers(*workers, full, environment.clock.WallNow(), findings);
  if (!arguments.data.empty()) CheckData(arguments.data, client, findings);
  return findings.failed() ? kExitError : kExitOk;
}

}  // namespace traind
