// WorkerCore: what the time asks for.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "worker/daemon/spares.h"
#include "worker/daemon/worker_core.h"

namespace traind::worker {
namespace {

constexpr absl::Duration kExitWait = absl::Seconds(2);

}  // namespace

void WorkerCore::Tick(absl::Duration now, bool unacked) {
  std::vector<int64_t> ids;
  for (const auto& [id, attempt] : attempts_) ids.push_back(id);
  for (const int64_t id : ids) TickAttempt(attempts_.at(id), now);
  TickProcesses(now);
  Launch(now);
  KeepSpares(now);
  for (PublishRequest& request : publish_schedule_.Due(now, unacked))
    Do(PublishAction{std::move(request)});
}

void WorkerCore::TickAttempt(Attempt& attempt, absl::Duration now) {
  const TaskStart& task = attempt.task;
  if (attempt.state == Attempt::kKilling) return EndIfDead(attempt, now);
  if (now >= task.deadline_at - options_.deadline_margin) {
    const Ended late{AttemptEndReason::kDeadline, attempt.state == Attempt::kRunning
                                                      ? "still at work at the deadline; killed"
                                                      : "the deadline came before its start"};
    return End(attempt, attempt.last_fold_saved ? Outcome(attempt) : late, now);
  }
  if (now >= attempt.failure_at) return End(attempt, *attempt.failure, now);
  if (now >= attempt.drop_by) return End(attempt, Outcome(attempt), now);
  if (attempt.watchdog && attempt.state == Attempt::kRunning && now >= attempt.watchdog->due()) {
    return End(attempt,
               {AttemptEndReason::kHung,
                absl::StrCat(task.kind == TaskKind::kPrepare ? "trainprep did nothing for "
                                                             : "rank 0 said nothing for ",
                             absl::FormatDuration(attempt.watchdog->Allowed()))},
               now);
  }
  if (attempt.state == Attempt::kRunning && task.kind == TaskKind::kTrain && !attempt.reminded &&
      !attempt.last_fold_saved && !attempt.stop && now >= task.stop_at + options_.stop_grace) {
    attempt.reminded = true;
    SendStop(attempt, /*predict=*/true, StopReason::kTime);
  }
}

void WorkerCore::TickProcesses(absl::Duration now) {
  for (auto& [id, process] : processes_) {
    const absl::Duration age = now - process.since;
    switch (process.state) {
      case Process::kStarting:
      case Process::kReturning:
        if (shutdown_ && process.attempt == 0) Kill(id, process, now);
        if (age < options_.ready_timeout) break;
        if (Attempt* attempt = FindAttempt(process.attempt)) {
          End(*attempt,
              {AttemptEndReason::kRankDied,
               absl::StrCat(Who(process), " was not ready within ",
                            absl::FormatDuration(options_.ready_timeout))},
              now);
        }
        Kill(id, process, now);
        break;
      case Process::kIdle:
        if (shutdown_ && process.attempt == 0) SendExit(id, process, now);
        break;
      case Process::kWorking:
        break;
      case Process::kDying:
        if (process.told_exit && age >= kExitWait) Kill(id, process, now);
        break;
    }
    if (shutdown_ && attempts_.empty() && now >= shutdown_by_) Kill(id, process, now);
  }
}

int WorkerCore::BusySlots() const {
  std::set<int> busy;
  for (const auto& [id, attempt] : attempts_) {
    if (attempt.state == Attempt::kWaiting) continue;
    busy.insert(attempt.task.slots.begin(), attempt.task.slots.end());
  }
  return static_cast<int>(busy.size());
}

int WorkerCore::CountSpares(const Program& program, int gpu) const {
  return static_cast<int>(std::count_if(processes_.begin(), processes_.end(), [&](const auto& p) {
    const Process& process = p.second;
    return process.program == &program && process.attempt == 0 && process.slot == gpu &&
           process.state != Process::kDying;
  }));
}

void WorkerCore::KeepSpares(absl::Duration now) {
  spares_missing_ = false;
  if (shutdown_) return;
  for (const Program& program : kPrograms) {
    if (program.kept_warm && options_.warm_spares) KeepSparesOf(program, now);
  }
  for (auto& [id, process] : processes_) {
    const bool idle = process.state == Process::kIdle && process.attempt == 0;
    if (idle && !process.program->kept_warm) SendExit(id, process, now);
  }
}

void WorkerCore::KeepSparesOf(const Program& program, absl::Duration now) {
  // (which GPU, how many are missing). A busy GPU gets none: a spare's context
  // would take its memory.
  std::vector<std::pair<int, int>> wanted;
  if (IsCuda()) {
    std::set<int> busy;
    for (const auto& [id, a] : attempts_) busy.insert(a.task.slots.begin(), a.task.slots.end());
    for (int gpu = 0; gpu < static_cast<int>(slots_.size()); ++gpu) {
      if (busy.count(gpu) == 0) wanted.emplace_back(gpu, program.started_ahead ? 1 : 0);
    }
    // Ranks without a GPU are for predictions; none waits for the next.
    for (auto& [id, process] : processes_) {
      if (process.program == &program && process.slot < 0 && process.state == Process::kIdle &&
          process.attempt == 0) {
        SendExit(id, process, now);
      }
    }
  } else {
    const int slots = static_cast<int>(slots_.size());
    const int free = CountSpares(program, -1);
    int count = WantedSpares(slots, BusySlots(), std::numeric_limits<int64_t>::max());
    if (free < count) count = WantedSpares(slots, BusySlots(), available_bytes_());
    if (!program.started_ahead) count = 0;
    wanted.emplace_back(-1, count);
  }
  for (const auto& [gpu, count] : wanted) {
    int missing = count - CountSpares(program, gpu);
    if (missing > 0 && now < next_spare_at_) spares_missing_ = true;
    for (; missing > 0 && now >= next_spare_at_; --missing) Spawn(program, gpu, now);
    // More than a gang that returned and the reserve that filled in for it.
    const int most = gpu >= 0 ? 1 : static_cast<int>(slots_.size()) + 1;
    for (auto& [id, process] : processes_) {
      if (CountSpares(program, gpu) <= most) break;
      if (process.program == &program && process.state == Process::kIdle && process.attempt == 0 &&
          process.slot == gpu) {
        SendExit(id, process, now);
      }
    }
  }
}

absl::Duration WorkerCore::AttemptWakeup(const Attempt& attempt) const {
  if (attempt.state == Attempt::kKilling) return attempt.killed_at + options_.kill_wait;
  absl::Duration next = std::min(
      {attempt.task.deadline_at - options_.deadline_margin, attempt.failure_at, attempt.drop_by});
  if (attempt.state != Attempt::kRunning) return next;
  if (attempt.watchdog) next = std::min(next, attempt.watchdog->due());
  if (!attempt.reminded && !attempt.last_fold_saved && !attempt.stop) {
    next = std::min(next, attempt.task.stop_at + options_.stop_grace);
  }
  return next;
}

absl::Duration WorkerCore::NextWakeup() const {
  absl::Duration next = publish_schedule_.NextWakeup();
  for (const auto& [id, attempt] : attempts_) next = std::min(next, AttemptWakeup(attempt));
  for (const auto& [id, process] : processes_) {
    if (process.state == Process::kStarting || process.state == Process::kReturning) {
      next = std::min(next, process.since + options_.ready_timeout);
    } else if (process.state == Process::kDying && process.told_exit && !process.killed) {
      next = std::min(next, process.since + kExitWait);
    }
  }
  if (spares_missing_) next = std::min(next, next_spare_at_);
  const bool unkilled = std::any_of(processes_.begin(), processes_.end(),
                                    [](const auto& p) { return !p.second.killed; });
  if (shutdown_ && attempts_.empty() && unkilled) next = std::min(next, shutdown_by_);
  return next;
}

std::vector<Action> WorkerCore::TakeActions() { return std::exchange(actions_, {}); }

std::vector<int64_t> WorkerCore::RunningAttempts() const {
  std::vector<int64_t> running;
  for (const auto& [id, attempt] : attempts_) running.push_back(id);
  return running;
}

std::vector<int64_t> WorkerCore::Training() const {
  std::vector<int64_t> training;
  for (const auto& [id, attempt] : attempts_) {
    const bool runs = attempt.state == Attempt::kRunning;
    if (runs && attempt.task.kind == TaskKind::kTrain) training.push_back(id);
  }
  return training;
}

std::vector<ProcessId> WorkerCore::ProcessesOf(int64_t attempt) const {
  const auto found = attempts_.find(attempt);
  return found == attempts_.end() ? std::vector<ProcessId>{} : found->second.processes;
}

const TaskStart* WorkerCore::TaskOf(int64_t attempt) const {
  const auto found = attempts_.find(attempt);
  return found == attempts_.end() ? nullptr : &found->second.task;
}

int WorkerCore::WarmRanks() const {
  return static_cast<int>(std::count_if(processes_.begin(), processes_.end(), [](const auto& p) {
    return p.second.program->kept_warm && p.second.state == Process::kIdle && p.second.attempt == 0;
  }));
}

}  // namespace traind::worker
