// A Worker with its Ranks, as far as traind can tell: it takes commands, says facts
// until they are acknowledged, keeps deadlines by its own clock, and dies.
// Threads: confined to one.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/control/events.h"
#include "tests/simulation/world.h"

namespace traind::simulation {

class SimCoordinator;

// The truth about a Job, which traind has to find out.
struct JobTruth {
  std::string request;
  Spec spec;
  double read_s = 0.1;   // PREPARE until the table is there
  double floor_s = 0.1;  // and until the better floor is
  bool bad_data = false;
  double start_s = 0.1;  // a Rank's, before its first step
  double step_s = 0.01;
  int64_t steps = 50;  // per epoch
  double evaluate_s = 0.01;
  double predict_s = 0.05;
  double probe_error = 1;             // what the probe says, over the truth
  int early_stop = 0;                 // patience runs out after so many epochs; 0: never
  double saves = 0;                   // chance of predictions from a running fold, per epoch
  double skill = 1;                   // the score after many epochs
  std::vector<JobTruth> trials = {};  // of the trials above 0
};

// The faults that a seed may bring.
struct Faults {
  double rank_dies = 0;  // chances per Attempt
  double rank_hangs = 0;
  double diverges = 0;
  double damaged = 0;      // chance that a checkpoint cannot be read
  double worker_dies = 0;  // per 10 s
  double worker_returns = 1;
  double link_breaks = 0;       // per 10 s
  double half_open = 0;         // chance that traind does not see a break
  double partitions = 0;        // chance that a break lasts longer than a lease
  double coordinator_dies = 0;  // per 10 s
  double crash_in_turn = 0;     // per turn
  double disk_full = 0;         // per 10 s
  double wall_jumps = 0;        // per 10 s
  double duplicates = 0;        // facts sent twice
  bool heavy_tails = false;
  bool any() const {
    return rank_dies + rank_hangs + diverges + damaged + worker_dies + link_breaks +
               coordinator_dies + crash_in_turn + disk_full + wall_jumps + duplicates >
           0;
  }
};

class SimWorker {
 public:
  struct Options {
    std::string id;
    std::vector<Slot> slots;
    absl::Duration heartbeat = absl::Seconds(1);
    bool standalone = false;
    std::string address = {};  // empty: no gang spans it and others
  };
  SimWorker(World* world, Disk* disk, SimCoordinator* coordinator,
            const std::map<std::string, JobTruth>* truths, const Faults* faults, Options options);

  void StartProcess();
  void Kill();  // the process and all its Ranks
  // traind sees it at once, or only when it misses the heartbeats.
  void BreakLink(bool seen_by_traind, absl::Duration for_so_long);
  bool alive() const { return alive_; }
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
  // The coordinator is gone or has closed the stream.
  void StreamClosed(uint64_t session);

  // Facts that were never acknowledged though there was time.
  void RecordUnacknowledged();

 private:
  struct Rank;
  struct Kept {
    int64_t sequence;
    int64_t attempt;
    facts::Fact fact;
    absl::Time said_at;
  };

  void Connect();
  void Heartbeat(uint64_t session);
  std::vector<int64_t> Running() const;
  void Say(int64_t attempt, facts::Fact fact, bool keep = true);
  void Transmit(const Kept& fact);
  void Send(Event event);  // in order, over the stream
  // Unless the Rank is over by then, or (chain) was interrupted.
  void Schedule(Rank& rank, absl::Duration delay, void (SimWorker::*step)(Rank&),
                bool chain = true);

  // PREPARE.
  void Read(Rank& rank);
  void FitFloor(Rank& rank);
  void BetterFloor(Rank& rank);
  // TRAIN.
  void JoinGang(const StartCommand& command, const std::shared_ptr<Rank>& rank);
  void Gathered(Rank& rank);
  void LoseGang(Rank& rank);
  void LeaveGang(const Rank& rank, bool well);
  void DropPart(Rank& rank);
  void Begin(Rank& rank);
  void Probe(Rank& rank);
  void NextEpoch(Rank& rank);
  void AwaitEpoch(Rank& rank);
  void EndEpoch(Rank& rank);
  static double EpochsTold(const Rank& rank, double done);
  void Tick(Rank& rank);
  void ArmStop(Rank& rank);
  void TimeIsUp(Rank& rank);
  void StopTraining(Rank& rank);
  void Predict(Rank& rank);
  void Predicted(Rank& rank);
  void Dropped(Rank& rank);
  bool SaveCheckpoint(Rank& rank);
  static facts::FoldSaved Predictions(const Rank& rank, bool complete);
  void PublishAlone(Rank& rank, const Member& member);
  void AtDeadline(Rank& rank);
  void Hang(Rank& rank);
  void FoundHung(Rank& rank);
  void Die(Rank& rank);
  void End(Rank& rank, AttemptEndReason reason, const std::string& message);
  void RecordEnd(const Rank& rank);
  void RecordEpochs(const Rank& rank);

  World* world_;
  Disk* disk_;
  SimCoordinator* coordinator_;
  const std::map<std::string, JobTruth>* truths_;
  const Faults* faults_;
  const Options options_;
  bool alive_ = false;
  int boots_ = 0;
  uint64_t session_ = 0;  // 0: no stream
  absl::Time last_delivery_ = absl::InfinitePast();
  int64_t next_sequence_ = 1;
  std::deque<Kept> kept_;
  std::map<int64_t, std::shared_ptr<Rank>> ranks_;
  std::set<std::string> published_alone_;
};

}  // namespace traind::simulation
