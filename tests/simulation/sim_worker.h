// The shell around the Worker's core, as worker/daemon/daemon.h is: its processes, traind's stream,
// the facts until they are acknowledged, the publisher and the clock, all simulated.
// Threads: confined to one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "server/control/events.h"
#include "tests/simulation/sim_disk.h"
#include "tests/simulation/truth.h"
#include "tests/simulation/world.h"
#include "worker/daemon/worker_core.h"

namespace traind::simulation {

class SimCoordinator;

class SimWorker {
 public:
  struct Options {
    std::string id;
    std::vector<Slot> slots;
    absl::Duration heartbeat = absl::Seconds(1);
    absl::Duration lease = absl::Seconds(15);
    bool standalone = false;
    std::string address = {};  // empty: no gang spans it and others
    std::set<std::string> labels = {};
  };
  SimWorker(World* world, Disk* disk, SimCoordinator* coordinator,
            const std::map<std::string, JobTruth>* truths, const Faults* faults, Options options);

  void StartProcess();
  void Kill();  // the process and all that work for it
  // traind sees it at once, or only when it misses the heartbeats.
  void BreakLink(bool seen_by_traind, absl::Duration for_so_long);
  bool alive() const { return core_ != nullptr; }
  const std::string& id() const { return options_.id; }

  // From traind, delivered.
  void Receive(uint64_t session, const StartCommand& command, absl::Duration remaining,
               absl::Duration stop_in);
  void Receive(uint64_t session, const StopCommand& command);
  void Receive(uint64_t session, const MeetCommand& command);
  void Receive(uint64_t session, const ReplanCommand& command, absl::Duration remaining,
               absl::Duration stop_in);
  void Receive(uint64_t session, const AckCommand& command);
  void Receive(uint64_t session, const ShutdownCommand& command);
  void Receive(uint64_t session, const rank_protocol::Rows& rows);
  // The coordinator is gone or has closed the stream.
  void StreamClosed(uint64_t session);

  // Facts that were never acknowledged though there was time.
  void RecordUnacknowledged();

 private:
  struct Kept {
    int64_t sequence;
    std::variant<worker::ReportAction, worker::ReportPublishedAction> what;
    absl::Time said_at;
    absl::Duration since;  // that it waits on this stream
  };
  // An Attempt's processes here that have been told to train or to prepare.
  struct Part {
    bool leads = false;
    bool trains = false;
    std::set<worker::ProcessId> working;
    worker::ProcessId first = 0;  // of its ranks here
    double epochs = 0;            // that it had when it was last at work
    bool stepped = false;         // whether it had made a step
  };

  // Of the monotonic clock.
  absl::Duration Now() const { return world_->now() - absl::UnixEpoch(); }
  bool Hears(uint64_t session) const { return alive() && session == session_ && connected_; }
  void Connect();
  void Welcomed(uint64_t session);
  void CloseStream();
  absl::Duration Waiting() const;
  void Say(decltype(Kept::what) what);
  void Transmit(const Kept& fact);
  void Send(Event event);  // in order, over the stream
  void Deliver(std::function<void()> message);

  // One turn of the loop follows from what has just come.
  void Poke();
  void Turn();
  void Arm();
  absl::Duration NextWakeup() const;
  void LookAtWork();
  void Heartbeat();
  void CheckStream();
  void LeaveIfDone();
  void Act();
  void Perform(worker::Action& action);
  void Spawn(const worker::SpawnAction& spawn);
  void SendToProcess(const worker::SendAction& send);
  void SendAnswer(const rank_protocol::Answered& answer);
  void RecordRows(const char* kind, int64_t attempt, uint64_t request);
  void Publish(PublishRequest request);
  void HeardFrom(worker::ProcessId process, const rank_protocol::FromProcess& message);
  void RecordSaved(const rank_protocol::FromProcess& message);
  void Exited(worker::ProcessId process, const worker::ExitStatus& status);
  void StopsWorking(worker::ProcessId process);
  void RecordStart(int64_t attempt, const Part& part, const std::string& resume, int batch);
  void RecordEnd(int64_t attempt, const Part& part);

  World* world_;
  Disk* disk_;
  SimCoordinator* coordinator_;
  const std::map<std::string, JobTruth>* truths_;
  const Faults* faults_;
  const Options options_;
  int boots_ = 0;

  // Of this process.
  std::unique_ptr<worker::WorkerCore> core_;  // null: there is none
  std::map<worker::ProcessId, std::shared_ptr<SimProcess>> processes_;
  std::map<int64_t, Part> parts_;  // by Attempt
  int64_t next_sequence_ = 1;
  std::deque<Kept> kept_;
  bool poked_ = false;
  absl::Duration armed_ = absl::InfiniteDuration();
  absl::Duration last_turn_;
  int spins_ = 0;  // turns at one moment
  absl::Duration look_at_work_, next_heartbeat_;
  std::optional<absl::Duration> leave_by_;

  uint64_t session_ = 0;  // 0: no stream
  bool connected_ = false;
  absl::Time last_delivery_ = absl::InfinitePast();
};

}  // namespace traind::simulation
