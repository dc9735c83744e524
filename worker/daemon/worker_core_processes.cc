// WorkerCore: what processes say and how they end.
#include <absl/strings/str_cat.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "common/base/bytes_text.h"
#include "worker/daemon/spares.h"
#include "worker/daemon/worker_core.h"

namespace traind::worker {

namespace rp = rank_protocol;

namespace {

constexpr size_t kEndedKept = 4096;

}  // namespace

std::string ExitText(const ExitStatus& status) {
  std::string text;
  switch (status.kind) {
    case ExitStatus::kExited:
      text = absl::StrCat("exit status ", status.code);
      break;
    case ExitStatus::kSignalled:
      text = absl::StrCat("signal ", status.code, " (", strsignal(status.code), ")");
      break;
    case ExitStatus::kNotStarted:
      text = absl::StrCat("cannot start: ", strerror(status.code));
      break;
  }
  if (status.memory > 0) {
    absl::StrAppend(&text, ", because memory ran out (", BytesText(status.memory),
                    " for all processes here)");
  }
  if (!status.last_line.empty()) absl::StrAppend(&text, "; last said: ", status.last_line);
  return text;
}

std::string WorkerCore::Who(const Process& process) const {
  if (process.program->one_task) return process.program->name;
  return absl::StrCat("rank ", process.rank);
}

void WorkerCore::Message(ProcessId id, const rp::FromProcess& message, absl::Duration now) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  Process& process = found->second;
  if (std::holds_alternative<rp::Ready>(message)) return HandleReady(process, now);
  Attempt* attempt = FindAttempt(process.attempt);
  if (attempt == nullptr || attempt->end) return;      // late words of one that is ending
  if (std::holds_alternative<rp::LogText>(message)) {  // the shell writes it down
    if (process.rank == 0 && attempt->watchdog) attempt->watchdog->Heard(message, now);
    return;
  }
  const int64_t about = std::visit(
      [](const auto& m) -> int64_t {
        if constexpr (std::is_same_v<std::decay_t<decltype(m)>, rp::Ready> ||
                      std::is_same_v<std::decay_t<decltype(m)>, rp::LogText>) {
          return 0;
        } else {
          return m.attempt;
        }
      },
      message);
  if (about != process.attempt) {
    return Do(
        LogAction{LogAction::kWarning, absl::StrCat(Who(process), " of attempt ", process.attempt,
                                                    " speaks of attempt ", about, "; ignored")});
  }
  if (process.rank == 0 && attempt->watchdog) attempt->watchdog->Heard(message, now);
  if (std::holds_alternative<rp::Finished>(message)) {
    HandleFinished(id, process, *attempt, now);
  } else if (const auto* failed = std::get_if<rp::Failed>(&message)) {
    HandleFailed(*failed, process, *attempt, now);
  } else {
    HandleFact(message, process, *attempt, now);
  }
}

std::vector<ProcessId> WorkerCore::Watched() const {
  std::vector<ProcessId> watched;
  for (const auto& [id, attempt] : attempts_) {
    if (attempt.state != Attempt::kRunning || !attempt.watchdog) continue;
    if (!attempt.watchdog->counts_work()) continue;
    for (const ProcessId process : attempt.processes) {
      if (process != 0) watched.push_back(process);
    }
  }
  return watched;
}

void WorkerCore::Worked(ProcessId id, absl::Duration now) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  Attempt* attempt = FindAttempt(found->second.attempt);
  if (attempt == nullptr || !attempt->watchdog || !attempt->watchdog->counts_work()) return;
  attempt->watchdog->Worked(found->second.rank == 0, now);
}

void WorkerCore::HandleReady(Process& process, absl::Duration now) {
  if (process.state != Process::kStarting && process.state != Process::kReturning) return;
  process.state = Process::kIdle;
  process.since = now;
  idle_deaths_ = 0;
  if (Attempt* attempt = FindAttempt(process.attempt)) SendTasksIfGathered(*attempt, now);
}

void WorkerCore::HandleFinished(ProcessId id, Process& process, Attempt& attempt,
                                absl::Duration now) {
  const bool one_task = process.program->one_task;
  process.attempt = 0;
  process.state = one_task ? Process::kDying : Process::kReturning;
  process.told_exit = one_task;  // it ends by itself
  process.since = now;
  if (!one_task) Do(LogFileAction{id, ""});
  std::replace(attempt.processes.begin(), attempt.processes.end(), id, ProcessId{0});
  if (++attempt.finished < attempt.processes.size()) return;
  const Ended outcome = Outcome(attempt);
  ReportEnded(attempt.task.attempt, outcome);
  Launch(now);
}

void WorkerCore::HandleFailed(const rp::Failed& failed, const Process& process, Attempt& attempt,
                              absl::Duration now) {
  const bool gang = attempt.task.world_size > 1;
  Ended why{failed.reason,
            gang ? absl::StrCat(Who(process), ": ", failed.message) : failed.message};
  const bool echo = failed.reason == AttemptEndReason::kCollectiveTimeout ||
                    failed.reason == AttemptEndReason::kInternal;
  if (!gang || !echo) return End(attempt, std::move(why), now);
  if (attempt.failure) return;
  attempt.failure = std::move(why);
  attempt.failure_at = now + options_.blame_wait;
}

void WorkerCore::HandleFact(const rp::FromProcess& message, const Process& process,
                            Attempt& attempt, absl::Duration now) {
  if (process.rank != 0) return;  // the others would repeat it
  const int64_t id = attempt.task.attempt;
  const std::string& job = attempt.task.job;
  std::visit(
      [&](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<M, rp::Predicted>) {
          Do(ReportPublishedAction{job, m.number});
        } else if constexpr (std::is_same_v<M, rp::Answered>) {
          if (!m.more) attempt.questions.erase(m.request);
          Do(AnswerAction{m});
        } else if constexpr (std::is_same_v<M, rp::FoldSaved>) {
          if (m.last) {
            attempt.last_fold_saved = true;
            attempt.stopped_by = m.stopped_by;
          }
          publish_schedule_.FoldSaved(attempt.task, m, now);
          Do(ReportAction{id, m});
        } else if constexpr (std::is_constructible_v<Fact, const M&>) {
          if constexpr (std::is_same_v<M, rp::TableReady>) publish_schedule_.TableRead(job, m, now);
          if constexpr (std::is_same_v<M, rp::FloorReady>) {
            attempt.floor_saved = true;
            publish_schedule_.FloorSaved(job, now);
          }
          Do(ReportAction{id, m});
          if constexpr (std::is_same_v<M, rp::FloorReady>) Launch(now);
        }
      },
      message);
}

Ended WorkerCore::Outcome(const Attempt& attempt) const {
  const std::string& why = attempt.stop_why;
  const StopCause stopped_by = attempt.stopped_by;
  if (shutdown_) return {AttemptEndReason::kShutdown, "its worker was told to stop"};
  if (attempt.stop == StopMode::kDrop) {
    switch (attempt.stop_reason) {
      case StopReason::kUserCancelled:
        return {AttemptEndReason::kCancelledByUser, why};
      case StopReason::kPreempted:
        return {AttemptEndReason::kPreempted, why};
      default:
        return {AttemptEndReason::kShutdown, why};
    }
  }
  if (stopped_by == StopCause::kEpochs || stopped_by == StopCause::kPatience ||
      attempt.task.kind == TaskKind::kPrepare || (UsesModels(attempt.task.kind) && !attempt.stop)) {
    return {AttemptEndReason::kCompleted, ""};
  }
  if (stopped_by == StopCause::kTime) return {AttemptEndReason::kStoppedInTime, why};
  if (stopped_by == StopCause::kUser || attempt.stop) {
    const bool by_user = CauseOf(attempt.stop_reason) == StopCause::kUser;
    return {by_user ? AttemptEndReason::kFinishedByUser : AttemptEndReason::kStoppedInTime, why};
  }
  return {AttemptEndReason::kCompleted, ""};
}

// ---- the end ----------------------------------------------------------------

void WorkerCore::End(Attempt& attempt, Ended why, absl::Duration now) {
  if (attempt.end) return;
  attempt.end = std::move(why);
  const bool at_work = attempt.state == Attempt::kRunning;
  attempt.state = Attempt::kKilling;
  attempt.killed_at = now;
  for (ProcessId& id : attempt.processes) {
    const auto found = processes_.find(id);
    if (found == processes_.end()) continue;
    if (at_work) {
      Kill(id, found->second, now);
    } else {  // a spare again
      found->second.attempt = 0;
      found->second.rank = 0;
      Do(LogFileAction{id, ""});
      id = 0;
    }
  }
  EndIfDead(attempt, now);
}

void WorkerCore::EndIfDead(Attempt& attempt, absl::Duration now) {
  const bool dead = std::none_of(attempt.processes.begin(), attempt.processes.end(),
                                 [&](ProcessId id) { return processes_.count(id) > 0; });
  if (!dead && now < attempt.killed_at + options_.kill_wait) return;
  for (const ProcessId id : attempt.processes) {
    if (const auto found = processes_.find(id); found != processes_.end()) {
      found->second.attempt = 0;
    }
  }
  const Ended why = *attempt.end;
  ReportEnded(attempt.task.attempt, why);
}

void WorkerCore::ReportEnded(int64_t attempt, Ended why) {
  if (const auto found = attempts_.find(attempt); found != attempts_.end()) {
    for (const uint64_t request : found->second.questions) {
      Refuse(attempt, request, absl::StatusCode::kAborted, "the rows were lost with their Rank");
    }
    attempts_.erase(found);
  }
  ended_.push_back(attempt);
  if (ended_.size() > kEndedKept) ended_.pop_front();
  Do(ReportAction{attempt, std::move(why)});
}

void WorkerCore::SendStop(Attempt& attempt, bool predict, StopReason reason) {
  for (const ProcessId id : attempt.processes) {
    if (id != 0) Do(SendAction{id, rp::Stop{attempt.task.attempt, predict, reason}});
  }
}

void WorkerCore::Kill(ProcessId id, Process& process, absl::Duration now) {
  if (process.killed) return;
  process.killed = true;
  process.state = Process::kDying;
  process.since = now;
  Do(KillAction{id});
}

void WorkerCore::SendExit(ProcessId id, Process& process, absl::Duration now) {
  process.told_exit = true;
  process.state = Process::kDying;
  process.since = now;
  Do(SendAction{id, rp::Exit{}});
}

void WorkerCore::Broken(ProcessId id, const std::string& why, absl::Duration now) {
  const auto found = processes_.find(id);
  // One that was told to end, or has, closes its channel.
  if (found == processes_.end() || found->second.state == Process::kDying) return;
  Process& process = found->second;
  if (Attempt* attempt = FindAttempt(process.attempt)) {
    End(*attempt,
        {AttemptEndReason::kRankDied, absl::StrCat(Who(process), " cannot be talked to: ", why)},
        now);
  }
  Kill(id, process, now);
}

void WorkerCore::Exited(ProcessId id, const ExitStatus& status, absl::Duration now) {
  const auto found = processes_.find(id);
  if (found == processes_.end()) return;
  const Process process = found->second;
  processes_.erase(found);
  const bool ready_once = process.state != Process::kStarting;
  if (process.state != Process::kDying && (process.attempt == 0 || !ready_once)) {
    next_spare_at_ = std::max(next_spare_at_, now + SpareBackoff(++idle_deaths_));
    Do(LogAction{LogAction::kWarning, absl::StrCat("an idle rank died: ", ExitText(status))});
  }
  Attempt* attempt = FindAttempt(process.attempt);
  if (attempt == nullptr) return;
  if (attempt->end) {
    EndIfDead(*attempt, now);
  } else {
    // That of a gang which died takes the blame for what the others then said.
    const AttemptEndReason reason =
        status.memory > 0 ? AttemptEndReason::kOutOfMemory : AttemptEndReason::kRankDied;
    End(*attempt, {reason, absl::StrCat(Who(process), " died: ", ExitText(status))}, now);
  }
  Launch(now);
}

void WorkerCore::Published(const std::string& job,
                           const absl::StatusOr<PublishedPrediction>& result, absl::Duration now) {
  const bool over = absl::IsFailedPrecondition(result.status());
  publish_schedule_.Published(job, result.ok() || over, now);
  if (over) {
    Do(LogAction{LogAction::kInfo, std::string(result.status().message())});
  } else if (!result.ok()) {
    Do(LogAction{LogAction::kError,
                 absl::StrCat("cannot publish for job ", job, ": ", result.status().ToString())});
  } else if (result->changed && result->number > 0) {
    Do(LogAction{LogAction::kInfo, absl::StrCat("published prediction ", result->number, " of job ",
                                                job, " while traind is away")});
    Do(ReportPublishedAction{job, result->number});
  }
}

}  // namespace traind::worker
