// The shell around the core, as server/loop is: an inbox, one turn at a time, a
// commit, then what follows from it. Dies at any of these points, and starts again
// from the store.
// Threads: confined to one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/control/control_core.h"
#include "server/store/memory_store.h"
#include "tests/simulation/sim_gateway.h"
#include "tests/simulation/sim_worker.h"
#include "tests/simulation/world.h"

namespace traind::simulation {

class SimCoordinator {
 public:
  using Answer = std::function<void(const Reply&)>;

  SimCoordinator(World* world, Disk* disk, const Faults* faults, CoreOptions options);

  void AddWorker(SimWorker* worker) { workers_[worker->id()] = worker; }

  void Start();
  void Kill();
  bool up() const { return core_ != nullptr; }
  absl::Time Now() const;  // its own clock

  // A stream is opened by a Worker; 0: refused, traind is down.
  uint64_t Open(const std::string& worker);
  // A message of a stream arrives.
  void Deliver(uint64_t session, Event event);
  // A Worker says on a stream that it has published by itself.
  void AdoptPrediction(uint64_t session, const std::string& job);
  // traind notices that a stream is gone.
  void StreamLost(const std::string& worker, uint64_t session);
  // session: the newest stream when its process died.
  void WorkerProcessDied(const std::string& worker, uint64_t session);
  uint64_t newest_session() const { return next_session_ - 1; }

  void Call(std::function<Event(CallId)> request, Answer answer);
  // Rows for an Attempt that serves there; returns the number of the question.
  uint64_t AskRows(const std::string& worker, int64_t attempt, SimGateway::Done done);
  SimGateway& gateway() { return gateway_; }
  void Shutdown() { Post(ShutdownRequested{}); }

  MemoryStore& store() { return store_; }
  int64_t turns() const { return turns_; }
  // Of this process; another one after it was killed.
  int starts() const { return starts_; }

 private:
  struct Stream {
    std::string worker;
    absl::Time last_delivery = absl::InfinitePast();
  };

  void Post(Event event);
  void Pump();
  void RunTurn();
  void Commit(std::shared_ptr<Turn> turn);
  void Act(Turn& turn);
  void Recover(const Turn& turn, const absl::Status& status);
  void Load();
  void Publish(PublishCommand command);
  void EndPublishing(const std::string& id);
  void Reuse(ReuseCommand command);
  bool HasStream(const std::string& worker) const;
  void ToWorker(const std::string& worker, std::function<void(SimWorker&, uint64_t)> deliver);
  void ArmWakeup(absl::Time at);
  // model: the fold, trial and seed.
  template <class T>
  static int PlaceOf(const Job& job, const T& model);
  void RecordCommit(const Turn& turn);
  void RecordPlacements(const Turn& turn);
  void RecordUnmatched(const Job& job);
  void RecordPreempted(const StopCommand& stop);
  void Tell(const Reply& reply);

  World* world_;
  Disk* disk_;
  const Faults* faults_;
  const CoreOptions options_;
  MemoryStore store_;
  std::map<std::string, SimWorker*> workers_;

  std::unique_ptr<ControlCore> core_;
  uint64_t life_ = 0;  // grows with every start and end
  int starts_ = 0;
  SimGateway gateway_;
  absl::Time anchor_wall_, anchor_;
  std::vector<Event> inbox_;
  bool busy_ = false;
  absl::Time wakeup_ = absl::InfiniteFuture();
  uint64_t next_session_ = 1;
  std::map<uint64_t, Stream> streams_;
  CallId next_call_ = 1;
  std::map<CallId, Answer> calls_;
  int64_t turns_ = 0;
  int64_t placed_ = 0;                       // the last Attempt that was recorded
  std::map<std::string, std::string> told_;  // of Jobs that no Worker suits
};

}  // namespace traind::simulation
