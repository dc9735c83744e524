// The Worker's decisions: what it runs, what it ends and what it reports, as a
// function of what it is told and the time. No I/O, no threads, no clock.
//
// Way of a TRAIN Attempt:
//
//   Start -> kWaiting --(slots free)--> kGathering --(every Rank Ready, Meet)--> kRunning
//              |                            |                                |
//              |                            | a Rank dies, fails, hangs; deadline; ABORT
//              |                            v                                v
//              +--> Ended               kKilling --(all are dead)--> Ended   |
//                                                                            |
//                                    every Rank Finished: Ended <------------+
//
// Where its gang spans Workers, traind says Meet when the Ranks of all of them are ready, so that
// none waits for the others in a library. Where the state folder is the Worker's own, an Attempt
// also waits until its files are there. A PREPARE Attempt waits for its place in the pool instead
// of slots, a PREDICT or SERVE one for its place among their Ranks, which are on the CPU and take
// no slot either. Ended is the last fact of an Attempt. The loss of traind or of a Lease ends
// nothing.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/time/time.h>

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "worker/daemon/devices.h"
#include "worker/daemon/programs.h"
#include "worker/daemon/publish_schedule.h"
#include "worker/daemon/task.h"
#include "worker/daemon/watchdog.h"

namespace traind::worker {

struct WorkerCoreOptions {
  std::string state_dir;  // absolute; ranks and prepares get it
  int cores = 1;
  // Attempts are killed so long before their Job's deadline, to be dead at it.
  absl::Duration deadline_margin = absl::Milliseconds(150);
  // A Rank that has not reacted to its stop_ms by then is told again.
  absl::Duration stop_grace = absl::Seconds(2);
  // For a checkpoint after a DROP.
  absl::Duration drop_grace = absl::Seconds(10);
  // A process must be ready, or ready again after a task, by then.
  absl::Duration ready_timeout = absl::Seconds(60);
  // See Watchdog.
  absl::Duration min_silence = absl::Seconds(30);
  absl::Duration start_silence = absl::Seconds(60);
  // A PREPARE waits idly for programs that try the user's model, at most two minutes.
  absl::Duration prepare_silence = absl::Minutes(3);
  // A PREPARE that has not got on for so long, as in a read of a network file system that stalls,
  // no longer keeps others from starting.
  absl::Duration prepare_stall = absl::Seconds(10);
  // A Rank's failure may be the echo of another's death; how long to wait for the
  // news of that.
  absl::Duration blame_wait = absl::Milliseconds(200);
  // A killed process that does not die is not waited for.
  absl::Duration kill_wait = absl::Seconds(1);
  bool warm_spares = true;
  // How long the Ranks of a gang wait for each other, when they join and in each exchange, where
  // the spec names no time.
  absl::Duration exchange_timeout = absl::Seconds(30);
  // How many threads of a Rank load its media; 0: the Rank finds it out.
  int loader_threads = 0;
  PublishSchedule::Options publish;
};

// Threads: confined to the event loop's. `now` is Clock::MonotonicNow() and never
// goes back. Every call may leave Actions to take.
class WorkerCore {
 public:
  // available_bytes: memory that is free for processes. free_port: a free TCP port,
  // 0: none.
  WorkerCore(WorkerCoreOptions options, std::vector<Slot> slots,
             std::function<int64_t()> available_bytes, std::function<int()> free_port);

  // Says that the state folder is not traind's. REQUIRES: called before the first Start.
  void KeepOwnFolder() { own_folder_ = true; }

  // ---- from traind
  void Start(TaskStart task, absl::Duration now);
  void Stop(int64_t attempt, StopMode mode, StopReason reason, const std::string& why,
            absl::Duration now);
  // epochs 0, row_share 0, stop_at never and no deadline_at: as before.
  void Replan(int64_t attempt, int epochs, double row_share, absl::Duration stop_at,
              std::optional<absl::Duration> deadline_at, bool plan_cut, absl::Duration now);
  // All parts of its gang are ready; rank 0 listens there.
  void Meet(int64_t attempt, const std::string& host, int port, absl::Duration now);
  // Rows for a serving Attempt; the answer is an AnswerAction.
  void Ask(rank_protocol::Rows rows);
  // These rows could not be sent to their process: they make too long a line.
  void TooLong(const rank_protocol::Rows& rows);
  // The folders below which the files of later tasks lie; none: anywhere.
  void SetDataRoots(std::vector<std::string> roots);
  // Welcome is here; or the stream has ended.
  void Connected(absl::Duration now);
  void Disconnected(absl::Duration now);
  // Everything is dropped with grace; done() tells when.
  void Shutdown(absl::Duration grace, absl::Duration now);

  // ---- from processes
  void Message(ProcessId process, const rank_protocol::FromProcess& message, absl::Duration now);
  // The processes whose work counts as a sign of life now.
  std::vector<ProcessId> Watched() const;
  // Folds that run.
  std::vector<int64_t> Training() const;
  // Those of the Attempt that still work, rank 0's first; 0 for a rank that has finished.
  std::vector<ProcessId> ProcessesOf(int64_t attempt) const;
  // Null: it is over.
  const TaskStart* TaskOf(int64_t attempt) const;
  // It got on since the last call.
  void Worked(ProcessId process, absl::Duration now);
  // Its channel is of no use any more; it is killed.
  void Broken(ProcessId process, const std::string& why, absl::Duration now);
  // It is dead, and all it said has been handed over.
  void Exited(ProcessId process, const ExitStatus& status, absl::Duration now);

  // ---- from the transfers: the end of a BringAction. spec_json: with the paths that the files
  // have here.
  void Brought(int64_t attempt, const absl::StatusOr<std::string>& spec_json, absl::Duration now);

  // ---- from the publisher
  void Published(const std::string& job, const absl::StatusOr<PublishedPrediction>& result,
                 absl::Duration now);

  // Does whatever is due. unacked: traind owes the Ack of a fact for some time.
  void Tick(absl::Duration now, bool unacked);
  absl::Duration NextWakeup() const;

  std::vector<Action> TakeActions();

  std::vector<int64_t> RunningAttempts() const;
  int WarmRanks() const;
  bool has_work() const { return !attempts_.empty() || publish_schedule_.busy(); }
  // Shutdown() was called: Tasks that come now are refused.
  bool leaving() const { return shutdown_; }
  // Shutdown() is through: no Attempt and no process is left, nothing is being published.
  bool done() const { return shutdown_ && processes_.empty() && !has_work(); }

 private:
  struct Process {
    const Program* program = nullptr;
    int slot = -1;  // the GPU that it sees
    enum State { kStarting, kIdle, kWorking, kReturning, kDying } state = kStarting;
    absl::Duration since;  // of the state
    int64_t attempt = 0;   // that it works for or is meant for; 0: none
    int rank = 0;
    bool killed = false;
    bool told_exit = false;
  };
  struct Attempt {
    TaskStart task;
    enum State { kWaiting, kGathering, kRunning, kKilling } state = kWaiting;
    bool bringing = false;             // kWaiting: its files are on their way
    int ready_port = 0;                // told to traind while it awaits Meet; 0: not yet
    std::vector<ProcessId> processes;  // of the ranks in order; those that finished leave
    size_t finished = 0;
    absl::Duration drop_by = absl::InfiniteDuration();  // the end of a DROP's grace
    // Why it ends, once that is settled.
    std::optional<Ended> end;
    // A failure that waits for the blame; then it is `end`.
    std::optional<Ended> failure;
    absl::Duration failure_at = absl::InfiniteDuration();
    absl::Duration killed_at;
    std::optional<StopMode> stop;
    StopReason stop_reason = StopReason::kNone;
    std::string stop_why;   // for people
    bool reminded = false;  // Stop was sent in place of stop_ms
    bool last_fold_saved = false;
    bool floor_saved = false;  // PREPARE: what follows is a better one, and can wait
    StopCause stopped_by = StopCause::kNone;
    std::optional<Watchdog> watchdog;
    std::set<uint64_t> questions;  // SERVE: requests that are not answered yet
  };

  // Start: refuses what cannot be.
  absl::Status Check(const TaskStart& task) const;
  bool IsCuda() const { return !slots_.empty() && slots_[0].device == "cuda"; }
  int CoresOfSlot() const;
  int IdleCores() const;
  // Puts waiting Attempts to work where that is possible now.
  void Launch(absl::Duration now);
  bool SlotsFree(const Attempt& attempt) const;
  bool Stalls(const Attempt& attempt, absl::Duration now) const;
  // Tells traind that a question has no answer.
  void Refuse(int64_t attempt, uint64_t request, absl::StatusCode code, std::string why);
  void LaunchPrepare(Attempt& attempt, absl::Duration now);
  void LaunchTrain(Attempt& attempt, absl::Duration now);
  void LaunchInference(std::vector<Attempt*> waiting, absl::Duration now);
  void EndWithoutPort(Attempt& attempt, absl::Duration now);
  ProcessId ClaimProcess(const Program& program, int gpu, absl::Duration now);
  int CountSpares(const Program& program, int gpu) const;
  void KeepSparesOf(const Program& program, absl::Duration now);
  ProcessId Spawn(const Program& program, int gpu, absl::Duration now);
  void SendTasksIfGathered(Attempt& attempt, absl::Duration now);
  rank_protocol::Train TrainMessage(const Attempt& attempt, int index, absl::Duration now) const;
  // Until the process has to end, for the Job's deadline; -1: no limit.
  int64_t RemainingOf(const TaskStart& task, absl::Duration now) const;
  rank_protocol::ToProcess TaskMessage(const Attempt& attempt, int index, absl::Duration now) const;

  void HandleReady(Process& process, absl::Duration now);
  void HandleFinished(ProcessId id, Process& process, Attempt& attempt, absl::Duration now);
  void HandleFailed(const rank_protocol::Failed& failed, const Process& process, Attempt& attempt,
                    absl::Duration now);
  void HandleFact(const rank_protocol::FromProcess& message, const Process& process,
                  Attempt& attempt, absl::Duration now);
  Ended Outcome(const Attempt& attempt) const;
  std::string Who(const Process& process) const;

  // Settles why and kills what still runs; Ended follows when that is dead.
  void End(Attempt& attempt, Ended why, absl::Duration now);
  void EndIfDead(Attempt& attempt, absl::Duration now);
  // The Attempt is gone afterwards.
  void ReportEnded(int64_t attempt, Ended why);
  void SendStop(Attempt& attempt, bool predict, StopReason reason);
  void Kill(ProcessId id, Process& process, absl::Duration now);
  void SendExit(ProcessId id, Process& process, absl::Duration now);

  void TickAttempt(Attempt& attempt, absl::Duration now);
  void TickProcesses(absl::Duration now);
  void KeepSpares(absl::Duration now);
  int BusySlots() const;
  absl::Duration AttemptWakeup(const Attempt& attempt) const;
  Attempt* FindAttempt(int64_t attempt);

  template <class A>
  void Do(A action) {
    actions_.push_back(std::move(action));
  }

  const WorkerCoreOptions options_;
  std::vector<std::string> data_roots_;
  const std::vector<Slot> slots_;
  const std::function<int64_t()> available_bytes_;
  const std::function<int()> free_port_;

  std::map<int64_t, Attempt> attempts_;
  std::map<ProcessId, Process> processes_;
  ProcessId next_process_ = 1;
  // Attempts that ended here, so that a repeated Start runs nothing twice.
  std::deque<int64_t> ended_;
  bool own_folder_ = false;
  PublishSchedule publish_schedule_;
  int idle_deaths_ = 0;           // in a row
  absl::Duration next_spare_at_;  // not before
  bool spares_missing_ = false;
  bool shutdown_ = false;
  absl::Duration shutdown_by_ = absl::InfiniteDuration();
  std::vector<Action> actions_;
};

}  // namespace traind::worker
