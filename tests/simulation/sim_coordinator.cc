#include "tests/simulation/sim_coordinator.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <utility>

#include "server/domain/names.h"

namespace traind::simulation {

SimCoordinator::SimCoordinator(World* world, Disk* disk, const Faults* faults, CoreOptions options)
    : world_(world), disk_(disk), faults_(faults), options_(options) {}

absl::Time SimCoordinator::Now() const { return anchor_wall_ + (world_->now() - anchor_); }

void SimCoordinator::Start() {
  if (up()) return;
  ++life_;
  ++starts_;
  anchor_ = world_->now();
  anchor_wall_ = world_->wall();
  Load();
  nlohmann::json& record = world_->Record("coordinator_start");
  record["offset"] = absl::ToInt64Microseconds(Now() - world_->now());
  for (const auto& [id, worker] : workers_) {
    if (options_.standalone && !worker->alive()) Post(WorkerDied{id, newest_session()});
  }
  Pump();
}

void SimCoordinator::Load() {
  Snapshot snapshot = *store_.LoadSnapshot();
  anchor_wall_ = std::max(anchor_wall_, snapshot.last_seen - (world_->now() - anchor_));
  inbox_.clear();
  for (const Job& job : snapshot.active) {
    if (const auto standing = disk_->Standing(job.id)) {
      inbox_.push_back(Published{job.id, *standing, true});
    }
  }
  core_ = std::make_unique<ControlCore>(options_);
  core_->Restore(std::move(snapshot), Now());
  busy_ = false;
  ArmWakeup(Now());
}

void SimCoordinator::Kill() {
  if (!up()) return;
  ++life_;
  core_.reset();
  inbox_.clear();
  busy_ = false;
  gateway_.Forget();
  world_->Record("coordinator_end");
  for (const auto& [session, stream] : std::exchange(streams_, {})) {
    SimWorker* worker = workers_.at(stream.worker);
    world_->After(absl::Milliseconds(world_->chance.Int(1, 5)),
                  [worker, session = session] { worker->StreamClosed(session); });
  }
  for (auto& [call, answer] : std::exchange(calls_, {})) {
    world_->After(absl::Milliseconds(5), [call = call, answer = answer] {
      answer({call, absl::UnavailableError("connection lost"), nullptr, false, {}});
    });
  }
}

uint64_t SimCoordinator::Open(const std::string& worker) {
  if (!up()) return 0;
  const uint64_t session = next_session_++;
  gateway_.StreamEnded(worker);  // it takes the place of the one before
  streams_[session] = {worker, world_->now()};
  return session;
}

void SimCoordinator::Deliver(uint64_t session, Event event) {
  if (!up() || streams_.count(session) == 0) return;
  Post(std::move(event));
}

void SimCoordinator::AdoptPrediction(uint64_t session, const std::string& job) {
  const auto standing = disk_->Standing(job);
  if (standing) Deliver(session, Published{job, *standing, true});
}

void SimCoordinator::StreamLost(const std::string& worker, uint64_t session) {
  if (streams_.erase(session) == 0 || !up()) return;
  if (!HasStream(worker)) gateway_.StreamEnded(worker);
  Post(WorkerDetached{worker, session});
}

void SimCoordinator::WorkerProcessDied(const std::string& worker, uint64_t session) {
  if (up()) Post(WorkerDied{worker, session});
}

void SimCoordinator::Call(std::function<Event(CallId)> request, Answer answer) {
  const CallId call = next_call_++;
  world_->After(
      absl::Microseconds(world_->chance.Int(100, 2000)),
      [this, call, request = std::move(request), answer = std::move(answer)] {
        if (!up()) {
          answer({call, absl::UnavailableError("connection refused"), nullptr, false, {}});
          return;
        }
        calls_[call] = answer;
        Post(request(call));
      });
}

bool SimCoordinator::HasStream(const std::string& worker) const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [&worker](const auto& stream) { return stream.second.worker == worker; });
}

uint64_t SimCoordinator::AskRows(const std::string& worker, int64_t attempt,
                                 SimGateway::Done done) {
  if (!HasStream(worker)) {
    done(absl::UnavailableError("its worker is not connected"));
    return 0;
  }
  rank_protocol::Rows rows;
  rows.attempt = attempt;
  rows.request = gateway_.Ask(worker, std::move(done));
  ToWorker(worker, [rows](SimWorker& w, uint64_t s) { w.Receive(s, rows); });
  return rows.request;
}

void SimCoordinator::Post(Event event) {
  if (!up()) return;
  inbox_.push_back(std::move(event));
  const uint64_t life = life_;
  world_->After(absl::ZeroDuration(), [this, life] {
    if (life == life_) Pump();
  });
}

void SimCoordinator::ArmWakeup(absl::Time at) {
  wakeup_ = at;
  if (at == absl::InfiniteFuture()) return;
  const uint64_t life = life_;
  world_->After(std::max(at - Now(), absl::Microseconds(1)), [this, life] {
    if (life == life_) Pump();
  });
}

void SimCoordinator::Pump() {
  if (!up() || busy_) return;
  if (inbox_.empty() && Now() < wakeup_) return;
  RunTurn();
}

void SimCoordinator::RunTurn() {
  ++turns_;
  auto turn = std::make_shared<Turn>(core_->Step(std::exchange(inbox_, {}), Now()));
  ArmWakeup(turn->next_wakeup);
  if (turn->mutations.empty()) return Act(*turn);
  busy_ = true;
  Chance& chance = world_->chance;
  absl::Duration commit = absl::Microseconds(chance.Int(300, 3000));
  if (faults_->heavy_tails && chance.Happens(0.02)) {
    commit = absl::Milliseconds(chance.Int(5, 40));
  }
  if (chance.Happens(faults_->crash_in_turn)) {
    const uint64_t life = life_;
    const int point = chance.Int(0, 2);
    world_->After(commit * 0.5, [this, life, point, turn] {
      if (life != life_) return;
      if (point > 0 && !disk_->full && store_.Commit(turn->mutations).ok()) {
        RecordCommit(*turn);
        if (point == 2) {
          // Some of what follows from it got out.
          turn->starts.resize(turn->starts.size() / 2);
          turn->stops.clear();
          turn->meets.clear();
          turn->publishes.clear();
          turn->ended.clear();
          turn->replies.resize(turn->replies.size() / 2);
          Act(*turn);
        }
      }
      const absl::Duration down = absl::Milliseconds(world_->chance.Int(100, 1500));
      Kill();
      world_->After(down, [this] { Start(); });
    });
    return;
  }
  const uint64_t life = life_;
  world_->After(commit, [this, life, turn] {
    if (life == life_) Commit(turn);
  });
}

void SimCoordinator::Commit(std::shared_ptr<Turn> turn) {
  busy_ = false;
  const absl::Status status =
      disk_->full ? absl::ResourceExhaustedError("disk full") : store_.Commit(turn->mutations);
  if (!status.ok()) {
    if (!disk_->full) world_->Record("commit_refused")["error"] = status.ToString();
    return Recover(*turn, status);
  }
  RecordCommit(*turn);
  Act(*turn);
  Pump();
}

// Does what server/loop does: forget, tell, read again.
void SimCoordinator::Recover(const Turn& turn, const absl::Status& status) {
  for (Reply reply : turn.replies) {
    reply.status = status;
    reply.job = nullptr;
    Tell(reply);
  }
  for (const auto& [session, stream] : std::exchange(streams_, {})) {
    SimWorker* worker = workers_.at(stream.worker);
    gateway_.StreamEnded(stream.worker);
    world_->After(absl::Milliseconds(1),
                  [worker, session = session] { worker->StreamClosed(session); });
  }
  ++life_;
  const uint64_t life = life_;
  core_.reset();
  world_->After(absl::Milliseconds(200), [this, life] {
    if (life != life_) return;
    ++life_;
    Load();
    Pump();
  });
}

void SimCoordinator::Act(Turn& turn) {
  for (const auto& job : turn.changed) RecordUnmatched(*job);
  for (const AckCommand& ack : turn.acks) {
    ToWorker(ack.worker, [ack](SimWorker& w, uint64_t s) {
      if (s == ack.session) w.Receive(s, ack);
    });
  }
  for (const StopCommand& stop : turn.stops) {
    RecordPreempted(stop);
    ToWorker(stop.worker, [stop](SimWorker& w, uint64_t s) { w.Receive(s, stop); });
  }
  for (const StartCommand& start : turn.starts) {
    const absl::Duration remaining = start.deadline - Now(), stop_in = start.stop_at - Now();
    ToWorker(start.worker, [start, remaining, stop_in](SimWorker& w, uint64_t s) {
      w.Receive(s, start, remaining, stop_in);
    });
  }
  for (const MeetCommand& meet : turn.meets) {
    ToWorker(meet.worker, [meet](SimWorker& w, uint64_t s) { w.Receive(s, meet); });
  }
  for (const ReplanCommand& replan : turn.replans) {
    const absl::Duration remaining = replan.deadline - Now(), stop_in = replan.stop_at - Now();
    ToWorker(replan.worker, [replan, remaining, stop_in](SimWorker& w, uint64_t s) {
      w.Receive(s, replan, remaining, stop_in);
    });
  }
  for (const ShutdownCommand& shutdown : turn.shutdowns) {
    ToWorker(shutdown.worker, [shutdown](SimWorker& w, uint64_t s) { w.Receive(s, shutdown); });
  }
  for (PublishCommand& publish : turn.publishes) Publish(std::move(publish));
  for (const std::string& job : turn.ended) EndPublishing(job);
  for (ReuseCommand& reuse : turn.reuses) Reuse(std::move(reuse));
  for (const Reply& reply : turn.replies) Tell(reply);
}

// Earlier Jobs, of which this world knows nothing, have trained some of the folds.
void SimCoordinator::Reuse(ReuseCommand command) {
  Chance& chance = world_->chance;
  std::vector<TrainedFold> folds;
  const int models = command.spec.folds * command.spec.seeds;
  for (int k = 0; k < models && chance.Happens(0.8); ++k) {
    TrainedFold& fold = folds.emplace_back();
    fold.fold = k % command.spec.folds;
    fold.seed = k / command.spec.folds;
    fold.job = "earlier";
    fold.whole = chance.Happens(0.5);
    fold.epochs_done = fold.whole ? command.spec.epochs : chance.Uniform(0, command.spec.epochs);
    const std::string dir = absl::StrCat("reused/", command.job, "/", k);
    if (fold.whole || chance.Happens(0.7)) {
      fold.member.emplace();
      fold.member->epochs_done = fold.epochs_done;
      fold.member->score = chance.Uniform();
      fold.member->oof = dir + "/oof.npy";
      fold.member->oof_sha256 = dir;
      disk_->Write(absl::StrCat("jobs/", command.job, "/", fold.member->oof), dir);
      disk_->Sync(absl::StrCat("jobs/", command.job, "/", fold.member->oof));
    }
    if (!fold.whole) {
      fold.checkpoint.emplace();
      fold.checkpoint->epoch = fold.epochs_done;
      fold.checkpoint->step = 1 + static_cast<int64_t>(100 * fold.epochs_done);
      fold.checkpoint->manifest = dir + "/checkpoint.json";
      disk_->Write(fold.checkpoint->manifest, absl::StrFormat("%.17g", fold.epochs_done));
      disk_->Sync(fold.checkpoint->manifest);
    }
  }
  const double tail = faults_->heavy_tails ? chance.HeavyTail() : 1.0;
  const uint64_t life = life_;
  world_->After(absl::Seconds(chance.LogUniform(0.002, 0.1) * tail),
                [this, life, job = command.job, folds = std::move(folds)] {
                  if (life == life_) Post(Reused{job, folds});
                });
}

void SimCoordinator::Tell(const Reply& reply) {
  const auto it = calls_.find(reply.call);
  if (it == calls_.end()) return;
  Answer answer = std::move(it->second);
  calls_.erase(it);
  world_->After(absl::Microseconds(world_->chance.Int(100, 2000)),
                [answer = std::move(answer), reply] { answer(reply); });
}

void SimCoordinator::ToWorker(const std::string& worker,
                              std::function<void(SimWorker&, uint64_t)> deliver) {
  for (auto& [session, stream] : streams_) {
    if (stream.worker != worker) continue;
    const auto newer = std::any_of(streams_.begin(), streams_.end(), [&](const auto& other) {
      return other.second.worker == worker && other.first > session;
    });
    if (newer) continue;
    stream.last_delivery = std::max(
        stream.last_delivery, world_->now() + absl::Microseconds(world_->chance.Int(100, 2000)));
    SimWorker* target = workers_.at(worker);
    world_->At(stream.last_delivery, [target, session = session, deliver = std::move(deliver)] {
      deliver(*target, session);
    });
    return;
  }
}

void SimCoordinator::Publish(PublishCommand command) {
  Chance& chance = world_->chance;
  const double tail = faults_->heavy_tails ? chance.HeavyTail() : 1.0;
  const absl::Duration cost = absl::Seconds(std::min(1.0, chance.LogUniform(0.004, 0.06) * tail));
  const uint64_t life = life_;
  nlohmann::json& record = world_->Record("publish_begin");
  record["job"] = command.job;
  record["cost"] = absl::ToInt64Microseconds(cost);
  const auto alive = [this, life] { return life == life_; };
  if (command.request.table.empty()) {
    return world_->After(cost, [this, alive, job = command.job] {
      if (!alive()) return;
      const auto standing = disk_->Standing(job);
      if (standing) return Post(Published{job, *standing, false});
      Post(Published{job, absl::NotFoundError("no prediction stands"), false});
    });
  }
  const auto job = store_.GetJob(command.job);
  if (!job.ok()) return;
  Publishing publishing;
  publishing.request = std::move(command.request);
  publishing.has_test = job->spec.has_test;
  publishing.stamp = Now();
  publishing.cost = cost;
  publishing.alive = alive;
  publishing.done = [this, id = job->id](absl::StatusOr<PublishedPrediction> result) {
    Post(Published{id, std::move(result), false});
  };
  disk_->Publish(std::move(publishing));
}

// As ControlLoop::EndPublishingFor does.
void SimCoordinator::EndPublishing(const std::string& id) {
  const uint64_t life = life_;
  world_->After(absl::Milliseconds(world_->chance.Int(1, 20)), [this, id, life] {
    const auto job = store_.GetJob(id);
    if (life != life_ || !job.ok() || !IsTerminal(job->state)) return;
    disk_->EndPublishing(id, job->prediction ? job->prediction->number : 0,
                         [this, life] { return life == life_; });
  });
}

// In Job::tasks; 0: PREPARE.
template <class T>
int SimCoordinator::PlaceOf(const Job& job, const T& model) {
  for (size_t i = 1; i < job.tasks.size(); ++i) {
    const Task& task = job.tasks[i];
    if (task.fold == model.fold && task.trial == model.trial && task.seed == model.seed) {
      return static_cast<int>(i);
    }
  }
  return 0;
}

void SimCoordinator::RecordCommit(const Turn& turn) {
  for (const WorkerNote& note : turn.notes) {
    nlohmann::json& record = world_->Record("worker_mode");
    record["worker"] = note.id;
    record["mode"] = static_cast<int>(note.mode);
  }
  for (const auto& deletion : turn.mutations.deletions) {
    world_->Record("deleted")["job"] = deletion.job;
  }
  for (const auto& job : turn.mutations.jobs) {
    nlohmann::json& record = world_->Record("job");
    record["job"] = job->id;
    record["request"] = job->request_id;
    record["owner"] = job->owner;
    record["version"] = job->version;
    record["state"] = Name(job->state);
    record["reason"] = Name(job->end_reason);
    record["has_test"] = job->spec.has_test;
    record["core"] = World::Micros(Now());
    record["accepted"] = World::Micros(job->accepted_at);
    record["deadline"] = World::Micros(job->deadline);
    record["finished"] = World::Micros(job->finished_at);
    record["after"] = job->after;
    record["waited"] = absl::ToInt64Microseconds(job->waited);
    record["budget"] = job->spec.budget ? absl::ToInt64Microseconds(*job->spec.budget) : -1;
    record["priority"] = job->spec.priority;
    record["wants"] = job->spec.slots;
    record["spec_folds"] = job->spec.folds;
    record["spec_epochs"] = job->spec.epochs;
    record["spec_subsample"] = job->spec.subsample;
    record["spec_seeds"] = job->spec.seeds;
    record["spec_trials"] = std::max<size_t>(1, job->spec.trials.size());
    nlohmann::json settings = nlohmann::json::array();  // of a search, by trial
    for (const Trial& trial : job->spec.trials) {
      if (job->spec.search.method.empty()) break;
      settings.push_back(trial.settings ? nlohmann::json(*trial.settings) : nlohmann::json());
    }
    record["settings"] = std::move(settings);
    record["revisions"] = job->plans.size();
    record["quality"] = job->prediction ? static_cast<int>(job->prediction->quality) : 0;
    record["number"] = job->prediction ? job->prediction->number : 0;
    record["content"] = job->prediction ? job->prediction->sha256 : "";
    record["models_from"] = job->spec.models_from;
    int complete = 0;
    nlohmann::json members = nlohmann::json::array();  // [task, attempt]
    if (job->prediction) {
      for (const Member& member : job->prediction->members) {
        members.push_back({PlaceOf(*job, member), member.attempt});
        complete += !IsExtra(member) && member.complete;
      }
    }
    record["members"] = std::move(members);
    record["complete"] = complete;
    if (!job->plans.empty()) {
      record["plan"] = {job->plans.back().revision, job->plans.back().folds,
                        job->plans.back().epochs, job->plans.back().row_share,
                        job->plans.back().models};
    }
    record["last_attempt"] = turn.mutations.last_attempt;
    nlohmann::json tasks = nlohmann::json::array();
    for (const Task& task : job->tasks) {
      tasks.push_back({Name(task.state), task.attempt, task.member ? task.member->attempt : 0,
                       task.member ? task.member->oof : "", task.member && task.member->complete,
                       task.seed + task.trial, task.epochs_done, task.trial});
    }
    record["tasks"] = std::move(tasks);
    nlohmann::json starts = nlohmann::json::array();  // [checkpoint, failures, batch] by task
    for (const Task& task : job->tasks) {
      starts.push_back(
          {task.checkpoint ? task.checkpoint->manifest : "", task.failures, task.retry_batch});
    }
    record["starts"] = std::move(starts);
    nlohmann::json attempts = nlohmann::json::array();
    for (const Attempt& attempt : job->attempts) {
      attempts.push_back({attempt.id, PlaceOf(*job, attempt),
                          attempt.ended_at == absl::InfiniteFuture(), Name(attempt.end_reason),
                          attempt.worker, attempt.first_step, SlotCount(attempt)});
    }
    record["attempts"] = std::move(attempts);
    nlohmann::json decisions = nlohmann::json::array();
    for (const Decision& d : job->decisions) {
      const TrialNote::Kind note = d.trial_note.kind;
      const bool leaves_time = note == TrialNote::kNoGain || note == TrialNote::kNoneFits ||
                               note == TrialNote::kAwaitsProposal;
      decisions.push_back({Name(d.rule), d.cause, d.from, d.to, World::Micros(d.at), leaves_time});
    }
    record["decisions"] = std::move(decisions);
  }
  RecordPlacements(turn);
}

// Where the folds of this turn are to run: [attempt, job, [[worker, slots], ...]].
void SimCoordinator::RecordPlacements(const Turn& turn) {
  nlohmann::json all = nlohmann::json::array();
  int64_t last = placed_;
  for (const auto& job : turn.mutations.jobs) {
    for (const Attempt& attempt : job->attempts) {
      if (attempt.id <= placed_ || attempt.slots.empty()) continue;
      nlohmann::json parts = nlohmann::json::array();
      parts.push_back(nlohmann::json::array({attempt.worker, attempt.slots}));
      for (const GangPart& part : attempt.others) {
        parts.push_back(nlohmann::json::array({part.worker, part.slots}));
      }
      all.push_back({attempt.id, job->id, std::move(parts)});
      last = std::max(last, attempt.id);
    }
  }
  placed_ = last;
  if (all.empty()) return;
  nlohmann::json& record = world_->Record("placements");
  record["core"] = World::Micros(Now());
  record["all"] = std::move(all);
}

// A fold is told to make room for another Job.
void SimCoordinator::RecordPreempted(const StopCommand& stop) {
  if (stop.reason != StopReason::kPreempted || stop.mode != StopMode::kDrop) return;
  nlohmann::json& record = world_->Record("preempt_told");
  record["attempt"] = stop.attempt;
  record["by"] = stop.why.substr(stop.why.rfind(' ') + 1);
  record["core"] = World::Micros(Now());
}

void SimCoordinator::RecordUnmatched(const Job& job) {
  const bool unmatched = job.pending_reason == PendingReason::kNoMatchingWorker;
  const auto told = told_.find(job.id);
  if (!unmatched && told == told_.end()) return;
  if (unmatched && told != told_.end() && told->second == job.waits_for) return;
  nlohmann::json& record = world_->Record("told");
  record["job"] = job.id;
  record["unmatched"] = unmatched;
  record["text"] = job.waits_for;
  if (unmatched) {
    told_[job.id] = job.waits_for;
  } else {
    told_.erase(told);
  }
}

}  // namespace traind::simulation
