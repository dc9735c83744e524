#include "tests/simulation/sim_worker.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "tests/simulation/sim_coordinator.h"
#include "tests/simulation/sim_rank.h"

namespace traind::simulation {

SimWorker::SimWorker(World* world, Disk* disk, SimCoordinator* coordinator,
                     const std::map<std::string, JobTruth>* truths, const Faults* faults,
                     Options options)
    : world_(world),
      disk_(disk),
      coordinator_(coordinator),
      truths_(truths),
      faults_(faults),
      options_(std::move(options)) {}

// ---- the process and its stream ----

void SimWorker::StartProcess() {
  if (alive_) return;
  alive_ = true;
  ++boots_;
  next_sequence_ = 1;
  world_->Record("worker_start")["worker"] = options_.id;
  Connect();
}

void SimWorker::Kill() {
  if (!alive_) return;
  alive_ = false;
  world_->Record("worker_end")["worker"] = options_.id;
  for (auto& [attempt, rank] : ranks_) {
    rank->over = true;
    RecordEnd(*rank);
    LeaveGang(*rank, false);
  }
  ranks_.clear();
  kept_.clear();
  published_alone_.clear();
  BreakLink(true, absl::ZeroDuration());
  if (options_.standalone) {
    world_->After(absl::Milliseconds(world_->chance.Int(10, 300)),
                  [this] { coordinator_->WorkerProcessDied(options_.id); });
  }
}

void SimWorker::BreakLink(bool seen_by_traind, absl::Duration for_so_long) {
  if (session_ == 0) return;
  const uint64_t session = std::exchange(session_, 0);
  const absl::Duration notice =
      seen_by_traind ? absl::Milliseconds(world_->chance.Int(1, 5)) : absl::Seconds(60);
  world_->After(notice, [this, session] { coordinator_->StreamLost(options_.id, session); });
  if (alive_) {
    world_->After(for_so_long, [this] { Connect(); });
  }
}

void SimWorker::StreamClosed(uint64_t session) {
  if (session != session_) return;
  session_ = 0;
  if (alive_) {
    world_->After(absl::Milliseconds(world_->chance.Int(50, 800)), [this] { Connect(); });
  }
}

void SimWorker::Connect() {
  if (!alive_ || session_ != 0) return;
  session_ = coordinator_->Open(options_.id);
  if (session_ == 0) {
    world_->After(absl::Milliseconds(world_->chance.Int(50, 800)), [this] { Connect(); });
    return;
  }
  WorkerAttached hello;
  hello.worker = options_.id;
  hello.boot = absl::StrCat(options_.id, "-boot-", boots_);
  hello.session = session_;
  hello.hostname = options_.id;
  hello.slots = options_.slots;
  hello.running_attempts = Running();
  hello.address = options_.address;
  Send(std::move(hello));
  for (const Kept& fact : kept_) Transmit(fact);
  for (const std::string& job : published_alone_) {
    const auto standing = disk_->Standing(job);
    if (standing) Send(Published{job, *standing, true});
  }
  published_alone_.clear();
  for (const auto& [attempt, rank] : ranks_) {
    if (rank->gathered) Send(GangReady{options_.id, session_, attempt, 4000});
  }
  Heartbeat(session_);
}

void SimWorker::Heartbeat(uint64_t session) {
  if (session != session_ || !alive_) return;
  Send(WorkerHeartbeat{options_.id, session_, Running()});
  world_->After(options_.heartbeat, [this, session] { Heartbeat(session); });
}

std::vector<int64_t> SimWorker::Running() const {
  std::vector<int64_t> running;
  for (const auto& [attempt, rank] : ranks_) running.push_back(attempt);
  return running;
}

void SimWorker::Send(Event event) {
  const uint64_t session = session_;
  last_delivery_ =
      std::max(last_delivery_, world_->now() + absl::Microseconds(world_->chance.Int(100, 2000)));
  world_->At(last_delivery_, [this, session, event = std::move(event)]() mutable {
    // Messages that were on their way when the stream broke are lost.
    if (session == session_) coordinator_->Deliver(session, std::move(event));
  });
}

void SimWorker::Transmit(const Kept& kept) {
  Send(WorkerFact{options_.id, session_, kept.sequence, kept.attempt, kept.fact});
}

void SimWorker::Say(int64_t attempt, facts::Fact fact, bool keep) {
  Kept kept{keep ? next_sequence_++ : 0, attempt, std::move(fact), world_->now()};
  if (session_ != 0) Transmit(kept);
  if (!keep) return;
  kept_.push_back(std::move(kept));
  if (session_ != 0 && world_->chance.Happens(faults_->duplicates)) {
    for (const Kept& again : kept_) Transmit(again);
  }
}

void SimWorker::RecordUnacknowledged() {
  if (!alive_ || session_ == 0) return;
  for (const Kept& fact : kept_) {
    if (world_->now() - fact.said_at < absl::Seconds(5)) continue;
    nlohmann::json& record = world_->Record("unacknowledged");
    record["attempt"] = fact.attempt;
    record["sequence"] = fact.sequence;
  }
}

// ---- commands ----

void SimWorker::Receive(uint64_t session, const StartCommand& command, absl::Duration remaining,
                        absl::Duration stop_in) {
  if (session != session_ || !alive_) return;
  auto rank = std::make_shared<Rank>();
  rank->attempt = command.attempt;
  rank->job = command.job;
  rank->truth = &truths_->at(command.job->request_id);
  rank->trial = command.trial;
  if (command.trial > 0) {
    rank->truth = &rank->truth->trials[static_cast<size_t>(command.trial) - 1];
  }
  rank->kind = command.kind;
  rank->fold = command.fold;
  rank->seed = command.seed;
  rank->deadline = world_->now() + remaining;
  rank->stop_at = world_->now() + stop_in;
  rank->epochs = command.epochs;
  rank->row_share = command.row_share;
  rank->plan_cut = command.plan_cut;
  rank->checkpoint_at = world_->now();
  if (!command.resume.empty()) {
    rank->epochs_done = disk_->checkpoints.at(command.resume);
    rank->damaged = world_->chance.Happens(faults_->damaged);
  }
  ranks_[command.attempt] = rank;
  nlohmann::json& record = world_->Record(command.first_rank == 0 ? "rank_start" : "part_start");
  record["attempt"] = command.attempt;
  record["worker"] = options_.id;
  record["job"] = command.job->id;
  record["fold"] = command.fold;
  record["slots"] = command.slots;
  record["resume"] = command.resume;
  record["batch"] = command.batch;
  record["world_size"] = command.world_size;
  Chance& chance = world_->chance;
  if (remaining != absl::InfiniteDuration()) {
    Schedule(*rank, remaining, &SimWorker::AtDeadline, false);
  }
  if (command.world_size < command.job->spec.slots && command.kind == TaskKind::kTrain) {
    const double slower = static_cast<double>(command.job->spec.slots) / command.world_size;
    rank->smaller = std::make_shared<JobTruth>(*rank->truth);
    rank->smaller->step_s *= slower;
    rank->smaller->evaluate_s *= slower;
    rank->smaller->predict_s *= slower;
    rank->truth = rank->smaller.get();
  }
  if (command.kind == TaskKind::kPrepare) {
    Schedule(*rank, absl::Seconds(rank->truth->read_s * chance.Uniform(0.9, 1.2)),
             &SimWorker::Read);
  } else if (command.world_size > static_cast<int>(command.slots.size())) {
    JoinGang(command, rank);
  } else {
    Schedule(*rank, absl::Seconds(rank->truth->start_s * chance.Uniform(0.8, 1.3)),
             &SimWorker::Begin);
    ArmStop(*rank);
  }
  if (chance.Happens(faults_->rank_dies)) {
    Schedule(*rank, absl::Seconds(chance.LogUniform(0.02, 20)), &SimWorker::Die, false);
  } else if (chance.Happens(faults_->rank_hangs)) {
    Schedule(*rank, absl::Seconds(chance.LogUniform(0.02, 20)), &SimWorker::Hang, false);
  }
}

void SimWorker::Receive(uint64_t session, const StopCommand& command) {
  if (session != session_ || !alive_) return;
  const auto it = ranks_.find(command.attempt);
  if (it == ranks_.end()) return;
  Rank& rank = *it->second;
  if (command.mode == StopMode::kAbort) {
    return End(rank, AttemptEndReason::kCancelledByUser, "aborted");
  }
  if (rank.hung || rank.stopping) return;
  if (rank.first_rank > 0) {  // it follows rank 0
    if (command.mode == StopMode::kDrop) {
      Schedule(rank, absl::Seconds(10), &SimWorker::DropPart, false);
    }
    return;
  }
  if (command.mode == StopMode::kDrop) {
    rank.stopped_for = AttemptEndReason::kShutdown;
    rank.stopping = true;
    ++rank.chain;
    Schedule(rank, absl::Milliseconds(world_->chance.Int(5, 50)), &SimWorker::Dropped);
  } else {
    rank.stopped_for = AttemptEndReason::kFinishedByUser;
    StopTraining(rank);
  }
}

void SimWorker::Receive(uint64_t session, const MeetCommand& command) {
  if (session != session_ || !alive_) return;
  const auto it = ranks_.find(command.attempt);
  if (it == ranks_.end() || std::exchange(it->second->met, true)) return;
  if (it->second->first_rank > 0 || it->second->stopping || it->second->hung) return;
  world_->Record("gang_begin")["attempt"] = command.attempt;
  Begin(*it->second);
}

void SimWorker::Receive(uint64_t session, const ReplanCommand& command, absl::Duration remaining,
                        absl::Duration stop_in) {
  if (session != session_ || !alive_) return;
  const auto it = ranks_.find(command.attempt);
  if (it == ranks_.end()) return;
  Rank& rank = *it->second;
  if (command.epochs > 0) rank.epochs = command.epochs;
  if (command.row_share > 0 && command.row_share != rank.row_share) {
    rank.row_share = command.row_share;
    if (rank.in_epoch && !rank.probing && !rank.stopping && !rank.hung) {
      ++rank.chain;
      AwaitEpoch(rank);
    }
  }
  rank.plan_cut = command.plan_cut;
  const absl::Time deadline = world_->now() + remaining;
  if (deadline != rank.deadline) {
    rank.deadline = deadline;
    if (remaining != absl::InfiniteDuration()) {
      Schedule(rank, remaining, &SimWorker::AtDeadline, false);
    }
  }
  if (stop_in == absl::InfiniteDuration() || rank.first_rank > 0) return;
  rank.stop_at = world_->now() + stop_in;
  ArmStop(rank);
}

void SimWorker::Receive(uint64_t session, const AckCommand& command) {
  if (session != session_ || !alive_) return;
  while (!kept_.empty() && kept_.front().sequence <= command.sequence) {
    const Kept& kept = kept_.front();
    const auto* saved = std::get_if<facts::FoldSaved>(&kept.fact);
    if (saved != nullptr && saved->last) {
      nlohmann::json& record = world_->Record("acked_fold");
      record["attempt"] = kept.attempt;
    }
    kept_.pop_front();
  }
}

void SimWorker::Receive(uint64_t session, const ShutdownCommand&) {
  if (session != session_ || !alive_) return;
  const int boot = boots_;
  world_->After(absl::Milliseconds(world_->chance.Int(200, 800)), [this, boot] {
    if (boot == boots_) Kill();
  });
}

void SimWorker::Schedule(Rank& rank, absl::Duration delay, void (SimWorker::*step)(Rank&),
                         bool chain) {
  const auto it = ranks_.find(rank.attempt);
  if (it == ranks_.end()) return;
  world_->After(delay, [this, held = it->second, step, chain, link = rank.chain] {
    if (held->over || (chain && link != held->chain)) return;
    (this->*step)(*held);
  });
}

}  // namespace traind::simulation
