#include "worker/train/trainer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/data/random.h"
#include "worker/data/sample_order.h"
#include "worker/data/volume_source.h"
#include "worker/device/cuda_api.h"
#include "worker/device/guard.h"
#include "worker/device/process_memory.h"
#include "worker/task/failure.h"

namespace traind {
namespace {

constexpr absl::Duration kProgressEvery = absl::Milliseconds(100);
constexpr int64_t kProbeSteps = 10;
constexpr absl::Duration kProbeTime = absl::Milliseconds(300);
// Within an epoch that long a validation pass is worth it, so that there is
// something to predict with before its end.
constexpr absl::Duration kValidateEvery = absl::Seconds(10);
constexpr int kValidateShare = 20;  // and takes a twentieth of the time at most
// fp16: overflows of single batches are the scaler's to handle.
constexpr int kMostBadWindows = 3;
// Memory most likely runs out in the first steps. A rank can take a step again only while none of
// its gradients have left it.
constexpr int64_t kStepsBeforeOverlap = 3;

}  // namespace

Trainer::Trainer(rank_protocol::Train train, TaskControl& control, EventSink& sink,
                 const Clock& clock, MicroBatchHook before_micro_batch)
    : train_(std::move(train)),
      control_(control),
      sink_(sink),
      clock_(clock),
      before_micro_batch_(std::move(before_micro_batch)) {}

Trainer::~Trainer() = default;

absl::StatusOr<Ending> Trainer::TrainUntilStopped() {
  if (OutOfPatience()) return Ending{StopCause::kPatience, true};  // resumed at its end
  while (epoch_ < planned_epochs_) {
    RETURN_IF_ERROR(BeginEpoch());
    while (position_ < EpochRows() && !order_stale_) {
      ASSIGN_OR_RETURN(const Verdict verdict, BeforeStep());
      if (verdict.fall_back) RETURN_IF_ERROR(FallBack());
      if (verdict.validate) RETURN_IF_ERROR(ValidateWithin(verdict));
      if (verdict.stop != StopCause::kNone) return Ending{verdict.stop, verdict.predict};
      if (order_stale_ || position_ >= EpochRows()) break;
      RETURN_IF_ERROR(RunStep());
    }
    if (order_stale_) continue;
    RETURN_IF_ERROR(FinishEpoch());
    if (OutOfPatience()) return Ending{StopCause::kPatience, true};
  }
  return Ending{StopCause::kEpochs, true};
}

// Between the ends of epochs, or before a stop.
absl::Status Trainer::ValidateWithin(const Verdict& verdict) {
  RETURN_IF_ERROR(Validate());
  if (gang_->leads() && verdict.stop == StopCause::kNone) SaveWhatIsDue();
  return absl::OkStatus();
}

// The epoch's order is made anew, also in its middle after a resume.
absl::Status Trainer::BeginEpoch() {
  RETURN_IF_ERROR(ChooseFrozen());
  if (spec_.find_rate && !rate_found_ && !learner_->frozen()) RETURN_IF_ERROR(FindLearningRate());
  std::vector<int32_t> order = data_.rows.training;
  if (spec_.shuffle) order = EpochOrder(order, spec_.seed, train_.fold, epoch_);
  const uint64_t media_seed =
      StreamSeed(spec_.seed, Stream::kMedia, static_cast<uint64_t>(train_.fold),
                 static_cast<uint64_t>(epoch_));
  RETURN_IF_ERROR(learner_->SetOrder(
      RankShare(order, position_, gang_->rank(), gang_->world_size()), media_seed));
  order_begin_ = 0;
  order_stale_ = false;
  epoch_began_ = clock_.MonotonicNow();
  return absl::OkStatus();
}

double Trainer::LearningRate() const {
  return learner_->frozen() ? spec_.frozen_rate : schedule_.LearningRate(ScheduleStep());
}

absl::StatusOr<Verdict> Trainer::BeforeStep() {
  Verdict verdict;
  if (!gang_->MeetsAt(step_)) return verdict;
  // In fp16 the scaler hides a rank's overflows from the others.
  if (UsesAmp(learner_->precision())) RETURN_IF_ERROR(gang_->ShareFlag(fall_back_));
  if (gang_->leads()) verdict = Decide();
  RETURN_IF_ERROR(gang_->Agree(step_, timer_.recent(), verdict));
  if (verdict.epochs > 0) planned_epochs_ = verdict.epochs;
  if (verdict.row_share > 0) planned_row_share_ = verdict.row_share;
  if (verdict.epochs > 0 || verdict.row_share > 0) PlanSchedule();
  return verdict;
}

// Whether there would be no time left to predict behind the next step. The first step says little,
// as it is slower than others.
bool Trainer::NextStepIsTooLong(absl::Duration now) const {
  return timer_.steps() > 1 &&
         now + timer_.recent() + evaluate_time_ + predict_time_ >= orders_.deadline;
}

// Rank 0's, at every meeting: has to be cheap.
Verdict Trainer::Decide() {
  Verdict verdict;
  if (control_.version() != orders_version_) {
    orders_version_ = control_.version();
    orders_ = control_.orders();
    verdict.epochs = orders_.epochs;
    verdict.row_share = orders_.row_share;
  }
  const absl::Duration now = clock_.MonotonicNow();
  if (orders_.stop) {
    verdict.stop = orders_.cause;
    verdict.predict = orders_.predict;
  } else if (now >= orders_.stop_at || NextStepIsTooLong(now)) {
    verdict.stop = StopCause::kTime;
  } else if (verdict.epochs > 0 && epoch_ >= verdict.epochs) {
    verdict.stop = StopCause::kEpochs;  // the new plan lies behind us
  }
  verdict.fall_back = fall_back_;
  const bool unseen = validated_at_step_ != step_;
  if (verdict.stop != StopCause::kNone) {
    // A last look at the weights that stand now, if the deadline leaves room for it.
    const bool affordable = now + 2 * evaluate_time_ + predict_time_ < orders_.deadline;
    verdict.validate = verdict.predict && unseen && (!has_best_ || affordable);
  } else {
    const absl::Duration since = now - validated_at_;
    verdict.validate =
        unseen && since >= kValidateEvery && since >= kValidateShare * evaluate_time_;
    if (saver_->CheckpointDue() && validated_at_step_ >= 0 && !verdict.validate) SaveWhatIsDue();
  }
  return verdict;
}

absl::Status Trainer::RunStep() {
  const absl::Duration started = clock_.MonotonicNow();
  const BatchShare share =
      ShareOfBatch(EpochRows(), position_, step_rows_, gang_->rank(), gang_->world_size());
  StepInput step;
  step.begin = order_begin_;
  step.rows = share.rank_rows;
  step.gang_rows = share.gang_rows;
  step.learning_rate = LearningRate();
  step.overlap = steps_in_precision_ >= kStepsBeforeOverlap;
  RETURN_IF_ERROR(RunMicroBatchesThatFit(step));
  if (!probed_) RETURN_IF_ERROR(learner_->Synchronize());
  position_ += share.gang_rows;
  order_begin_ += share.rank_rows;
  rows_done_ += share.gang_rows;
  ++step_;
  ++steps_in_precision_;
  const absl::Duration now = clock_.MonotonicNow();
  timer_.Add(now - started);
  const int64_t enough = learner_->steps_before_pace() + 2;
  if (!probed_ && (timer_.steps() >= kProbeSteps ||
                   (timer_.steps() >= enough && timer_.total() >= kProbeTime))) {
    probed_ = true;
    if (gang_->leads()) RETURN_IF_ERROR(SendProbe());
  }
  if (now - progress_at_ >= kProgressEvery) RETURN_IF_ERROR(ReportProgress(now));
  return absl::OkStatus();
}

absl::Status Trainer::RunMicroBatchesThatFit(const StepInput& step) {
  absl::Status taken = RunMicroBatches(step);
  while (!taken.ok()) {
    RETURN_IF_ERROR(MakeRoom(taken));
    taken = RunMicroBatches(step);
  }
  return absl::OkStatus();
}

// One optimizer step, in as many micro-batches as this rank's share of it needs; at least one,
// as the others wait for it.
absl::Status Trainer::RunMicroBatches(StepInput step) {
  const int64_t end = step.begin + step.rows;
  for (uint64_t part = 0; part == 0 || step.begin < end; ++part) {
    step.rows = PassRows(end - step.begin);
    step.last = step.begin + step.rows >= end;
    step.dropout_seed =
        StreamSeed(spec_.seed, Stream::kDropout, static_cast<uint64_t>(train_.fold),
                   static_cast<uint64_t>(step_), static_cast<uint64_t>(gang_->rank()) | part << 16);
    exchanging_ = step.last && step.overlap && learner_->ExchangesInBackward();
    if (before_micro_batch_ != nullptr) RETURN_IF_ERROR(before_micro_batch_(step));
    RETURN_IF_ERROR(learner_->Step(step));
    step.begin += step.rows;
    ++micro_batches_;
  }
  return absl::OkStatus();
}

// Modules of users may have batch norm, which fails on a single row: where one would be left for
// the last pass, the pass before it gives a row to it.
int64_t Trainer::PassRows(int64_t rows_left) const {
  if (!spec_.model.script.has_value() || rows_left != batch_ + 1) {
    return std::min(batch_, rows_left);
  }
  return batch_ > 2 ? batch_ - 1 : rows_left;
}

// After a pass that failed for lack of memory: what the ladder gives up next. The
// weights are as before the step, so it is taken again. Where gradients travel while
// the backward pass runs, the others may have some of it already: too late.
absl::Status Trainer::MakeRoom(const absl::Status& failed) {
  if (FaultOf(failed) != Fault::kOutOfMemory) return failed;
  if (exchanging_) return failed;
  const bool can_recompute =
      !recompute_ && spec_.recompute.value_or(true) && learner_->SetRecompute(true);
  MemoryLadder::Means means;
  means.can_recompute = can_recompute;
  // Ranks of one gang have windows alike, and the others do not know.
  if (spec_.shorten_sequences && gang_->group() == nullptr) means.window = learner_->window();
  const auto rung = ladder_.Next(batch_, step_rows_, means);
  if (!rung.has_value()) {
    return OutOfMemoryError(
        absl::StrCat("memory does not suffice for one row at a time: ", failed.message()));
  }
  if (can_recompute && !rung->recompute) learner_->SetRecompute(false);
  recompute_ = recompute_ || rung->recompute;
  batch_ = rung->batch;
  RETURN_IF_ERROR(learner_->AbandonStep());
  RETURN_IF_ERROR(learner_->ConsumeLoss().status());  // that of its first passes would count twice
  if (rung->window > 0) RETURN_IF_ERROR(ShortenWindow(rung->window));
  if (cuda_ != nullptr) cuda_->EmptyCache();
  SendDecision(DecisionRule::kMemory,
               absl::StrCat("out of memory at step ", step_, " of rank ", gang_->rank(), ": ",
                            failed.message()),
               rung->from, rung->to);
  return absl::OkStatus();
}

// The best weights were trained on longer windows than the model sees from now on, so they no
// longer count.
absl::Status Trainer::ShortenWindow(int64_t steps) {
  RETURN_IF_ERROR(learner_->ShortenWindow(steps));
  has_best_ = false;
  best_outputs_.clear();
  predictions_saved_ = false;
  validated_at_step_ = -1;
  epochs_without_better_ = 0;
  patience_metric_ = std::numeric_limits<double>::quiet_NaN();
  return absl::OkStatus();
}

absl::Status Trainer::FinishEpoch() {
  RETURN_IF_ERROR(AddLoss());
  const LossSum loss = std::exchange(epoch_loss_, LossSum{});
  const absl::Duration trained = clock_.MonotonicNow() - epoch_began_;
  const int64_t steps = (position_ + GangStepRows() - 1) / GangStepRows();
  const double rows = static_cast<double>(steps) / static_cast<double>(StepsPerEpoch());
  ++epoch_;
  position_ = 0;
  epochs_seen_ += rows;
  if (learner_->frozen()) frozen_seen_ += rows;
  PlanSchedule();
  if (AveragesEpoch(epoch_)) RETURN_IF_ERROR(learner_->AverageWeights());
  RETURN_IF_ERROR(Validate());
  if (order_stale_) return absl::OkStatus();  // fell back: this epoch is undone
  const bool waits = ThawsLater();            // better ones are sure to come
  const bool better = waits || epoch_ == 1 || Better(spec_.metric, best_.metric, patience_metric_);
  epochs_without_better_ = better ? 0 : epochs_without_better_ + 1;
  patience_metric_ = best_.metric;
  if (!gang_->leads()) return absl::OkStatus();
  rank_protocol::Epoch message;
  message.attempt = train_.attempt;
  message.epoch = static_cast<int>(epoch_);
  message.step = step_;
  message.train_loss = loss.mean();
  message.val_loss = last_.loss;
  message.val_metric = last_.metric;
  message.best_metric = best_.metric;
  message.epoch_s = absl::ToDoubleSeconds(trained);
  message.evaluate_s = absl::ToDoubleSeconds(evaluate_time_);
  message.row_share = rows;
  message.head_only = waits;
  sink_.Send(message);
  if (spec_.checkpoint_epochs > 0 && epoch_ % spec_.checkpoint_epochs == 0) {
    constexpr absl::Duration kLongestWait = absl::Seconds(10);  // for the one before it
    saver_->Wait(kLongestWait);
    StartCheckpoint();
  }
  SaveWhatIsDue();
  return absl::OkStatus();
}

bool Trainer::OutOfPatience() const {
  return spec_.patience > 0 && epochs_without_better_ >= spec_.patience;
}

absl::Status Trainer::AddLoss() {
  ASSIGN_OR_RETURN(const LossSum window, learner_->ConsumeLoss());
  for (LossSum* sum : {&epoch_loss_, &progress_loss_}) {
    sum->sum += window.sum;
    sum->weight += window.weight;
    sum->gather_s += window.gather_s;
    sum->gradient_norm = window.gradient_norm;
    sum->loss_scale = window.loss_scale;
  }
  if (std::isfinite(window.sum)) {
    bad_windows_ = 0;
    return absl::OkStatus();
  }
  if (!UsesAmp(learner_->precision())) {
    return DivergedError(absl::StrCat("the training loss is not finite at step ", step_, " (epoch ",
                                      EpochsDone(), ")"));
  }
  ++bad_windows_;
  fall_back_ = learner_->precision() == Precision::kBf16 || bad_windows_ >= kMostBadWindows;
  return absl::OkStatus();
}

absl::Status Trainer::ReportProgress(absl::Duration now) {
  RETURN_IF_ERROR(AddLoss());
  const LossSum window = std::exchange(progress_loss_, LossSum{});
  const UsageWindow usage = MeasureUsage(now, window.gather_s);
  LookAtLoader(usage);
  if (gang_->leads()) {
    const double seconds = usage.wall_s;
    rank_protocol::Progress progress;
    progress.attempt = train_.attempt;
    progress.step = step_;
    progress.epoch = EpochsDone();
    progress.loss = window.mean();
    progress.lr = LearningRate();
    progress.steps_per_s = static_cast<double>(step_ - progress_step_) / seconds;
    progress.samples_per_s = static_cast<double>(rows_done_ - progress_rows_) / seconds;
    progress.data_wait = std::min(1.0, window.gather_s / seconds);
    progress.exchange = std::min(1.0, usage.exchange_s / seconds);
    progress.pause = std::min(1.0, usage.pause_s / seconds);
    progress.utilisation = Utilisation(usage, threads_, cuda_ != nullptr);
    progress.gradient_norm = window.gradient_norm;
    progress.loss_scale = window.loss_scale;
    progress.peak_memory_bytes = PeakResidentBytes();
    if (cuda_ != nullptr) progress.peak_device_bytes = cuda_->PeakMemory();
    sink_.SendProgress(progress);
    for (std::string& warning : usage_->Add(usage)) Warn(std::move(warning));
  }
  progress_at_ = now;
  progress_step_ = step_;
  progress_rows_ = rows_done_;
  return absl::OkStatus();
}

// Each rank for itself: what a batch has does not depend on the number of threads.
void Trainer::LookAtLoader(const UsageWindow& usage) {
  const int threads = learner_->loader_threads();
  if (threads == 0) return;
  const auto change = loader_->Add(usage, threads);
  if (!change) return;
  learner_->AddLoaderThreadsUpTo(change->threads);
  if (!gang_->leads()) return;
  SendDecision(
      DecisionRule::kLoading,
      absl::StrFormat("training waited for its batches in %.0f %% of the time", 100 * change->wait),
      absl::StrCat(threads, threads == 1 ? " thread" : " threads"),
      absl::StrCat(change->threads, " threads"));
}

// Since the last Progress.
UsageWindow Trainer::MeasureUsage(absl::Duration now, double gather_s) {
  timespec cpu{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
  const double cpu_s = absl::ToDoubleSeconds(absl::DurationFromTimespec(cpu));
  UsageWindow usage;
  usage.wall_s = absl::ToDoubleSeconds(now - progress_at_);
  usage.cpu_s = cpu_s - std::exchange(cpu_s_, cpu_s);
  usage.gather_s = gather_s;
  if (gang_->group() != nullptr) {
    usage.exchange_s = absl::ToDoubleSeconds(gang_->group()->ConsumeTime());
  }
  usage.pause_s = absl::ToDoubleSeconds(std::exchange(pause_, absl::ZeroDuration()));
  usage.micro_batches = micro_batches_ - std::exchange(progress_micro_batches_, micro_batches_);
  return usage;
}

void Trainer::ReportRowsAtOnce() {
  const int64_t before = std::exchange(rows_at_once_, learner_->rows_at_once());
  if (before == rows_at_once_) return;
  SendDecision(DecisionRule::kMemory,
               absl::StrCat("predictions of rank ", gang_->rank(), " ran out of memory"),
               absl::StrCat(before, " rows at a time"),
               absl::StrCat(rows_at_once_, " rows at a time"));
}

// One validation pass on this rank alone, over some of the rows where they are many.
absl::Status Trainer::SendProbe() {
  constexpr size_t kMostRows = 2048;
  const std::vector<int32_t>& validation = data_.rows.validation;
  // A volume is many patches.
  const size_t rows = std::min(validation.size(), data_.volumes() == nullptr ? kMostRows : 1);
  std::vector<float> outputs(rows * static_cast<size_t>(data_.outputs));
  const absl::Duration started = clock_.MonotonicNow();
  RETURN_IF_ERROR(learner_->Predict(Weights::kLast, absl::MakeConstSpan(validation).first(rows),
                                    absl::MakeSpan(outputs)));
  ReportRowsAtOnce();
  const double row_s =
      absl::ToDoubleSeconds(clock_.MonotonicNow() - started) / static_cast<double>(rows);
  const double test_rows = static_cast<double>(data_.table->rows(Split::kTest));
  const double validation_rows = static_cast<double>(validation.size());
  const double world = gang_->world_size();
  const double values = data_.volumes() == nullptr
                            ? (validation_rows + test_rows) * data_.outputs
                            : static_cast<double>(data_.volumes()->set().TestVoxels()) *
                                  static_cast<double>(data_.volumes()->set().values());
  // Files: encoding, digest and fsync of what a disk of 100 MB/s takes.
  const double write_s = 0.02 + values * sizeof(float) / 100e6;
  // Each rank validates a part of the rows.
  const double validate_s = row_s * validation_rows / world;
  evaluate_time_ = absl::Seconds(validate_s);
  predict_alone_time_ = absl::Seconds(validate_s + row_s * test_rows + write_s);
  predict_time_ = SharesTest() ? absl::Seconds(validate_s + row_s * test_rows / world + write_s)
                               : predict_alone_time_;
  rank_protocol::Probe probe;
  probe.attempt = train_.attempt;
  // While layers stay as they are: the mean over the epochs to come, at most.
  const auto of_all_epochs = [this](absl::Duration step) {
    if (!ThawsLater()) return absl::ToDoubleSeconds(step);
    int64_t alike = epoch_;
    while (LayersOf(alike) == learner_->trained_layers()) ++alike;
    const double share =
        static_cast<double>(alike - epoch_) / static_cast<double>(planned_epochs_ - epoch_);
    return absl::ToDoubleSeconds(share * step + (1 - share) * whole_step_);
  };
  const int64_t slower = learner_->steps_before_pace();
  probe.step_s = of_all_epochs(timer_.Quantile(0.5, slower));
  probe.step_p90_s = of_all_epochs(timer_.Quantile(0.9, slower));
  probe.timed_steps = timer_.steps();
  probe.evaluate_s = absl::ToDoubleSeconds(evaluate_time_);
  probe.predict_s = absl::ToDoubleSeconds(predict_time_);
  sink_.Send(probe);
  return absl::OkStatus();
}

absl::Status Trainer::Validate() {
  const absl::Duration started = clock_.MonotonicNow();
  std::vector<float> outputs;
  Smearing smearing;
  RETURN_IF_ERROR(learner_->ShareBuffers());
  RETURN_IF_ERROR(EvaluateNow(Weights::kLast, outputs, smearing));
  last_ = evaluator_->Evaluate(outputs);
  validated_at_ = clock_.MonotonicNow();
  validated_at_step_ = step_;
  evaluate_time_ = validated_at_ - started;
  pause_ += evaluate_time_;
  if (!last_.finite) {
    if (UsesAmp(learner_->precision())) return FallBack();
    return DivergedError(absl::StrCat("the model's predictions are not finite at step ", step_,
                                      " (epoch ", EpochsDone(), ")"));
  }
  RETURN_IF_ERROR(ChooseAnswersIn(outputs, smearing));
  // Equal metrics are common where rows are few: the smaller loss then decides.
  const bool better =
      !has_best_ || Better(spec_.metric, last_.metric, best_.metric) ||
      (!Better(spec_.metric, best_.metric, last_.metric) && last_.loss < best_.loss);
  if (better) {
    RETURN_IF_ERROR(learner_->KeepBest());
    has_best_ = true;
    best_ = last_;
    best_epoch_ = EpochsDone();
    best_outputs_ = std::move(outputs);
    best_smearing_ = std::move(smearing);
    predictions_saved_ = false;
  }
  if (UsesAmp(learner_->precision())) {
    ASSIGN_OR_RETURN(Learner::State state, learner_->Save());
    good_ = Capture(std::move(state));
  }
  return absl::OkStatus();
}

// From half to whole precision, from the last state that was sound.
absl::Status Trainer::FallBack() {
  const std::string from(PrecisionName(learner_->precision()));
  fall_back_ = false;
  bad_windows_ = 0;
  RETURN_IF_ERROR(learner_->SetPrecision(Precision::kFp32));
  steps_in_precision_ = 0;
  const int64_t step = step_;
  RETURN_IF_ERROR(Restore(*good_));
  step_ = step;  // checkpoints are named by it
  AnswerIn(Precision::kFp32);
  RETURN_IF_ERROR(learner_->ConsumeLoss().status());
  order_stale_ = true;
  gang_->MeetNext();
  if (gang_->leads()) {
    SendDecision(DecisionRule::kPrecision, absl::StrCat("the loss was not finite at step ", step),
                 from, "fp32");
  }
  good_.reset();
  return absl::OkStatus();
}

// Shortened in its middle, an epoch may have had more than it was to have.
double Trainer::EpochsDone() const {
  const double done = static_cast<double>(position_) / static_cast<double>(EpochRows());
  return static_cast<double>(epoch_) + std::min(1.0, done);
}

int64_t Trainer::StepsPerEpoch() const {
  return (TrainingRows() + GangStepRows() - 1) / GangStepRows();
}

int64_t Trainer::EpochSteps() const {
  constexpr double kRounding = 1e-9;  // 0.07 of 100 steps are 7
  const double steps = planned_row_share_ * static_cast<double>(StepsPerEpoch());
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(steps - kRounding)), 1,
                             StepsPerEpoch());
}

// Where the schedule is; unlike step_ in steps of the size that is taken now.
int64_t Trainer::ScheduleStep() const {
  return std::llround((epochs_seen_ - frozen_seen_) * static_cast<double>(StepsPerEpoch())) +
         position_ / GangStepRows();
}

// The end moves with the Plan, and with epochs that had more or less than it wants now.
void Trainer::PlanSchedule() {
  const int64_t begun =
      std::llround((epochs_seen_ - frozen_seen_) * static_cast<double>(StepsPerEpoch()));
  const int64_t from = std::max<int64_t>(epoch_, spec_.frozen_epochs);  // is not frozen
  schedule_.total_steps = std::max<int64_t>(1, begun + (planned_epochs_ - from) * EpochSteps());
}

void Trainer::SendDecision(DecisionRule rule, std::string cause, std::string from, std::string to) {
  rank_protocol::Decision decision;
  decision.attempt = train_.attempt;
  decision.rule = rule;
  decision.cause = std::move(cause);
  decision.from = std::move(from);
  decision.to = std::move(to);
  sink_.Send(decision);
}

void Trainer::Warn(std::string text) {
  sink_.Send(rank_protocol::LogText{"warning", std::move(text)});
}

}  // namespace traind
