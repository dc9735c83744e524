#include "tests/simulation/sim_worker.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "tests/simulation/sim_coordinator.h"
#include "tests/simulation/sim_rank.h"

namespace traind::simulation {
namespace {

namespace rp = rank_protocol;

constexpr absl::Duration kLookAtWork = absl::Seconds(1);
constexpr absl::Duration kAckTime = absl::Milliseconds(100);
constexpr absl::Duration kStopGrace = absl::Seconds(5);
constexpr absl::Duration kFlushWait = absl::Seconds(1);
// A loop that does not let time pass.
constexpr int kMostSpins = 1000;

// Simulated Jobs last seconds, so that what hangs is found sooner than on a real machine.
worker::WorkerCoreOptions CoreOptionsFor(const std::vector<Slot>& slots) {
  worker::WorkerCoreOptions options;
  options.state_dir = "/state";
  options.cores = static_cast<int>(slots.size());
  options.min_silence = absl::Seconds(4);
  options.start_silence = absl::Seconds(5);
  options.prepare_silence = absl::Seconds(5);
  options.prepare_stall = absl::Seconds(2);
  options.exchange_timeout = absl::Seconds(5);
  return options;
}

// The command as it comes over the wire.
worker::TaskStart TaskOf(const StartCommand& command, absl::Duration deadline_at,
                         absl::Duration stop_at) {
  const Job& job = *command.job;
  worker::TaskStart task;
  task.attempt = command.attempt;
  task.job = job.id;
  task.kind = command.kind;
  const auto trial = static_cast<size_t>(command.trial);
  task.model = trial < job.spec.trials.size() ? job.spec.trials[trial].kind : "mlp";
  task.deadline_at = deadline_at;
  task.metric = job.spec.metric;
  task.spec_folds = job.spec.folds;
  task.plan_cut = command.plan_cut;
  task.spec_json = job.spec_json;
  if (command.kind != TaskKind::kTrain) return task;
  task.stop_at = stop_at;
  task.fold = command.fold;
  task.trial = command.trial;
  task.seed = command.seed;
  task.slots = command.slots;
  task.world_size = command.world_size;
  task.first_rank = command.first_rank;
  task.table = job.table.table;
  task.epochs = command.epochs;
  task.row_share = command.row_share;
  task.batch = command.batch;
  task.resume = command.resume;
  task.checkpoint_every = job.spec.checkpoint_every;
  return task;
}

// The Attempt whose work begins with that message; 0: none.
int64_t BegunBy(const rp::ToProcess& message) {
  if (const auto* prepare = std::get_if<rp::Prepare>(&message)) return prepare->attempt;
  if (const auto* train = std::get_if<rp::Train>(&message)) return train->attempt;
  if (const auto* predict = std::get_if<rp::Predict>(&message)) return predict->attempt;
  if (const auto* serve = std::get_if<rp::Serve>(&message)) return serve->attempt;
  return 0;
}

}  // namespace

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
  if (alive()) return;
  ++boots_;
  next_sequence_ = 1;
  std::vector<worker::Slot> slots;
  for (const Slot& slot : options_.slots) {
    slots.push_back({slot.device, slot.name, slot.uuid, slot.memory_bytes});
  }
  core_ = std::make_unique<worker::WorkerCore>(
      CoreOptionsFor(options_.slots), std::move(slots), [] { return int64_t{64} << 30; },
      [] { return 4000; });
  core_->Disconnected(Now());
  world_->Record("worker_start")["worker"] = options_.id;
  Poke();
  Connect();
}

void SimWorker::Kill() {
  if (!alive()) return;
  world_->Record("worker_end")["worker"] = options_.id;
  for (const auto& [id, process] : processes_) {
    StopsWorking(id);
    process->Vanish();
  }
  core_.reset();
  parts_.clear();
  processes_.clear();
  kept_.clear();
  poked_ = false;
  armed_ = absl::InfiniteDuration();
  leave_by_.reset();
  BreakLink(true, absl::ZeroDuration());
  if (options_.standalone) {
    world_->After(absl::Milliseconds(world_->chance.Int(10, 300)),
                  [this, session = coordinator_->newest_session()] {
                    coordinator_->WorkerProcessDied(options_.id, session);
                  });
  }
}

void SimWorker::BreakLink(bool seen_by_traind, absl::Duration for_so_long) {
  if (session_ == 0) return;
  const uint64_t session = session_;
  CloseStream();
  const absl::Duration notice =
      seen_by_traind ? absl::Milliseconds(world_->chance.Int(1, 5)) : absl::Seconds(60);
  world_->After(notice, [this, session] { coordinator_->StreamLost(options_.id, session); });
  if (alive()) {
    world_->After(for_so_long, [this] { Connect(); });
  }
}

void SimWorker::CloseStream() {
  session_ = 0;
  connected_ = false;
  if (!alive()) return;
  core_->Disconnected(Now());
  Poke();
}

void SimWorker::StreamClosed(uint64_t session) {
  if (session != session_) return;
  CloseStream();
  if (alive()) {
    world_->After(absl::Milliseconds(world_->chance.Int(50, 800)), [this] { Connect(); });
  }
}

void SimWorker::Connect() {
  if (!alive() || session_ != 0) return;
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
  hello.running_attempts = core_->RunningAttempts();
  hello.address = options_.address;
  hello.labels = options_.labels;
  Send(std::move(hello));
  world_->After(absl::Microseconds(world_->chance.Int(200, 4000)),
                [this, session = session_] { Welcomed(session); });
}

void SimWorker::Welcomed(uint64_t session) {
  if (!alive() || session != session_) return;
  connected_ = true;
  next_heartbeat_ = Now();
  core_->Connected(Now());
  if (core_->leaving()) Heartbeat();
  for (Kept& fact : kept_) {
    fact.since = Now();
    Transmit(fact);
  }
  Poke();
}

// How long the oldest fact has been without an Ack.
absl::Duration SimWorker::Waiting() const {
  return kept_.empty() ? absl::ZeroDuration() : Now() - kept_.front().since;
}

void SimWorker::Deliver(std::function<void()> message) {
  last_delivery_ =
      std::max(last_delivery_, world_->now() + absl::Microseconds(world_->chance.Int(100, 2000)));
  world_->At(last_delivery_, [this, session = session_, message = std::move(message)] {
    // Messages that were on their way when the stream broke are lost.
    if (session == session_) message();
  });
}

void SimWorker::Send(Event event) {
  Deliver([this, session = session_, event = std::move(event)] {
    coordinator_->Deliver(session, event);
  });
}

void SimWorker::Transmit(const Kept& kept) {
  if (const auto* report = std::get_if<worker::ReportAction>(&kept.what)) {
    return Send(WorkerFact{options_.id, session_, kept.sequence, report->attempt, report->fact});
  }
  const std::string& job = std::get<worker::ReportPublishedAction>(kept.what).job;
  Deliver([this, session = session_, job, sequence = kept.sequence] {
    coordinator_->AdoptPrediction(session, job);
    coordinator_->Deliver(session, WorkerFact{options_.id, session, sequence, 0, std::nullopt});
  });
}

void SimWorker::Say(decltype(Kept::what) what) {
  kept_.push_back({next_sequence_++, std::move(what), world_->now(), Now()});
  if (!connected_) return;
  Transmit(kept_.back());
  if (world_->chance.Happens(faults_->duplicates)) {
    for (const Kept& again : kept_) Transmit(again);
  }
}

void SimWorker::RecordUnacknowledged() {
  if (!alive() || !connected_) return;
  for (const Kept& fact : kept_) {
    if (world_->now() - fact.said_at < absl::Seconds(5)) continue;
    nlohmann::json& record = world_->Record("unacknowledged");
    const auto* report = std::get_if<worker::ReportAction>(&fact.what);
    record["attempt"] = report != nullptr ? report->attempt : 0;
    record["sequence"] = fact.sequence;
  }
}

// ---- commands ----

void SimWorker::Receive(uint64_t session, const StartCommand& command, absl::Duration remaining,
                        absl::Duration stop_in) {
  if (!Hears(session)) return;
  core_->Start(TaskOf(command, Now() + remaining, Now() + stop_in), Now());
  Poke();
}

void SimWorker::Receive(uint64_t session, const StopCommand& command) {
  if (!Hears(session)) return;
  core_->Stop(command.attempt, command.mode, command.reason, command.why, Now());
  Poke();
}

void SimWorker::Receive(uint64_t session, const MeetCommand& command) {
  if (!Hears(session)) return;
  core_->Meet(command.attempt, command.host, command.port, Now());
  Poke();
}

void SimWorker::Receive(uint64_t session, const ReplanCommand& command, absl::Duration remaining,
                        absl::Duration stop_in) {
  if (!Hears(session)) return;
  core_->Replan(command.attempt, command.epochs, command.row_share, Now() + stop_in,
                Now() + remaining, command.plan_cut, Now());
  Poke();
}

void SimWorker::Receive(uint64_t session, const AckCommand& command) {
  if (!Hears(session)) return;
  while (!kept_.empty() && kept_.front().sequence <= command.sequence) {
    const auto* report = std::get_if<worker::ReportAction>(&kept_.front().what);
    const auto* saved = report != nullptr ? std::get_if<facts::FoldSaved>(&report->fact) : nullptr;
    if (saved != nullptr && saved->last) {
      world_->Record("acked_fold")["attempt"] = report->attempt;
    }
    kept_.pop_front();
  }
}

void SimWorker::Receive(uint64_t session, const ShutdownCommand&) {
  if (!Hears(session)) return;
  core_->Shutdown(kStopGrace, Now());
  Heartbeat();
  Poke();
}

void SimWorker::Receive(uint64_t session, const rp::Rows& rows) {
  if (!Hears(session)) return;
  RecordRows("rows_given", rows.attempt, rows.request);
  core_->Ask(rows);
  Poke();
}

// ---- the loop ----

void SimWorker::Poke() {
  if (std::exchange(poked_, true)) return;
  world_->After(absl::ZeroDuration(), [this, boot = boots_] {
    if (!alive() || boot != boots_) return;
    poked_ = false;
    Turn();
  });
}

void SimWorker::Turn() {
  spins_ = last_turn_ == Now() ? spins_ + 1 : 0;
  last_turn_ = Now();
  if (spins_ == kMostSpins) {
    world_->Record("worker_spins")["worker"] = options_.id;
    return;
  }
  LookAtWork();
  core_->Tick(Now(), Waiting() >= kAckTime);
  Act();
  if (connected_ && Now() >= next_heartbeat_) Heartbeat();
  CheckStream();
  LeaveIfDone();
  if (alive()) Arm();
}

absl::Duration SimWorker::NextWakeup() const {
  absl::Duration next = core_->NextWakeup();
  if (connected_) next = std::min(next, next_heartbeat_);
  if (!core_->Watched().empty()) next = std::min(next, look_at_work_);
  if (!kept_.empty()) {
    const absl::Duration since = kept_.front().since;
    if (Now() < since + kAckTime) next = std::min(next, since + kAckTime);
    if (connected_) next = std::min(next, since + options_.lease);
  }
  return leave_by_ ? std::min(next, *leave_by_) : next;
}

void SimWorker::Arm() {
  const absl::Duration next = std::max(NextWakeup(), Now());
  if (next >= armed_) return;
  armed_ = next;
  world_->At(absl::UnixEpoch() + next, [this, next, boot = boots_] {
    if (!alive() || boot != boots_ || armed_ != next) return;
    armed_ = absl::InfiniteDuration();
    Turn();
  });
}

void SimWorker::LookAtWork() {
  if (Now() < look_at_work_) return;
  look_at_work_ = Now() + kLookAtWork;
  for (const worker::ProcessId id : core_->Watched()) {
    const auto process = processes_.find(id);
    if (process != processes_.end() && process->second->works()) core_->Worked(id, Now());
  }
}

void SimWorker::Heartbeat() {
  if (!connected_) return;
  next_heartbeat_ = Now() + options_.heartbeat;
  Send(WorkerHeartbeat{options_.id, session_, core_->RunningAttempts(), core_->leaving()});
}

// traind takes nothing: another stream may reach it.
void SimWorker::CheckStream() {
  if (!connected_ || Waiting() < options_.lease) return;
  for (Kept& fact : kept_) fact.since = Now();
  BreakLink(true, absl::Milliseconds(world_->chance.Int(50, 800)));
}

void SimWorker::LeaveIfDone() {
  if (!core_->done()) return;
  if (!leave_by_) leave_by_ = Now() + kFlushWait;
  if (kept_.empty() || !connected_ || Now() >= *leave_by_) Kill();
}

void SimWorker::Act() {
  for (std::vector<worker::Action> actions = core_->TakeActions(); !actions.empty();
       actions = core_->TakeActions()) {
    for (worker::Action& action : actions) Perform(action);
  }
}

void SimWorker::Perform(worker::Action& action) {
  if (const auto* spawn = std::get_if<worker::SpawnAction>(&action)) {
    Spawn(*spawn);
  } else if (const auto* send = std::get_if<worker::SendAction>(&action)) {
    SendToProcess(*send);
  } else if (const auto* kill = std::get_if<worker::KillAction>(&action)) {
    const auto process = processes_.find(kill->process);
    if (process != processes_.end()) process->second->Kill();
  } else if (auto* publish = std::get_if<worker::PublishAction>(&action)) {
    Publish(std::move(publish->request));
  } else if (auto* report = std::get_if<worker::ReportAction>(&action)) {
    if (!std::holds_alternative<facts::Progress>(report->fact)) return Say(std::move(*report));
    if (!connected_) return;
    Send(WorkerFact{options_.id, session_, 0, report->attempt, std::move(report->fact)});
  } else if (auto* published = std::get_if<worker::ReportPublishedAction>(&action)) {
    Say(std::move(*published));
  } else if (const auto* answer = std::get_if<worker::AnswerAction>(&action)) {
    SendAnswer(answer->answer);
  } else if (const auto* ready = std::get_if<worker::GangReadyAction>(&action)) {
    if (connected_) Send(GangReady{options_.id, session_, ready->attempt, ready->port});
  }
}

// ---- processes ----

void SimWorker::Spawn(const worker::SpawnAction& spawn) {
  const worker::ProcessId id = spawn.process;
  SimProcess::Surroundings around{world_, disk_, truths_, faults_, options_.id, {}, {}};
  // Nobody hears the processes of a Worker that is dead.
  around.say = [this, id](const rp::FromProcess& message) { HeardFrom(id, message); };
  around.exited = [this, id](const worker::ExitStatus& status) { Exited(id, status); };
  const auto process = std::make_shared<SimProcess>(std::move(around), *spawn.program);
  processes_[id] = process;
  process->Start();
}

void SimWorker::SendToProcess(const worker::SendAction& send) {
  const auto found = processes_.find(send.process);
  if (found == processes_.end()) return;
  const auto* train = std::get_if<rp::Train>(&send.message);
  const int64_t attempt = BegunBy(send.message);
  if (attempt > 0) {
    Part& part = parts_[attempt];
    part.working.insert(send.process);
    if (part.first == 0) {
      part.first = send.process;
      part.trains = train != nullptr;
      part.leads = train == nullptr || train->rank == 0;
      RecordStart(attempt, part, train != nullptr ? train->resume : "",
                  train != nullptr ? train->batch : 0);
    }
  }
  found->second->Take(send.message);
}

// Where there is no stream it is lost; traind has given the question back when that ended.
void SimWorker::SendAnswer(const rp::Answered& answer) {
  if (!answer.more) RecordRows("rows_answered", answer.attempt, answer.request);
  if (!connected_) return;
  Deliver([this, answer] { coordinator_->gateway().TakeAnswer(answer); });
}

void SimWorker::RecordRows(const char* kind, int64_t attempt, uint64_t request) {
  nlohmann::json& record = world_->Record(kind);
  record["worker"] = options_.id;
  record["attempt"] = attempt;
  record["request"] = request;
}

void SimWorker::HeardFrom(worker::ProcessId process, const rp::FromProcess& message) {
  if (std::holds_alternative<rp::Finished>(message)) StopsWorking(process);
  RecordSaved(message);
  core_->Message(process, message, Now());
  Poke();
}

// What the Worker can publish from now on.
void SimWorker::RecordSaved(const rp::FromProcess& message) {
  const auto* saved = std::get_if<rp::FoldSaved>(&message);
  if (saved == nullptr || !saved->last || saved->trial > 0 || saved->seed > 0) return;
  const worker::TaskStart* task = core_->TaskOf(saved->attempt);
  if (task == nullptr) return;
  nlohmann::json& record = world_->Record("fold_saved");
  record["job"] = task->job;
  record["fold"] = saved->fold;
  record["worker"] = options_.id;
}

void SimWorker::Exited(worker::ProcessId process, const worker::ExitStatus& status) {
  StopsWorking(process);
  processes_.erase(process);
  core_->Exited(process, status, Now());
  Poke();
}

void SimWorker::StopsWorking(worker::ProcessId process) {
  for (auto it = parts_.begin(); it != parts_.end();) {
    auto& [attempt, part] = *it;
    // It may begin another task before the others of its gang have ended.
    if (process == part.first && part.working.count(process) > 0) {
      part.epochs = processes_.at(process)->epochs_done();
      part.stepped = processes_.at(process)->stepped();
    }
    if (part.working.erase(process) > 0 && part.working.empty()) {
      RecordEnd(attempt, part);
      it = parts_.erase(it);
    } else {
      ++it;
    }
  }
}

void SimWorker::RecordStart(int64_t attempt, const Part& part, const std::string& resume,
                            int batch) {
  const worker::TaskStart& task = *core_->TaskOf(attempt);
  nlohmann::json& record = world_->Record(part.leads ? "rank_start" : "part_start");
  record["attempt"] = attempt;
  record["worker"] = options_.id;
  record["job"] = task.job;
  record["fold"] = task.fold;
  record["slots"] = task.slots;
  record["resume"] = resume;
  record["batch"] = batch;
  record["world_size"] = task.world_size;
  record["predicts"] = task.kind == TaskKind::kPredict;
}

void SimWorker::RecordEnd(int64_t attempt, const Part& part) {
  nlohmann::json& record = world_->Record(part.leads ? "rank_end" : "part_end");
  record["attempt"] = attempt;
  record["worker"] = options_.id;
  if (!part.leads || !part.trains) return;
  record["epochs"] = part.epochs;
  record["stepped"] = part.stepped;
}

void SimWorker::Publish(PublishRequest request) {
  const double tail = faults_->heavy_tails ? world_->chance.HeavyTail() : 1.0;
  Publishing publishing;
  publishing.has_test = truths_->at(request.job.substr(4)).spec.has_test;
  publishing.stamp = world_->wall();
  publishing.cost = absl::Seconds(std::min(1.0, world_->chance.LogUniform(0.004, 0.06) * tail));
  publishing.alive = [this, boot = boots_] { return alive() && boot == boots_; };
  publishing.done = [this, job = request.job](const absl::StatusOr<PublishedPrediction>& result) {
    core_->Published(job, result, Now());
    Poke();
  };
  publishing.request = std::move(request);
  disk_->Publish(std::move(publishing));
}

}  // namespace traind::simulation
