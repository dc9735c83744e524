#include "tests/simulation/sim_rank.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace traind::simulation {

namespace rp = rank_protocol;

// ---- the process ----

void SimProcess::Start() {
  if (program_.one_task) return;
  // LibTorch takes its time, trees do not.
  const int ms = program_.started_ahead ? around_.world->chance.Int(50, 300)
                                        : around_.world->chance.Int(3, 15);
  around_.world->After(absl::Milliseconds(ms), [held = shared_from_this()] { held->SayReady(); });
}

void SimProcess::SayReady() {
  if (!dead_ && over_) around_.say(rp::Ready());
}

void SimProcess::Take(const rp::ToProcess& message) {
  if (dead_) return;
  if (std::holds_alternative<rp::Exit>(message)) {
    around_.world->After(absl::Milliseconds(around_.world->chance.Int(1, 20)),
                         [held = shared_from_this()] { held->Exit(0); });
  } else if (const auto* prepare = std::get_if<rp::Prepare>(&message)) {
    Prepare(*prepare);
  } else if (const auto* train = std::get_if<rp::Train>(&message)) {
    Train(*train);
  } else if (const auto* predict = std::get_if<rp::Predict>(&message)) {
    PredictFile(*predict);
  } else if (const auto* serve = std::get_if<rp::Serve>(&message)) {
    Serve(*serve);
  } else if (const auto* rows = std::get_if<rp::Rows>(&message)) {
    if (!over_ && rows->attempt == attempt_) TakeRows(*rows);
  } else if (const auto* replan = std::get_if<rp::Replan>(&message)) {
    if (!over_ && replan->attempt == attempt_) Replan(*replan);
  } else if (const auto* stop = std::get_if<rp::Stop>(&message)) {
    if (!over_ && stop->attempt == attempt_) Stop(*stop);
  }
}

void SimProcess::Kill() {
  around_.world->After(absl::Milliseconds(around_.world->chance.Int(1, 10)),
                       [held = shared_from_this()] {
                         held->Gone({worker::ExitStatus::kSignalled, 9, ""});
                       });
}

void SimProcess::Exit(int status) { Gone({worker::ExitStatus::kExited, status, ""}); }

void SimProcess::Gone(const worker::ExitStatus& status) {
  if (dead_) return;
  Vanish();
  around_.exited(status);
}

void SimProcess::Vanish() {
  if (std::exchange(dead_, true)) return;
  // The others of its gang notice that after a while.
  if (!over_) TellGang(2000, [](SimProcess& rank) { rank.LoseGang(); });
  over_ = true;
}

void SimProcess::Schedule(absl::Duration delay, Step step, bool chain) {
  around_.world->After(delay,
                       [held = shared_from_this(), step, chain, task = task_, link = chain_] {
                         if (held->dead_ || held->over_ || held->task_ != task) return;
                         if (chain && link != held->chain_) return;
                         (held.get()->*step)();
                       });
}

template <class F>
void SimProcess::Tell(F fact) {
  rp::OfAttempt<F> message;
  static_cast<F&>(message) = std::move(fact);
  message.attempt = attempt_;
  around_.say(message);
}

absl::Time SimProcess::Moment(int64_t ms) const {
  return ms < 0 ? absl::InfiniteFuture() : around_.world->now() + absl::Milliseconds(ms);
}

void SimProcess::BeginTask(int64_t attempt, const std::string& job, int trial) {
  static_cast<SimTask&>(*this) = SimTask();
  ++task_;
  attempt_ = attempt;
  job_ = job;
  over_ = false;
  const JobTruth& truth = around_.truths->at(std::string(absl::StripPrefix(job, "job-")));
  truth_ = trial > 0 ? truth.trials[static_cast<size_t>(trial) - 1] : truth;
}

void SimProcess::DrawFault(int ranks) {
  Chance& chance = around_.world->chance;
  if (chance.Happens(around_.faults->rank_dies / ranks)) {
    Schedule(absl::Seconds(chance.LogUniform(0.02, 20)), &SimProcess::Die, false);
  } else if (chance.Happens(around_.faults->rank_hangs / ranks)) {
    Schedule(absl::Seconds(chance.LogUniform(0.02, 20)), &SimProcess::Hang, false);
  }
}

// ---- PREPARE ----

void SimProcess::Prepare(const rp::Prepare& prepare) {
  BeginTask(prepare.attempt, prepare.job, 0);
  Schedule(absl::Seconds(truth_.read_s * around_.world->chance.Uniform(0.9, 1.2)),
           &SimProcess::Read);
  DrawFault(1);
}

void SimProcess::Read() {
  if (truth_.bad_data) {
    return Fail(AttemptEndReason::kDataError, "train.csv, row 7: 3 fields instead of 4");
  }
  if (around_.disk->full) {
    return Fail(AttemptEndReason::kStorageFull, "no space for the table");
  }
  facts::TableReady ready;
  ready.table = absl::StrCat("cache/", truth_.request, ".table");
  ready.train_rows = 1000;
  ready.test_rows = truth_.spec.has_test ? 100 : 0;
  ready.features = 4;
  ready.read_ms = absl::ToInt64Milliseconds(absl::Seconds(truth_.read_s));
  Tell(std::move(ready));
  Schedule(absl::Milliseconds(around_.world->chance.Int(1, 20)), &SimProcess::FitFloor);
}

void SimProcess::FitFloor() {
  if (around_.disk->full) {
    return Fail(AttemptEndReason::kStorageFull, "no space for the floor");
  }
  around_.disk->WriteFloor(job_);
  around_.world->Record("floor")["job"] = job_;
  Tell(facts::FloorReady{"prior", 0.5});
  Schedule(absl::Seconds(truth_.floor_s * around_.world->chance.Uniform(0.9, 1.3)),
           &SimProcess::BetterFloor);
}

void SimProcess::BetterFloor() {
  if (around_.disk->full) return Finish();
  around_.disk->WriteFloor(job_);
  Tell(facts::FloorReady{"logistic", 0.6});
  Finish();
}

// ---- TRAIN ----

void SimProcess::Train(const rp::Train& train) {
  BeginTask(train.attempt, train.job, train.trial);
  train_ = train;
  epochs_ = train.epochs;
  row_share_ = train.row_share;
  stop_at_ = Moment(train.stop_ms);
  checkpoint_at_ = around_.world->now();
  if (train.world_size < truth_.spec.slots) {
    const double slower = static_cast<double>(truth_.spec.slots) / train.world_size;
    truth_.step_s *= slower;
    truth_.evaluate_s *= slower;
    truth_.predict_s *= slower;
  }
  if (train.rank == 0 && !train.resume.empty()) {
    damaged_ = around_.world->chance.Happens(around_.faults->damaged);
    ReadCheckpoint(train.resume);
  }
  JoinGang();
  if (train.rank == 0) ArmStop();
  DrawFault(train.world_size);
}

void SimProcess::ReadCheckpoint(const std::string& manifest) {
  const auto epochs = around_.disk->Read(manifest);
  if (epochs && absl::SimpleAtod(*epochs, &epochs_done_)) return;
  nlohmann::json& record = around_.world->Record("checkpoint_lost");
  record["attempt"] = attempt_;
  record["manifest"] = manifest;
}

// Rank 0 begins when all are there; the others follow it, and end when it does.
void SimProcess::JoinGang() {
  if (train_.world_size == 1) return Gathered();
  auto& gang = around_.world->gangs[attempt_];
  gang.push_back(weak_from_this());
  Schedule(absl::Milliseconds(train_.rendezvous.timeout_ms), &SimProcess::Unmet, false);
  if (static_cast<int>(gang.size()) < train_.world_size) return;
  for (const auto& member : gang) {
    const auto rank = member.lock();
    if (rank == nullptr || rank->over_ || rank->attempt_ != attempt_) continue;
    rank->gathered_ = true;
    if (rank->train_.rank == 0) rank->Gathered();
  }
}

void SimProcess::Gathered() {
  gathered_ = true;
  Schedule(absl::Seconds(truth_.start_s * around_.world->chance.Uniform(0.8, 1.3)),
           &SimProcess::Begin);
}

void SimProcess::Unmet() {
  if (!gathered_) Fail(AttemptEndReason::kCollectiveTimeout, "not all ranks have joined");
}

void SimProcess::LoseGang() {
  if (!hung_) Fail(AttemptEndReason::kCollectiveTimeout, "another rank has gone");
}

template <class Do>
void SimProcess::TellGang(int most_ms, Do act) {
  if (train_.world_size == 1) return;
  for (const auto& member : around_.world->gangs[attempt_]) {
    const auto rank = member.lock();
    if (rank == nullptr || rank.get() == this || rank->attempt_ != attempt_) continue;
    around_.world->After(absl::Milliseconds(around_.world->chance.Int(1, most_ms)),
                         [rank, act, task = rank->task_] {
                           if (!rank->dead_ && !rank->over_ && rank->task_ == task) act(*rank);
                         });
  }
}

void SimProcess::Begin() {
  if (hung_) return;
  World& world = *around_.world;
  if (train_.world_size > 1) {
    for (const auto& member : world.gangs[attempt_]) {
      const auto rank = member.lock();
      if (rank == nullptr || rank->worker() == worker()) continue;
      world.Record("gang_begin")["attempt"] = attempt_;
      break;
    }
  }
  if (damaged_) {
    world.Record("checkpoint_damaged")["attempt"] = attempt_;
    epochs_done_ = 0;
  }
  RecordEpochs();
  facts::Started started;
  started.precision = "fp32";
  started.batch = 64;
  started.steps_per_epoch = truth_.steps;
  started.start_epoch = static_cast<int>(epochs_done_);
  started.first_step = static_cast<int64_t>(epochs_done_ * static_cast<double>(truth_.steps));
  Tell(std::move(started));
  Schedule(absl::Seconds(1), &SimProcess::Tick, false);
  if (stopping_) return StopNow();
  stepped_ = true;
  const double probe_s = std::min(0.3, truth_.step_s * 20);
  probing_ = true;
  // These steps are training already.
  in_epoch_ = true;
  epoch_from_ = epochs_done_;
  epoch_began_ = world.now();
  epoch_s_ = truth_.step_s * static_cast<double>(truth_.steps);
  Schedule(absl::Seconds(std::max(probe_s, truth_.step_s)), &SimProcess::Probe);
}

void SimProcess::Probe() {
  probing_ = false;
  facts::Probe probed;
  probed.step_s = truth_.step_s * truth_.probe_error * around_.world->chance.Uniform(0.9, 1.1);
  probed.step_p90_s = probed.step_s * 1.4;
  probed.timed_steps = 20;
  probed.evaluate_s = truth_.evaluate_s;
  probed.predict_s = truth_.predict_s * truth_.probe_error;
  Tell(probed);
  if (around_.world->chance.Happens(around_.faults->diverges)) {
    return Fail(AttemptEndReason::kDiverged, "the loss is NaN");
  }
  NextEpoch();
}

void SimProcess::NextEpoch() {
  const bool patience = truth_.early_stop > 0 && epochs_done_ >= truth_.early_stop;
  if (epochs_done_ >= epochs_ || patience) {
    cause_ = patience ? StopCause::kPatience : StopCause::kEpochs;
    stopping_ = true;
    return Predict();
  }
  Chance& chance = around_.world->chance;
  const double noise =
      around_.faults->heavy_tails ? chance.HeavyTail() : chance.Uniform(0.95, 1.05);
  if (!in_epoch_) {
    epoch_began_ = around_.world->now();
    epoch_from_ = epochs_done_;
  }
  epoch_s_ = truth_.step_s * static_cast<double>(truth_.steps) * noise;
  in_epoch_ = true;
  AwaitEpoch();
}

void SimProcess::AwaitEpoch() {
  const double left = std::max(0.0, std::floor(epoch_from_) + row_share_ - epoch_from_);
  const double used_s = absl::ToDoubleSeconds(around_.world->now() - epoch_began_);
  const double left_s = std::max(0.0, left * epoch_s_ - used_s);
  const double evaluated_s = std::max(0.0, used_s - left * epoch_s_);
  Schedule(absl::Seconds(left_s + std::max(0.0, truth_.evaluate_s - evaluated_s)),
           &SimProcess::EndEpoch);
}

// Returns the epochs that a Rank would tell: parts of the rows that an epoch is to have.
double SimProcess::EpochsTold(double done) const {
  const double whole = std::floor(done);
  return whole + std::min(1.0, (done - whole) / row_share_);
}

void SimProcess::EndEpoch() {
  in_epoch_ = false;
  const double trained_s =
      absl::ToDoubleSeconds(around_.world->now() - epoch_began_) - truth_.evaluate_s;
  const double from = epoch_from_ - std::floor(epoch_from_);
  const double rows = std::clamp(from + trained_s / epoch_s_, row_share_, 1.0);
  if (row_share_ < 1 && rows < 0.999) around_.world->Record("short_epoch")["attempt"] = attempt_;
  epochs_done_ = std::floor(epoch_from_) + 1;
  RecordEpochs();
  facts::Epoch done;
  done.epoch = static_cast<int>(epochs_done_);
  done.step = done.epoch * truth_.steps;
  done.val_metric = done.best_metric = truth_.skill * (1 - std::exp(-epochs_done_ / 5));
  done.row_share = row_share_ < 1 ? rows : 1;
  done.epoch_s = epoch_s_ * done.row_share;
  done.evaluate_s = truth_.evaluate_s;
  Tell(done);
  if (around_.world->now() - checkpoint_at_ >= absl::Milliseconds(train_.checkpoint_every_ms) &&
      !SaveCheckpoint()) {
    return;
  }
  absl::Duration pause = absl::ZeroDuration();
  if (around_.world->chance.Happens(truth_.saves)) {
    facts::FoldSaved saved = Predictions(false);
    saved.predict_s = truth_.predict_s;
    SavePredictions(std::move(saved));
    pause = absl::Seconds(truth_.predict_s);
  }
  Schedule(pause, &SimProcess::NextEpoch);
}

void SimProcess::Tick() {
  if (hung_ || stalled_) return;
  Schedule(absl::Seconds(1), &SimProcess::Tick, false);
  if (stopping_ || infers()) return around_.say(rp::LogText{"info", "still at work"});
  facts::Progress progressed;
  double passes = epochs_done_;
  if (in_epoch_) {
    const double done_s = absl::ToDoubleSeconds(around_.world->now() - epoch_began_);
    passes = std::min(epoch_from_ + done_s / epoch_s_, std::floor(epoch_from_) + 0.99 * row_share_);
  }
  progressed.epoch = EpochsTold(passes);
  progressed.step = static_cast<int64_t>(passes * static_cast<double>(truth_.steps));
  progressed.loss = 1;
  Tell(progressed);
}

void SimProcess::Replan(const rp::Replan& replan) {
  if (hung_ || stalled_ || infers()) return;
  if (replan.epochs > 0) epochs_ = replan.epochs;
  if (replan.row_share > 0 && replan.row_share != row_share_) {
    row_share_ = replan.row_share;
    if (in_epoch_ && !probing_ && !stopping_) {
      ++chain_;
      AwaitEpoch();
    }
  }
  if (replan.stop_ms < 0 || train_.rank > 0) return;
  stop_at_ = Moment(replan.stop_ms);
  ArmStop();
}

void SimProcess::ArmStop() {
  if (stop_at_ == absl::InfiniteFuture()) return;
  Schedule(std::max(stop_at_ - around_.world->now(), absl::ZeroDuration()), &SimProcess::TimeIsUp,
           false);
}

void SimProcess::TimeIsUp() {
  // Otherwise it was moved.
  if (around_.world->now() >= stop_at_) StopTraining(StopCause::kTime, /*predict=*/true);
}

void SimProcess::Stop(const rp::Stop& stop) {
  if (infers()) return StopInference(stop.predict);
  if (train_.rank == 0) StopTraining(CauseOf(stop.reason), stop.predict);
}

void SimProcess::StopTraining(StopCause cause, bool predict) {
  if (stopping_ || hung_ || stalled_) return;
  stopping_ = true;
  predicts_ = predict;
  cause_ = cause;
  if (!stepped_) return;  // it looks when it has got ready
  ++chain_;
  if (in_epoch_) {
    const double done = absl::ToDoubleSeconds(around_.world->now() - epoch_began_) / epoch_s_;
    epochs_done_ = std::min(epoch_from_ + done, std::floor(epoch_from_) + 0.999 * row_share_);
  }
  Schedule(absl::Seconds(truth_.step_s * around_.world->chance.Uniform()), &SimProcess::StopNow);
}

void SimProcess::StopNow() {
  if (predicts_) return Predict();
  if (!stepped_) return Finish();
  finishes_ = SaveCheckpoint();
}

void SimProcess::Predict() {
  if (stepped_ && !SaveCheckpoint()) return;
  Schedule(absl::Seconds(truth_.predict_s * around_.world->chance.Uniform(0.9, 1.15)),
           &SimProcess::Predicted);
}

void SimProcess::Predicted() {
  if (around_.disk->full) {
    return Fail(AttemptEndReason::kStorageFull, "no space for predictions");
  }
  const bool complete = cause_ == StopCause::kEpochs || cause_ == StopCause::kPatience;
  facts::FoldSaved saved = Predictions(complete);
  saved.last = true;
  saved.stopped_by = cause_;
  saved.predict_s = truth_.predict_s;
  SavePredictions(std::move(saved));
}

bool SimProcess::SaveCheckpoint() {
  if (around_.disk->full) {
    Fail(AttemptEndReason::kStorageFull, "no space for a checkpoint");
    return false;
  }
  checkpoint_at_ = around_.world->now();
  facts::CheckpointSaved saved;
  saved.step = static_cast<int64_t>(epochs_done_ * static_cast<double>(truth_.steps));
  saved.epoch = EpochsTold(epochs_done_);
  saved.manifest =
      absl::StrCat("jobs/", job_, "/attempts/", attempt_, "/checkpoint-", saved.step, ".json");
  around_.disk->Write(saved.manifest, absl::StrFormat("%.17g", epochs_done_));
  checkpoint_ = std::move(saved);
  Schedule(around_.disk->SyncTime(), &SimProcess::CheckpointSynced, false);
  return true;
}

// It is told of when no loss of power can undo it.
void SimProcess::CheckpointSynced() {
  if (!checkpoint_) return;
  around_.disk->Sync(checkpoint_->manifest);
  Tell(*std::exchange(checkpoint_, std::nullopt));
  if (finishes_) Finish();
}

void SimProcess::SavePredictions(facts::FoldSaved saved) {
  around_.disk->Write(absl::StrCat("jobs/", job_, "/", saved.oof), saved.oof_sha256);
  predictions_ = std::move(saved);
  Schedule(around_.disk->SyncTime(), &SimProcess::PredictionsSynced, false);
}

void SimProcess::PredictionsSynced() {
  if (!predictions_) return;
  around_.disk->Sync(absl::StrCat("jobs/", job_, "/", predictions_->oof));
  const bool last = predictions_->last;
  Tell(*std::exchange(predictions_, std::nullopt));
  if (last) Finish();
}

facts::FoldSaved SimProcess::Predictions(bool complete) const {
  facts::FoldSaved saved;
  saved.fold = train_.fold;
  saved.trial = train_.trial;
  saved.seed = train_.seed;
  saved.complete = complete;
  saved.score = truth_.skill * (1 - std::exp(-epochs_done_ / 5));
  saved.epochs_done = EpochsTold(epochs_done_);
  saved.oof = absl::StrCat("attempts/", attempt_, "/oof.npy");
  saved.oof_sha256 = absl::StrCat(attempt_, "@", epochs_done_);
  return saved;
}

// ---- ends ----

void SimProcess::RecordEpochs() {
  nlohmann::json& record = around_.world->Record("rank_epochs");
  record["attempt"] = attempt_;
  record["epochs"] = epochs_done_;
}

void SimProcess::Finish() {
  over_ = true;
  if (train_.rank == 0) TellGang(50, [](SimProcess& rank) { rank.Finish(); });
  around_.say(rp::Finished{attempt_});
  around_.world->After(absl::Milliseconds(around_.world->chance.Int(1, 20)),
                       [held = shared_from_this()] { held->ReturnToIdle(); });
}

void SimProcess::ReturnToIdle() {
  if (program_.one_task) return Exit(0);
  SayReady();
}

// Its Worker ends it.
void SimProcess::Fail(AttemptEndReason reason, const std::string& message) {
  ++chain_;
  stalled_ = true;
  around_.say(rp::Failed{attempt_, reason, message});
}

// All ranks wait for one that hangs.
void SimProcess::Hang() {
  hung_ = true;
  ++chain_;
  TellGang(20, [](SimProcess& rank) { rank.Stall(); });
}

void SimProcess::Stall() {
  if (std::exchange(stalled_, true)) return;
  ++chain_;
  Schedule(absl::Milliseconds(train_.rendezvous.timeout_ms), &SimProcess::LoseGang, false);
}

void SimProcess::Die() { Gone({worker::ExitStatus::kSignalled, 9, ""}); }

}  // namespace traind::simulation
