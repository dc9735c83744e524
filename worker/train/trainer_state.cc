// A fold's state: taken up from a checkpoint, and written to the next one.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/predict/predictor.h"
#include "worker/train/learner_checkpoint.h"
#include "worker/train/trainer.h"

namespace traind {
namespace {

// Only their names count.
std::map<std::string, absl::Span<const float>> SlotsOf(const std::vector<std::string>& names) {
  std::map<std::string, absl::Span<const float>> slots;
  for (const std::string& name : names) slots[name];
  return slots;
}

}  // namespace

// Rank 0 reads, the others get it from there: they might see another file.
absl::Status Trainer::Resume() {
  Checkpoint checkpoint;
  bool found = false;
  if (gang_->leads() && !train_.resume.empty()) {
    Checkpoint expected;
    expected.table_sha256 = data_.table->schema().content_sha256;
    expected.fold = train_.fold;
    expected.seed = spec_.seed;
    expected.model = NetworkName(spec_.model);
    expected.optimizer = std::string(OptimizerName(spec_.optimizer.kind));
    expected.slots = SlotsOf(learner_->SlotNames());
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
  if (!found) RETURN_IF_ERROR(StartPretrained());
  const Checkpoint* resumed = found ? &checkpoint : nullptr;
  ChooseBatch(resumed);
  schedule_ = MakeSchedule(spec_.schedule, PeakRate(), StepsPerEpoch(), spec_.epochs);
  PlanSchedule();
  const bool recompute = spec_.recompute.value_or(found && checkpoint.recompute);
  recompute_ = recompute && learner_->SetRecompute(true);
  RETURN_IF_ERROR(ChooseTrainingPrecision(resumed));
  recompute_ =
      (recompute || recompute_) && learner_->SetRecompute(true);  // the path may be another
  // Volumes take so much longer in float32 that nobody would wait for it; a threshold drops what
  // it is better by.
  if (data_.volumes() != nullptr && spec_.half_answers) AnswerIn(learner_->precision());
  if (found) RETURN_IF_ERROR(Restore(checkpoint));
  if (spec_.recompute.value_or(false) && !recompute_ && gang_->leads()) {
    Warn(absl::StrCat("train.recompute: on has no effect: on this device an ",
                      NetworkName(spec_.model), " keeps its activations"));
  }
  if (UsesAmp(learner_->precision())) {
    ASSIGN_OR_RETURN(Learner::State state, learner_->Save());
    good_ = Capture(std::move(state));
  }
  return absl::OkStatus();
}

absl::Status Trainer::ShareCheckpoint(Checkpoint& c, bool& found) {
  if (gang_->group() == nullptr) return absl::OkStatus();
  std::string fields = found ? EncodeFields(c) : "";
  std::string names;
  for (const auto& [name, values] : c.slots)
    absl::StrAppend(&names, names.empty() ? "" : ",", name);
  RETURN_IF_ERROR(gang_->ShareText(fields));
  RETURN_IF_ERROR(gang_->ShareText(names));
  found = !fields.empty();
  if (!found) return absl::OkStatus();
  if (!gang_->leads()) {
    ASSIGN_OR_RETURN(c, DecodeFields(fields));
  }
  const size_t size = static_cast<size_t>(TotalSize(learner_->layout()));
  const auto received = std::make_shared<std::vector<std::vector<float>>>();
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    absl::Span<const float>& slot = c.slots[std::string(name)];
    std::vector<float>& values = received->emplace_back(size);
    if (gang_->leads()) values.assign(slot.begin(), slot.end());
    RETURN_IF_ERROR(gang_->group()->Broadcast(absl::MakeSpan(values)));
    if (!gang_->leads()) slot = values;  // the vector moves, its values stay
  }
  if (!gang_->leads()) c.owner = received;
  return absl::OkStatus();
}

// The Worker's wish, else the checkpoint's over all ranks, else by the number of rows.
void Trainer::ChooseBatch(const Checkpoint* resumed) {
  const int64_t world = gang_->world_size();
  const int64_t before = resumed == nullptr ? 0 : resumed->step_rows;
  if (train_.batch > 0) {
    batch_ = train_.batch;
    // In a gang that has lost ranks, each takes more rows of a step.
    if (world < spec_.ranks) {
      const int64_t asked = batch_ * spec_.accumulation * spec_.ranks;
      step_rows_ = ((before > 0 ? before : asked) + world - 1) / world;
      batch_ = std::min(batch_, step_rows_);
    }
  } else if (before > 0) {
    // A step has as many rows as before, in parts that are known to fit.
    step_rows_ = (before + world - 1) / world;
    batch_ = std::min<int64_t>(resumed->batch, step_rows_);
  } else if (spec_.batch > 0) {
    batch_ = spec_.batch;
  } else {
    batch_ = std::max<int64_t>(1, DefaultGangBatch(TrainingRows()) / world);
  }
  batch_ = std::min(batch_, TrainingRows());
  if (step_rows_ == 0) step_rows_ = batch_ * spec_.accumulation;
  if (spec_.model.script.has_value()) {
    rows_left_out_ = RowsLeftOut(TrainingRows(), step_rows_, gang_->world_size());
  }
  if (before > 0 && GangStepRows() != before && gang_->leads()) {
    SendDecision(DecisionRule::kBatch,
                 absl::StrCat("resumed on ", world, " ranks with ", step_rows_,
                              " rows each; the checkpoint has ", resumed->world_size, " with ",
                              before / resumed->world_size),
                 absl::StrCat(before, " rows a step"),
                 absl::StrCat(GangStepRows(), " rows a step"));
  }
}

double Trainer::PeakRate() const {
  const double world = std::max(gang_->world_size(), spec_.ranks);
  switch (spec_.rate_scaling) {
    case RateScaling::kNone:
      return spec_.learning_rate;
    case RateScaling::kLinear:
      return spec_.learning_rate * world;
    case RateScaling::kSqrt:
      return spec_.learning_rate * std::sqrt(world);
  }
  return spec_.learning_rate;
}

Checkpoint Trainer::Capture(Learner::State state) const {
  Checkpoint c;
  c.job = train_.job;
  c.attempt = train_.attempt;
  c.fold = train_.fold;
  c.seed = spec_.seed;
  c.table_sha256 = data_.table->schema().content_sha256;
  c.model = NetworkName(spec_.model);
  c.optimizer = std::string(OptimizerName(spec_.optimizer.kind));
  c.step = step_;
  c.epoch = epoch_;
  c.position = position_;
  c.epochs_seen = epochs_seen_;
  c.frozen_passes = frozen_seen_;
  c.epoch_fraction = EpochsDone();
  c.epoch_loss_sum = epoch_loss_.sum;
  c.epoch_loss_rows = epoch_loss_.weight;
  c.world_size = gang_->world_size();
  c.batch = static_cast<int>(batch_);
  c.step_rows = GangStepRows();
  c.recompute = recompute_;
  c.window = learner_->window() < data_.sample.window ? learner_->window() : 0;
  c.precision = std::string(PrecisionName(learner_->precision()));
  if (answers_in_chosen_) c.answers_in = std::string(PrecisionName(learner_->answers_in()));
  c.planned_epochs = static_cast<int>(planned_epochs_);
  c.warmup_steps = schedule_.warmup_steps;
  c.learning_rate = schedule_.peak;
  c.rate_found = rate_found_;
  c.has_best = has_best_;
  c.best_metric = best_.metric;
  c.best_loss = best_.loss;
  c.best_smearing = best_smearing_;
  c.best_epoch = best_epoch_;
  c.epochs_without_better = epochs_without_better_;
  c.patience_metric = patience_metric_;
  PutLearnerState(std::move(state), c);
  return c;
}

absl::Status Trainer::Restore(const Checkpoint& c) {
  if (c.window > 0 && c.window < learner_->window()) {
    RETURN_IF_ERROR(learner_->ShortenWindow(c.window));
  }
  RETURN_IF_ERROR(learner_->Load(LearnerStateOf(c)));
  step_ = c.step;
  epoch_ = c.epoch;
  position_ = std::min(c.position, TrainingRows());
  epochs_seen_ = c.epochs_seen;
  frozen_seen_ = c.frozen_passes;
  rate_found_ = c.rate_found;
  if (rate_found_) schedule_.peak = c.learning_rate;
  PlanSchedule();
  epoch_loss_ = LossSum{};
  epoch_loss_.sum = c.epoch_loss_sum;
  epoch_loss_.weight = c.epoch_loss_rows;
  has_best_ = c.has_best;
  best_ = Evaluation{};
  best_.metric = c.best_metric;
  best_.loss = c.best_loss;
  best_smearing_ = c.best_smearing;
  best_epoch_ = c.best_epoch;
  best_outputs_.clear();
  if (const auto answers_in = PrecisionByName(c.answers_in)) AnswerIn(*answers_in);
  epochs_without_better_ = c.epochs_without_better;
  patience_metric_ = c.patience_metric;
  validated_at_step_ = position_ == 0 && has_best_ ? step_ : -1;
  predictions_saved_ = false;
  return absl::OkStatus();
}

void Trainer::StartCheckpoint() {
  if (!AddLoss().ok() || fall_back_) return;  // what is not sound is not kept
  absl::StatusOr<Learner::State> state = learner_->Save();
  if (!state.ok()) return Warn(absl::StrCat("no checkpoint: ", state.status().message()));
  std::optional<double> score;
  if (validated_at_step_ == step_) score = last_.metric;
  saver_->StartCheckpoint(learner_->layout(), Capture(*std::move(state)), score);
}

void Trainer::SaveWhatIsDue() {
  if (saver_->CheckpointDue()) StartCheckpoint();
  // Meanwhile the other ranks wait in their next collective.
  if (gang_->group() != nullptr && predict_alone_time_ > exchange_timeout_ / 4) return;
  if (predictions_saved_ || best_outputs_.empty() || !saver_->answers().Due(predict_alone_time_)) {
    return;
  }
  absl::StatusOr<TestAnswers> test = PredictTestNow(/*last=*/false);
  if (!test.ok()) return Warn(absl::StrCat("no predictions: ", test.status().message()));
  predictions_saved_ = true;
  saver_->answers().Start(FoldSavedNow(), best_outputs_, *std::move(test));
}

}  // namespace traind
