// The processes that the Worker runs: how they are started, told and listened to.
#include <absl/strings/str_cat.h>
#include <errno.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <utility>
#include <vector>

#include "worker/daemon/daemon.h"

namespace traind::worker {
namespace {

namespace rp = rank_protocol;

constexpr int kLinesPerTurn = 1000;

}  // namespace

void Daemon::ReadChildren(absl::Duration now) {
  more_lines_ = false;
  std::optional<bool> ran_out;  // of memory; one answer for all that were killed
  for (auto it = children_.begin(); it != children_.end();) {
    const ProcessId id = it->first;
    Running& running = it->second;
    Child& child = *running.child;
    child.DrainStderr();
    ReadLines(id, running, now);
    (void)child.channel().Flush();  // a dead reader shows as an exit
    // Messages that it sent before its end are read first.
    std::optional<ExitStatus> status = more_lines_ ? std::nullopt : child.Reap();
    if (status) {
      do {
        more_lines_ = false;
        ReadLines(id, running, now);
      } while (more_lines_);
      if (status->kind == ExitStatus::kSignalled && status->code == SIGKILL) {
        if (!ran_out) ran_out = memory_.RanOut();
        if (*ran_out) status->memory = UsableMemory();
      }
      core_.Exited(id, *status, now);
      it = children_.erase(it);
      continue;
    }
    if (!running.given_up && now >= running.closed_at + kExitAfterClose) {
      running.given_up = true;
      core_.Broken(id, "it closed its output", now);
    }
    ++it;
  }
}

void Daemon::ReadLines(ProcessId id, Running& running, absl::Duration now) {
  if (running.closed_at != absl::InfiniteDuration()) return;
  for (int i = 0; i < kLinesPerTurn; ++i) {
    const absl::StatusOr<std::string> line =
        running.child->channel().ReadLine(absl::ZeroDuration());
    if (line.ok()) {
      HandleLine(id, *running.child, *line, now);
      continue;
    }
    if (absl::IsDeadlineExceeded(line.status())) return;
    running.closed_at = now;
    if (!absl::IsOutOfRange(line.status())) {
      running.given_up = true;
      core_.Broken(id, std::string(line.status().message()), now);
    }
    return;
  }
  more_lines_ = true;
}

void Daemon::HandleLine(ProcessId id, Child& child, const std::string& line, absl::Duration now) {
  const absl::StatusOr<rp::FromProcess> message = rp::DecodeFromProcess(line);
  if (!message.ok()) {
    // A library that prints on standard output must not end a run.
    child.WriteLog(LogLevel::kInfo, absl::StrCat("not understood (", message.status().message(),
                                                 "): ", absl::string_view(line).substr(0, 500)));
    return;
  }
  if (const auto* log = std::get_if<rp::LogText>(&*message)) {
    child.WriteLog(log->level == "info"      ? LogLevel::kInfo
                   : log->level == "warning" ? LogLevel::kWarning
                                             : LogLevel::kError,
                   log->text);
  }
  core_.Message(id, *message, now);
}

void Daemon::Spawn(const SpawnAction& spawn, absl::Duration now) {
  ChildOptions child;
  const auto path = options_.programs.find(spawn.program->name);
  if (path == options_.programs.end()) {
    return core_.Exited(spawn.process, {ExitStatus::kNotStarted, ENOENT, ""}, now);
  }
  child.program = path->second;
  child.nice = spawn.program->nice;
  child.env.push_back(
      absl::StrCat("CUDA_VISIBLE_DEVICES=",
                   spawn.slot >= 0 ? slots_[static_cast<size_t>(spawn.slot)].uuid : ""));
  // Threads of an operator that wait for each other by spinning starve where something
  // else holds a core. LibTorch reads it when it is loaded.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) child.env.push_back("OMP_WAIT_POLICY=passive");
  int error = 0;
  auto started = Child::Start(child, &error);
  if (!started.ok()) {
    return core_.Exited(spawn.process, {ExitStatus::kNotStarted, error, ""}, now);
  }
  Running& running = children_[spawn.process];
  running.child = *std::move(started);
  running.program = spawn.program;
  MemoryGuard::EndFirst(running.child->pid());
}

void Daemon::SendToChild(const SendAction& send, absl::Duration now) {
  const auto found = children_.find(send.process);
  if (found == children_.end()) return;
  if (std::holds_alternative<rp::Train>(send.message)) LimitMemory(send.process);
  const std::string line = rp::Encode(send.message);
  if (const auto* rows = std::get_if<rp::Rows>(&send.message);
      rows != nullptr && line.size() > rp::kMaxLineBytes) {
    return core_.TooLong(*rows);
  }
  const absl::Status status = found->second.child->channel().QueueLine(line);
  // One that is dead or dying shows as an exit.
  if (!status.ok() && !absl::IsOutOfRange(status)) {
    core_.Broken(send.process, std::string(status.message()), now);
  }
}

void Daemon::LimitMemory(ProcessId process) {
  const Running& rank = children_.at(process);
  if (!memory_.short_of_memory() || !rank.program->shrinks) return;
  int64_t trains = 0;
  for (const int64_t attempt : core_.Training()) {
    for (const ProcessId id : core_.ProcessesOf(attempt)) {
      const auto found = children_.find(id);
      if (found != children_.end()) trains += PrivateMemoryOf(found->second.child->pid()).resident;
    }
  }
  MemoryGuard::Limit(rank.child->pid(),
                     MemoryShare(AvailableMemory(), trains, static_cast<int>(slots_.size())));
}

}  // namespace traind::worker
