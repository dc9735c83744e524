// How a task begins and how it ends; the loop between is in trainer.cc.
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "common/durable_file.h"
#include "common/job_layout.h"
#include "common/status_macros.h"
#include "worker/data/random.h"
#include "worker/device/cuda_api.h"
#include "worker/predict/predictor.h"
#include "worker/train/failure.h"
#include "worker/train/precision_choice.h"
#include "worker/train/trainer.h"

namespace traind {

absl::Status Trainer::Prepare() {
  SetTorchThreads(train_.threads);
  orders_ = control_.orders();
  orders_version_ = control_.version();
  planned_epochs_ = orders_.epochs;
  if (planned_epochs_ < 1) {
    return absl::InvalidArgumentError(absl::StrCat("epochs: ", planned_epochs_, " is below 1"));
  }
  ASSIGN_OR_RETURN(spec_, ParseTrainingSpec(train_.spec_json));
  ASSIGN_OR_RETURN(data_, LoadFold(train_.state_dir, train_.table, train_.job, train_.fold, spec_));
  evaluator_ = std::make_unique<Evaluator>(data_, spec_.metric);
  if (train_.device == "cuda") {
    ASSIGN_OR_RETURN(cuda_, LoadCuda());
  } else if (train_.device != "cpu") {
    return absl::InvalidArgumentError(absl::StrCat("device: \"", train_.device, "\""));
  }
  RETURN_IF_ERROR(JoinGang());
  RETURN_IF_ERROR(CreateLearner());
  if (gang_->leads()) {
    RETURN_IF_ERROR(
        MakeDirs(absl::StrCat(train_.state_dir, "/", AttemptDir(train_.job, train_.attempt))));
    FoldSaverOptions options;
    options.state_dir = train_.state_dir;
    options.job = train_.job;
    options.attempt = train_.attempt;
    options.fold = train_.fold;
    options.outputs = data_.outputs;
    options.checkpoint_every = absl::Milliseconds(train_.checkpoint_every_ms);
    saver_ = std::make_unique<FoldSaver>(options, sink_, clock_);
  }
  RETURN_IF_ERROR(Resume());
  SayStarted();
  validated_at_ = progress_at_ = clock_.MonotonicNow();
  progress_step_ = step_;
  return absl::OkStatus();
}

absl::Status Trainer::JoinGang() {
  if (train_.world_size > 1) {
    GroupOptions options;
    options.host = train_.rendezvous.host;
    options.port = train_.rendezvous.port;
    options.rank = train_.rank;
    options.world_size = train_.world_size;
    options.timeout = absl::Milliseconds(train_.rendezvous.timeout_ms);
    options.cuda = cuda_;
    ASSIGN_OR_RETURN(group_, Group::Join(options));
  }
  gang_ = std::make_unique<Gang>(group_.get());
  return absl::OkStatus();
}

absl::Status Trainer::CreateLearner() {
  LearnerOptions options;
  options.model = spec_.model;
  options.shape = data_.shape();
  if (!spec_.classification) {
    options.objective.loss = LossKind::kMse;
    options.target_mean = {data_.encoder->target_mean()};
    options.target_scale = {data_.encoder->target_scale()};
  }
  options.optimizer.weight_decay = spec_.weight_decay;
  options.seed = StreamSeed(spec_.seed, Stream::kWeights, static_cast<uint64_t>(train_.fold));
  options.cuda = cuda_;
  options.group = group_.get();
  ASSIGN_OR_RETURN(learner_, Learner::Create(options, data_.Encode()));
  return absl::OkStatus();
}

// Rank 0 reads, the others get it from there: they might see another file.
absl::Status Trainer::Resume() {
  Checkpoint checkpoint;
  bool found = false;
  if (gang_->leads() && !train_.resume.empty()) {
    Checkpoint expected;
    expected.table_sha256 = data_.table->schema().content_sha256;
    expected.fold = train_.fold;
    expected.seed = spec_.seed;
    std::vector<std::string> warnings;
    auto loaded =
        FindCheckpoint(train_.state_dir, train_.resume, learner_->layout(), expected, warnings);
    for (std::string& warning : warnings) Warn(std::move(warning));
    found = loaded.ok();
    if (found) checkpoint = std::move(loaded->checkpoint);
    if (!found) {
      Warn(absl::StrCat("fold ", train_.fold,
                        " starts from the beginning: ", loaded.status().message()));
    }
  }
  RETURN_IF_ERROR(ShareCheckpoint(checkpoint, found));
  const Checkpoint* resumed = found ? &checkpoint : nullptr;
  RETURN_IF_ERROR(ChooseBatch(resumed));
  schedule_.peak = spec_.learning_rate;
  schedule_.warmup_steps = WarmupSteps(StepsPerEpoch());
  schedule_.total_steps = StepsPerEpoch() * planned_epochs_;
  RETURN_IF_ERROR(ChooseTrainingPrecision(resumed));
  if (found) RETURN_IF_ERROR(Restore(checkpoint));
  if (UsesAmp(learner_->precision())) {
    ASSIGN_OR_RETURN(Learner::State state, learner_->Save());
    good_ = Capture(std::move(state));
  }
  return absl::OkStatus();
}

absl::Status Trainer::ShareCheckpoint(Checkpoint& c, bool& found) {
  if (gang_->group() == nullptr) return absl::OkStatus();
  const auto precision = PrecisionByName(c.precision).value_or(Precision::kFp32);
  int64_t wire[] = {found,
                    c.step,
                    c.epoch,
                    c.position,
                    c.optimizer_steps,
                    c.batch,
                    c.world_size,
                    static_cast<int64_t>(precision),
                    c.growth_tracker,
                    c.has_best,
                    c.epochs_without_better,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0,
                    0};
  double* doubles[] = {&c.loss_scale,     &c.best_metric,     &c.best_loss,      &c.best_epoch,
                       &c.epoch_loss_sum, &c.epoch_loss_rows, &c.patience_metric};
  static_assert(std::size(doubles) + 11 == std::size(wire));
  for (size_t i = 0; i < std::size(doubles); ++i) std::memcpy(&wire[11 + i], doubles[i], 8);
  RETURN_IF_ERROR(gang_->group()->Broadcast(absl::MakeSpan(wire)));
  found = wire[0] != 0;
  if (!found) return absl::OkStatus();
  c.step = wire[1];
  c.epoch = wire[2];
  c.position = wire[3];
  c.optimizer_steps = wire[4];
  c.batch = static_cast<int>(wire[5]);
  c.world_size = static_cast<int>(wire[6]);
  c.precision = std::string(PrecisionName(static_cast<Precision>(wire[7])));
  c.growth_tracker = wire[8];
  c.has_best = wire[9] != 0;
  c.epochs_without_better = wire[10];
  for (size_t i = 0; i < std::size(doubles); ++i) std::memcpy(doubles[i], &wire[11 + i], 8);
  const size_t size = static_cast<size_t>(TotalSize(learner_->layout()));
  for (const std::string& slot : learner_->SlotNames()) {
    std::vector<float>& values = c.slots[slot];
    values.resize(size);
    RETURN_IF_ERROR(gang_->group()->Broadcast(absl::MakeSpan(values)));
  }
  return absl::OkStatus();
}

// The Worker's wish, else the checkpoint's over all ranks, else by the number of rows.
absl::Status Trainer::ChooseBatch(const Checkpoint* resumed) {
  const int64_t world = gang_->world_size();
  const int64_t before =
      resumed == nullptr ? 0 : static_cast<int64_t>(resumed->batch) * resumed->world_size;
  if (train_.batch > 0) {
    batch_ = train_.batch;
  } else if (before > 0) {
    batch_ = (before + world - 1) / world;
  } else if (spec_.batch > 0) {
    batch_ = spec_.batch;
  } else {
    batch_ = std::max<int64_t>(1, DefaultGangBatch(TrainingRows()) / world);
  }
  batch_ = std::min(batch_, TrainingRows());
  if (before > 0 && batch_ * world != before && gang_->leads()) {
    Say("batch",
        absl::StrCat("resumed on ", world, " ranks with ", batch_,
                     " rows each; the checkpoint has ", resumed->world_size, " with ",
                     resumed->batch),
        absl::StrCat(before, " rows a step"), absl::StrCat(batch_ * world, " rows a step"));
  }
  return absl::OkStatus();
}

absl::Status Trainer::ChooseTrainingPrecision(const Checkpoint* resumed) {
  PrecisionRequest request;
  request.attempt = train_.attempt;
  if (!train_.precision.empty() && train_.precision != "auto") {
    request.wanted = PrecisionByName(train_.precision);
    if (!request.wanted.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("precision: \"", train_.precision, "\""));
    }
  } else if (resumed != nullptr) {
    request.wanted = PrecisionByName(resumed->precision);
  } else {
    request.wanted = spec_.precision;
  }
  if (cuda_ != nullptr) request.compute_capability = cuda_->ComputeCapability();
  request.batch = batch_;
  request.training_rows = TrainingRows();
  request.planned_steps = schedule_.total_steps;
  request.remaining = orders_.stop_at - clock_.MonotonicNow();
  ASSIGN_OR_RETURN(const Precision chosen, ChoosePrecision(request, *learner_, *gang_, sink_));
  if (resumed != nullptr && gang_->leads() && resumed->precision != PrecisionName(chosen)) {
    Say("precision", "resumed in another precision than the checkpoint's", resumed->precision,
        std::string(PrecisionName(chosen)));
  }
  return absl::OkStatus();
}

void Trainer::SayStarted() {
  rank_protocol::Started started;
  started.attempt = train_.attempt;
  started.parameters = TotalSize(learner_->layout());
  started.precision = std::string(PrecisionName(learner_->precision()));
  started.batch = static_cast<int>(batch_);
  started.steps_per_epoch = StepsPerEpoch();
  started.first_step = step_;
  started.start_epoch = static_cast<int>(epoch_);
  sink_.Send(started);
}

Checkpoint Trainer::Capture(Learner::State state) const {
  Checkpoint c;
  c.job = train_.job;
  c.attempt = train_.attempt;
  c.fold = train_.fold;
  c.seed = spec_.seed;
  c.table_sha256 = data_.table->schema().content_sha256;
  c.step = step_;
  c.epoch = epoch_;
  c.position = position_;
  c.epoch_fraction = EpochsDone();
  c.epoch_loss_sum = epoch_loss_.sum;
  c.epoch_loss_rows = epoch_loss_.rows;
  c.world_size = gang_->world_size();
  c.batch = static_cast<int>(batch_);
  c.precision = std::string(PrecisionName(learner_->precision()));
  c.planned_epochs = static_cast<int>(planned_epochs_);
  c.warmup_steps = schedule_.warmup_steps;
  c.learning_rate = schedule_.peak;
  c.optimizer_steps = state.optimizer_steps;
  c.loss_scale = state.loss_scale;
  c.growth_tracker = state.growth_tracker;
  c.has_best = has_best_;
  c.best_metric = best_.metric;
  c.best_loss = best_.loss;
  c.best_epoch = best_epoch_;
  c.epochs_without_better = epochs_without_better_;
  c.patience_metric = patience_metric_;
  c.slots = std::move(state.slots);
  if (!has_best_) c.slots[kBestWeightsSlot] = c.slots[kWeightsSlot];
  return c;
}

absl::Status Trainer::Restore(const Checkpoint& c) {
  Learner::State state;
  state.slots = c.slots;
  state.optimizer_steps = c.optimizer_steps;
  state.loss_scale = c.loss_scale;
  state.growth_tracker = c.growth_tracker;
  RETURN_IF_ERROR(learner_->Load(state));
  step_ = c.step;
  epoch_ = c.epoch;
  position_ = std::min(c.position, TrainingRows());
  epoch_loss_ = LossSum{};
  epoch_loss_.sum = c.epoch_loss_sum;
  epoch_loss_.rows = c.epoch_loss_rows;
  has_best_ = c.has_best;
  best_ = Evaluation{};
  best_.metric = c.best_metric;
  best_.loss = c.best_loss;
  best_epoch_ = c.best_epoch;
  best_outputs_.clear();
  epochs_without_better_ = c.epochs_without_better;
  patience_metric_ = c.patience_metric;
  validated_at_step_ = position_ == 0 && has_best_ ? step_ : -1;
  predictions_saved_ = false;
  return absl::OkStatus();
}

void Trainer::StartCheckpoint() {
  if (!TakeLoss().ok() || fall_back_) return;  // what is not sound is not kept
  absl::StatusOr<Learner::State> state = learner_->Save();
  if (!state.ok()) return Warn(absl::StrCat("no checkpoint: ", state.status().message()));
  const std::vector<float>& weights = state->slots[kWeightsSlot];
  const bool sound =
      std::all_of(weights.begin(), weights.end(), [](float w) { return std::isfinite(w); });
  if (sound) saver_->StartCheckpoint(learner_->layout(), Capture(*std::move(state)));
}

void Trainer::SaveWhatIsDue() {
  if (saver_->CheckpointDue()) StartCheckpoint();
  // Meanwhile the other ranks wait in their next collective.
  const absl::Duration most = absl::Milliseconds(train_.rendezvous.timeout_ms) / 4;
  if (gang_->group() != nullptr && predict_time_ > most) return;
  if (predictions_saved_ || best_outputs_.empty() || !saver_->PredictionsDue(predict_time_)) {
    return;
  }
  absl::StatusOr<std::vector<float>> test =
      PredictTest(*learner_, *data_.encoder, Weights::kBest, data_.outputs);
  if (!test.ok()) return Warn(absl::StrCat("no predictions: ", test.status().message()));
  predictions_saved_ = true;
  saver_->StartPredictions(FoldSavedNow(), best_outputs_, *std::move(test));
}

rank_protocol::FoldSaved Trainer::FoldSavedNow() const {
  rank_protocol::FoldSaved saved;
  saved.attempt = train_.attempt;
  saved.fold = train_.fold;
  saved.epochs_done = EpochsDone();
  saved.score = best_.metric;
  saved.predict_s = absl::ToDoubleSeconds(predict_time_);
  return saved;
}

absl::Status Trainer::Finish(const Ending& ending) {
  // A task that begins at its end (resumed there, or too late) has not looked yet.
  if (ending.predict && !has_best_) RETURN_IF_ERROR(Validate());
  if (ending.predict && !has_best_) RETURN_IF_ERROR(Validate());  // having fallen back to float32
  if (ending.predict && best_outputs_.empty()) {
    RETURN_IF_ERROR(EvaluateNow(Weights::kBest, best_outputs_));
  }
  if (!gang_->leads()) return absl::OkStatus();
  // Room in the deadline goes to the predictions; the checkpoint is written beside.
  constexpr absl::Duration kLongestWait = absl::Seconds(30);
  RETURN_IF_ERROR(TakeLoss());
  ASSIGN_OR_RETURN(Learner::State state, learner_->Save());
  const Checkpoint checkpoint = Capture(std::move(state));
  const bool started = saver_->StartCheckpoint(learner_->layout(), checkpoint);
  if (ending.predict) RETURN_IF_ERROR(PredictAndSave(ending));
  if (!started && saver_->Wait(kLongestWait)) {
    saver_->StartCheckpoint(learner_->layout(), checkpoint);
  }
  saver_->Wait(kLongestWait);
  return absl::OkStatus();
}

// Something went wrong, but there are good weights: the fold may still count.
void Trainer::RescuePredictions() {
  if (!gang_->leads() || !has_best_ || predictions_saved_ || best_outputs_.empty()) return;
  const absl::StatusOr<std::vector<float>> test =
      PredictTest(*learner_, *data_.encoder, Weights::kBest, data_.outputs);
  if (!test.ok()) return;
  constexpr absl::Duration kLongestWait = absl::Seconds(10);
  saver_->Wait(kLongestWait);
  saver_->StartPredictions(FoldSavedNow(), best_outputs_, *test);
  saver_->Wait(kLongestWait);
}

absl::Status Trainer::PredictAndSave(const Ending& ending) {
  const absl::Duration started = clock_.MonotonicNow();
  ASSIGN_OR_RETURN(const std::vector<float> test,
                   PredictTest(*learner_, *data_.encoder, Weights::kBest, data_.outputs));
  rank_protocol::FoldSaved saved = FoldSavedNow();
  saved.last = true;
  saved.complete = ending.cause == StopCause::kEpochs || ending.cause == StopCause::kPatience;
  saved.stopped_by = StopCauseName(ending.cause);
  saved.predict_s = absl::ToDoubleSeconds(clock_.MonotonicNow() - started);
  return saver_->SaveLast(std::move(saved), best_outputs_, test);
}

}  // namespace traind
