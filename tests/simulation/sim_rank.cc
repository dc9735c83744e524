// The Ranks' part of SimWorker: what a PREPARE and a TRAIN do, and how they end.
#include "tests/simulation/sim_rank.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/publish/fold_member.h"

namespace traind::simulation {

// ---- PREPARE ----

void SimWorker::Read(Rank& rank) {
  if (rank.truth->bad_data) {
    return End(rank, AttemptEndReason::kDataError, "train.csv, row 7: 3 fields instead of 4");
  }
  if (disk_->full) return End(rank, AttemptEndReason::kStorageFull, "no space for the table");
  facts::TableReady ready;
  ready.table = absl::StrCat("cache/", rank.job->request_id, ".table");
  ready.train_rows = 1000;
  ready.test_rows = rank.truth->spec.has_test ? 100 : 0;
  ready.features = 4;
  ready.read_ms = absl::ToInt64Milliseconds(absl::Seconds(rank.truth->read_s));
  Say(rank.attempt, std::move(ready));
  Schedule(rank, absl::Milliseconds(world_->chance.Int(1, 20)), &SimWorker::FitFloor);
}

void SimWorker::FitFloor(Rank& rank) {
  if (disk_->full) return End(rank, AttemptEndReason::kStorageFull, "no space for the floor");
  disk_->WriteFloor(rank.job->id);
  PublishRequest request;
  request.job = rank.job->id;
  request.spec_folds = rank.job->spec.folds;
  disk_->Publish(request, rank.truth->spec.has_test, world_->wall()).IgnoreError();
  nlohmann::json& record = world_->Record("floor");
  record["job"] = rank.job->id;
  Say(rank.attempt, facts::FloorReady{"prior", 0.5});
  Schedule(rank, absl::Seconds(rank.truth->floor_s * world_->chance.Uniform(0.9, 1.3)),
           &SimWorker::BetterFloor);
}

void SimWorker::BetterFloor(Rank& rank) {
  Say(rank.attempt, facts::FloorReady{"logistic", 0.6});
  End(rank, AttemptEndReason::kCompleted, "");
}

// ---- TRAIN ----

// A part of a gang that spans Workers: it waits for the others, follows rank 0, and ends when
// another part does.
void SimWorker::JoinGang(const StartCommand& command, const std::shared_ptr<Rank>& rank) {
  rank->spans = true;
  rank->first_rank = command.first_rank;
  std::weak_ptr<Rank> held = rank;
  world_->gangs[rank->attempt].push_back([this, held](bool well) {
    const auto part = held.lock();
    if (part == nullptr || part->over || !part->met) return;
    if (!well) return LoseGang(*part);
    if (part->first_rank > 0) End(*part, AttemptEndReason::kCompleted, "");
  });
  Schedule(*rank, absl::Seconds(rank->truth->start_s * world_->chance.Uniform(0.8, 1.3)),
           &SimWorker::Gathered);
  if (rank->first_rank == 0) ArmStop(*rank);
}

void SimWorker::Gathered(Rank& rank) {
  rank.gathered = true;
  if (session_ != 0) Send(GangReady{options_.id, session_, rank.attempt, 4000});
}

void SimWorker::LoseGang(Rank& rank) {
  End(rank, AttemptEndReason::kCollectiveTimeout, "another rank has gone");
}

void SimWorker::DropPart(Rank& rank) { End(rank, AttemptEndReason::kShutdown, ""); }

// The others notice it after a while.
void SimWorker::LeaveGang(const Rank& rank, bool well) {
  if (!rank.spans) return;
  for (const auto& hear : world_->gangs[rank.attempt]) {
    world_->After(absl::Milliseconds(world_->chance.Int(1, well ? 50 : 2000)),
                  [hear, well] { hear(well); });
  }
}

void SimWorker::Begin(Rank& rank) {
  if (rank.damaged) {
    world_->Record("checkpoint_damaged")["attempt"] = rank.attempt;
    rank.epochs_done = 0;
  }
  RecordEpochs(rank);
  facts::Started started;
  started.precision = "fp32";
  started.batch = 64;
  started.steps_per_epoch = rank.truth->steps;
  started.start_epoch = static_cast<int>(rank.epochs_done);
  started.first_step =
      static_cast<int64_t>(rank.epochs_done * static_cast<double>(rank.truth->steps));
  Say(rank.attempt, std::move(started));
  rank.stepped = true;
  const double probe_s = std::min(0.3, rank.truth->step_s * 20);
  rank.probing = true;
  // These steps are training already.
  rank.in_epoch = true;
  rank.epoch_from = rank.epochs_done;
  rank.epoch_began = world_->now();
  rank.epoch_s = rank.truth->step_s * static_cast<double>(rank.truth->steps);
  Schedule(rank, absl::Seconds(std::max(probe_s, rank.truth->step_s)), &SimWorker::Probe);
  Schedule(rank, absl::Seconds(1), &SimWorker::Tick, false);
}

void SimWorker::Probe(Rank& rank) {
  rank.probing = false;
  const JobTruth& truth = *rank.truth;
  facts::Probe probed;
  probed.step_s = truth.step_s * truth.probe_error * world_->chance.Uniform(0.9, 1.1);
  probed.step_p90_s = probed.step_s * 1.4;
  probed.timed_steps = 20;
  probed.evaluate_s = truth.evaluate_s;
  probed.predict_s = truth.predict_s * truth.probe_error;
  Say(rank.attempt, probed);
  if (world_->chance.Happens(faults_->diverges)) {
    return End(rank, AttemptEndReason::kDiverged, "the loss is NaN");
  }
  NextEpoch(rank);
}

void SimWorker::NextEpoch(Rank& rank) {
  const JobTruth& truth = *rank.truth;
  const bool patience = truth.early_stop > 0 && rank.epochs_done >= truth.early_stop;
  if (rank.epochs_done >= rank.epochs || patience) {
    rank.complete = true;
    rank.stopping = true;
    return Predict(rank);
  }
  const double noise =
      faults_->heavy_tails ? world_->chance.HeavyTail() : world_->chance.Uniform(0.95, 1.05);
  if (!rank.in_epoch) {
    rank.epoch_began = world_->now();
    rank.epoch_from = rank.epochs_done;
  }
  rank.epoch_s = truth.step_s * static_cast<double>(truth.steps) * noise;
  rank.in_epoch = true;
  AwaitEpoch(rank);
}

void SimWorker::AwaitEpoch(Rank& rank) {
  const double left = std::max(0.0, std::floor(rank.epoch_from) + rank.row_share - rank.epoch_from);
  const double used_s = absl::ToDoubleSeconds(world_->now() - rank.epoch_began);
  const double left_s = std::max(0.0, left * rank.epoch_s - used_s);
  const double evaluated_s = std::max(0.0, used_s - left * rank.epoch_s);
  Schedule(rank, absl::Seconds(left_s + std::max(0.0, rank.truth->evaluate_s - evaluated_s)),
           &SimWorker::EndEpoch);
}

// Returns the epochs that a Rank would tell: parts of the rows that an epoch is to have.
double SimWorker::EpochsTold(const Rank& rank, double done) {
  const double whole = std::floor(done);
  return whole + std::min(1.0, (done - whole) / rank.row_share);
}

void SimWorker::EndEpoch(Rank& rank) {
  const JobTruth& truth = *rank.truth;
  rank.in_epoch = false;
  const double trained_s =
      absl::ToDoubleSeconds(world_->now() - rank.epoch_began) - truth.evaluate_s;
  const double from = rank.epoch_from - std::floor(rank.epoch_from);
  const double rows = std::clamp(from + trained_s / rank.epoch_s, rank.row_share, 1.0);
  if (rank.row_share < 1 && rows < 0.999) {
    nlohmann::json& record = world_->Record("short_epoch");
    record["attempt"] = rank.attempt;
  }
  rank.epochs_done = std::floor(rank.epoch_from) + 1;
  RecordEpochs(rank);
  facts::Epoch done;
  done.epoch = static_cast<int>(rank.epochs_done);
  done.step = done.epoch * truth.steps;
  done.val_metric = done.best_metric = truth.skill * (1 - std::exp(-rank.epochs_done / 5));
  done.row_share = rank.row_share < 1 ? rows : 1;
  done.epoch_s = rank.epoch_s * done.row_share;
  done.evaluate_s = truth.evaluate_s;
  Say(rank.attempt, done);
  if (world_->now() - rank.checkpoint_at >= rank.job->spec.checkpoint_every &&
      !SaveCheckpoint(rank)) {
    return;
  }
  absl::Duration pause = absl::ZeroDuration();
  if (world_->chance.Happens(truth.saves)) {
    facts::FoldSaved saved = Predictions(rank, false);
    saved.predict_s = truth.predict_s;
    Say(rank.attempt, std::move(saved));
    pause = absl::Seconds(truth.predict_s);
  }
  Schedule(rank, pause, &SimWorker::NextEpoch);
}

void SimWorker::Tick(Rank& rank) {
  if (rank.stopping || rank.hung) return;
  facts::Progress progressed;
  double passes = rank.epochs_done;
  if (rank.in_epoch) {
    const double done_s = absl::ToDoubleSeconds(world_->now() - rank.epoch_began);
    passes = std::min(rank.epoch_from + done_s / rank.epoch_s,
                      std::floor(rank.epoch_from) + 0.99 * rank.row_share);
  }
  progressed.epoch = EpochsTold(rank, passes);
  progressed.step = static_cast<int64_t>(passes * static_cast<double>(rank.truth->steps));
  progressed.loss = 1;
  Say(rank.attempt, progressed, false);
  Schedule(rank, absl::Seconds(1), &SimWorker::Tick, false);
}

void SimWorker::ArmStop(Rank& rank) {
  if (rank.stop_at == absl::InfiniteFuture()) return;
  Schedule(rank, rank.stop_at - world_->now(), &SimWorker::TimeIsUp, false);
}

void SimWorker::TimeIsUp(Rank& rank) {
  if (world_->now() < rank.stop_at || rank.hung || rank.stopping) return;  // it was moved
  rank.stopped_for = AttemptEndReason::kStoppedInTime;
  StopTraining(rank);
}

void SimWorker::StopTraining(Rank& rank) {
  if (rank.stopping || rank.hung) return;
  rank.stopping = true;
  ++rank.chain;
  if (!rank.stepped) return End(rank, rank.stopped_for, "stopped before its first step");
  if (rank.in_epoch) {
    const double done = absl::ToDoubleSeconds(world_->now() - rank.epoch_began) / rank.epoch_s;
    rank.epochs_done =
        std::min(rank.epoch_from + done, std::floor(rank.epoch_from) + 0.999 * rank.row_share);
  }
  Schedule(rank, absl::Seconds(rank.truth->step_s * world_->chance.Uniform()), &SimWorker::Predict);
}

void SimWorker::Predict(Rank& rank) {
  if (!SaveCheckpoint(rank)) return;
  Schedule(rank, absl::Seconds(rank.truth->predict_s * world_->chance.Uniform(0.9, 1.15)),
           &SimWorker::Predicted);
}

void SimWorker::Predicted(Rank& rank) {
  if (disk_->full) return End(rank, AttemptEndReason::kStorageFull, "no space for predictions");
  facts::FoldSaved saved = Predictions(rank, rank.complete);
  saved.last = true;
  saved.stopped_by = rank.complete ? StopCause::kEpochs : StopCause::kTime;
  saved.predict_s = rank.truth->predict_s;
  if (session_ == 0) PublishAlone(rank, MemberOf(rank.attempt, saved));
  Say(rank.attempt, std::move(saved));
  End(rank, rank.complete ? AttemptEndReason::kCompleted : rank.stopped_for, "");
}

void SimWorker::Dropped(Rank& rank) {
  if (rank.kind == TaskKind::kTrain && rank.stepped && !SaveCheckpoint(rank)) return;
  End(rank, AttemptEndReason::kShutdown, "");
}

bool SimWorker::SaveCheckpoint(Rank& rank) {
  if (disk_->full) {
    End(rank, AttemptEndReason::kStorageFull, "no space for a checkpoint");
    return false;
  }
  rank.checkpoint_at = world_->now();
  facts::CheckpointSaved saved;
  saved.step = static_cast<int64_t>(rank.epochs_done * static_cast<double>(rank.truth->steps));
  saved.epoch = EpochsTold(rank, rank.epochs_done);
  saved.manifest = absl::StrCat("jobs/", rank.job->id, "/attempts/", rank.attempt, "/checkpoint-",
                                saved.step, ".json");
  disk_->checkpoints[saved.manifest] = rank.epochs_done;
  Say(rank.attempt, std::move(saved));
  return true;
}

facts::FoldSaved SimWorker::Predictions(const Rank& rank, bool complete) {
  facts::FoldSaved saved;
  saved.fold = rank.fold;
  saved.trial = rank.trial;
  saved.seed = rank.seed;
  saved.complete = complete;
  saved.score = rank.truth->skill * (1 - std::exp(-rank.epochs_done / 5));
  saved.epochs_done = EpochsTold(rank, rank.epochs_done);
  saved.oof = absl::StrCat("attempts/", rank.attempt, "/oof.npy");
  saved.oof_sha256 = absl::StrCat(rank.attempt, "@", rank.epochs_done);
  return saved;
}

void SimWorker::PublishAlone(Rank& rank, const Member& member) {
  PublishRequest request;
  request.job = rank.job->id;
  request.spec_folds = rank.job->spec.folds;
  request.plan_cut = rank.plan_cut;
  request.members.push_back(member);
  if (disk_->Publish(request, rank.truth->spec.has_test, world_->wall()).ok()) {
    published_alone_.insert(rank.job->id);
  }
}

// ---- ends ----

void SimWorker::RecordEnd(const Rank& rank) {
  nlohmann::json& record = world_->Record(rank.first_rank == 0 ? "rank_end" : "part_end");
  record["attempt"] = rank.attempt;
  record["worker"] = options_.id;
  if (rank.kind == TaskKind::kTrain && rank.first_rank == 0) record["epochs"] = rank.epochs_done;
}

void SimWorker::RecordEpochs(const Rank& rank) {
  nlohmann::json& record = world_->Record("rank_epochs");
  record["attempt"] = rank.attempt;
  record["epochs"] = rank.epochs_done;
}

void SimWorker::AtDeadline(Rank& rank) {
  if (world_->now() < rank.deadline) return;  // it has moved
  End(rank, AttemptEndReason::kDeadline, "killed at the deadline");
}

void SimWorker::Hang(Rank& rank) {
  rank.hung = true;
  ++rank.chain;
  Schedule(rank, absl::Seconds(world_->chance.Uniform(3, 6)), &SimWorker::FoundHung, false);
}

void SimWorker::FoundHung(Rank& rank) { End(rank, AttemptEndReason::kHung, "no step for long"); }

void SimWorker::Die(Rank& rank) { End(rank, AttemptEndReason::kRankDied, "signal 9"); }

void SimWorker::End(Rank& rank, AttemptEndReason reason, const std::string& message) {
  if (rank.over) return;
  rank.over = true;
  RecordEnd(rank);
  Say(rank.attempt, facts::Ended{reason, message});
  // That of rank 0 by order ends the others, too.
  const bool well = rank.first_rank == 0 && (rank.complete || rank.stopping) &&
                    reason != AttemptEndReason::kStorageFull;
  LeaveGang(rank, well);
  ranks_.erase(rank.attempt);
}

}  // namespace traind::simulation
