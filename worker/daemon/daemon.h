// The Worker process: core, processes, traind's stream and the clock on one loop.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/time/time.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/daemon/child.h"
#include "worker/daemon/coordinator_client.h"
#include "worker/daemon/device_sampler.h"
#include "worker/daemon/file_carrier.h"
#include "worker/daemon/memory_guard.h"
#include "worker/daemon/outbox.h"
#include "worker/daemon/publish_thread.h"
#include "worker/daemon/resource_watch.h"
#include "worker/daemon/waiting_facts.h"
#include "worker/daemon/worker_core.h"

namespace traind::worker {

struct DaemonOptions {
  std::string state_dir;    // absolute
  std::string coordinator;  // several addresses have commas in between
  std::string tls_dir;      // empty: the connection is not encrypted
  std::string token_file;   // empty: no token is sent
  // At which the Ranks of other Workers reach those of this one; empty: the address from which this
  // machine reaches traind.
  std::string address;
  std::string lent_as;  // as the engine that lent this machine calls it; empty: nobody did
  std::map<std::string, std::string> labels;  // for Jobs that ask for them
  int port = 0;  // at which gangs with rank 0 here meet, where it is free; 0: any
  bool standalone = false;
  std::map<std::string, std::string> programs;  // paths by the names of programs.h
  // It ends so long after its last work; standalone, only when no traind is there.
  absl::Duration idle_exit = absl::InfiniteDuration();
  // It ends so long after its start, as when it is told to stop.
  absl::Duration lifetime = absl::InfiniteDuration();
  // How long processes may take to end after a SIGTERM.
  absl::Duration stop_grace = absl::Seconds(5);
  // Reads as ready when the process is to stop (a signalfd or an eventfd); not owned.
  int stop_fd = -1;
  // The most bytes in a state folder of its own besides the files of running Jobs.
  int64_t own_folder_bytes = int64_t{20} << 30;
  // Processes that the kernel has ended so far because memory ran out.
  std::function<int64_t()> out_of_memory_kills = [] { return OutOfMemoryKills(); };
  DriverVersions driver;   // of the GPUs
  WorkerCoreOptions core;  // state_dir is filled in
};

// Threads: Run() is the event loop and owns all state; it starts the processes, so
// its thread must live as long as they (PDEATHSIG).
class Daemon {
 public:
  // Errors: those of CoordinatorClient::Connect.
  static absl::StatusOr<std::unique_ptr<Daemon>> Create(DaemonOptions options,
                                                        std::vector<Slot> slots,
                                                        PublishFunction publish);
  ~Daemon();

  // Until it is told to stop, or has been idle and alone for long enough.
  absl::Status Run();

  const std::string& worker_id() const { return worker_id_; }

 private:
  Daemon(DaemonOptions options, std::vector<Slot> slots, PublishFunction publish,
         std::unique_ptr<CoordinatorClient> client, std::unique_ptr<FileCarrier> carrier);

  // One turn: waits for news or a due time, takes all news, does what follows.
  absl::Status Turn();
  absl::Status WaitForNews();
  void HandleCoordinatorEvents(absl::Duration now);
  void HandleMessage(const v1::CoordinatorMessage& message, absl::Duration now);
  void HandlePublished(absl::Duration now);
  // Tells the core which of the watched processes got on.
  void LookAtWork(absl::Duration now);
  void ReadResources(absl::Duration now);
  void ReadResourcesOf(int64_t attempt, absl::Duration now);
  void NoteResources(ReportAction& fact, absl::Duration now);
  void AddDeviceFigures(v1::Heartbeat& heartbeat) const;
  std::vector<Slot> SlotsOf(int64_t attempt) const;
  // A line of the Worker's own in the log of rank 0.
  void WriteTaskLog(int64_t attempt, LogLevel level, const std::string& line);
  void ReadChildren(absl::Duration now);
  // From a closed channel to the death that explains it.
  static constexpr absl::Duration kExitAfterClose = absl::Milliseconds(500);
  struct Running {
    std::unique_ptr<Child> child;
    const Program* program = nullptr;
    // When its channel was found closed; it should be dead at once then.
    absl::Duration closed_at = absl::InfiniteDuration();
    bool given_up = false;
    int64_t work = 0;  // when it last counted as a sign of life (process_work.h)
  };
  // The messages that a process has sent so far.
  void ReadLines(ProcessId id, Running& running, absl::Duration now);
  void HandleLine(ProcessId id, Child& child, const std::string& line, absl::Duration now);
  void Act(absl::Duration now);
  void Perform(Action& action, absl::Duration now);
  void Spawn(const SpawnAction& spawn, absl::Duration now);
  void SendToChild(const SendAction& send, absl::Duration now);
  void LimitMemory(ProcessId process);
  void Report(v1::WorkerMessage message, bool is_fact, absl::Duration now);
  // An Attempt's fact, which waits for its files where the folder is the Worker's own.
  void ReportFact(ReportAction fact, absl::Duration now);
  void TellFacts(const std::vector<ReportAction>& facts, absl::Duration now);
  void HandleTransfers(absl::Duration now);
  void HandleComparison(const FileCarrier::Result& result);
  // Attempts that run, or have something to tell yet.
  std::vector<int64_t> RunningAttempts() const;
  void SendHello();
  std::string Address() const;
  void Heartbeat(absl::Duration now);
  void CheckStream(absl::Duration now);
  // The next moment at which something is due without news.
  absl::Duration NextWakeup(absl::Duration now) const;
  bool IdleForTooLong(absl::Duration now);
  // When it leaves by itself; not standalone and without traind.
  absl::Duration LeaveAt() const;
  // Why it leaves now; empty: it stays.
  std::string WhyLeave(absl::Duration now);
  void Leave(absl::Duration grace, absl::Duration now);
  absl::Status FlushAndEnd();

  const DaemonOptions options_;
  const std::vector<Slot> slots_;
  const std::string worker_id_;
  const std::string boot_id_;
  const Clock& clock_ = SystemClock();
  const int timer_fd_;
  WorkerCore core_;
  Outbox outbox_;
  std::unique_ptr<CoordinatorClient> client_;
  // Null: the state folder is known to be traind's.
  const std::unique_ptr<FileCarrier> carrier_;
  bool compared_ = false;    // whether the folder is traind's is known
  bool own_folder_ = false;  // it is not
  WaitingFacts waiting_;
  PublishThread publisher_;
  std::map<ProcessId, Running> children_;
  MemoryGuard memory_;
  bool more_lines_ = false;      // were left unread for the next turn
  absl::Duration look_at_work_;  // not before
  ResourceWatch resources_;
  std::unique_ptr<DeviceSampler> sampler_;  // null: the slots are no GPUs
  absl::Duration read_resources_;           // not before

  uint64_t stream_ = 0;  // the open one; 0: none
  absl::Duration opened_at_;
  bool connected_ = false;  // Welcome is here
  std::string refused_;     // why the last stream ended before that
  int64_t epoch_ = 0;       // of traind's archive, the highest that was heard
  absl::Duration lease_ = absl::Seconds(15);
  absl::Duration heartbeat_every_ = absl::Seconds(1);
  absl::Duration next_heartbeat_ = absl::InfiniteDuration();
  const absl::Duration started_at_;
  absl::Duration alone_since_;  // idle without traind; standalone
  absl::Duration idle_since_;
};

}  // namespace traind::worker
