#include "worker/treefold/tree_trainer.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/job_rules/task_rules.h"
#include "worker/data/random.h"
#include "worker/device/process_memory.h"
#include "worker/task/column_drops.h"
#include "worker/task/failure.h"
#include "worker/treefold/prediction_time.h"
#include "worker/treefold/tree_columns.h"

namespace traind {
namespace {

constexpr absl::Duration kProgressEvery = absl::Milliseconds(100);
constexpr size_t kProbeRounds = 10;
constexpr absl::Duration kProbeTime = absl::Milliseconds(300);
// Rows that are encoded and predicted at once.
constexpr int64_t kRowsAtOnce = 1 << 16;
constexpr absl::Duration kLongestWait = absl::Seconds(30);

}  // namespace

TreeTrainer::TreeTrainer(rank_protocol::Train train, TaskControl& control, EventSink& sink,
                         const Clock& clock)
    : train_(std::move(train)), control_(control), sink_(sink), clock_(clock) {}

TreeTrainer::~TreeTrainer() = default;

absl::Status TreeTrainer::Start() {
  orders_version_ = control_.version();
  orders_ = control_.orders();
  started_ = clock_.MonotonicNow();
  if (orders_.epochs < 1) {
    return absl::InvalidArgumentError(absl::StrCat("epochs: ", orders_.epochs, " is below 1"));
  }
  ResetPeakResident();
  ASSIGN_OR_RETURN(spec_, ParseTreeSpec(train_.spec_json, train_.trial));
  spec_.seed = SeedOfModel(spec_.seed, train_.seed);
  if (train_.rank > 0) return SendStarted(), absl::OkStatus();
  ASSIGN_OR_RETURN(fold_, LoadTreeFold(train_, spec_));
  RETURN_IF_ERROR(StorageError(
      MakeDirs(absl::StrCat(train_.state_dir, "/", AttemptDir(train_.job, train_.attempt)))));
  saver_ = std::make_unique<TreeSaver>(train_, fold_.outputs, sink_, clock_);
  RETURN_IF_ERROR(CreateBooster());
  SaveModelFile();
  SendStarted();
  BeginEpoch();
  progress_at_ = clock_.MonotonicNow();
  progress_rounds_ = rounds_;
  return absl::OkStatus();
}

void TreeTrainer::SaveModelFile() {
  ModelFile file = ModelFileOf(train_, spec_.seed, *fold_.table, fold_.encoder_state);
  if (fold_.lags != nullptr) file.lags = fold_.lags->state();
  saver_->StartModelFile(std::move(file));
}

TreeCheckpoint TreeTrainer::Expected() const {
  TreeCheckpoint expected;
  expected.table_sha256 = fold_.table->schema().content_sha256;
  expected.fold = train_.fold;
  expected.seed = spec_.seed;
  expected.kind = spec_.kind;
  return expected;
}

absl::Status TreeTrainer::CreateBooster() {
  const TreeCheckpoint resumed = FindResume();
  BoosterOptions options;
  options.spec = spec_;
  options.threads = train_.threads;
  options.seed = StreamSeed(spec_.seed, Stream::kWeights, static_cast<uint64_t>(train_.fold));
  options.resume = resumed.trees;
  options.resume_rounds = resumed.rounds;
  ASSIGN_OR_RETURN(booster_, NewBooster(options, fold_.DataOf(spec_)));
  return resumed.rounds > 0 ? Restore(resumed) : absl::OkStatus();
}

// An empty one where the fold starts from its beginning.
TreeCheckpoint TreeTrainer::FindResume() {
  if (train_.resume.empty()) return TreeCheckpoint();
  const Continuation continuation = ContinuationOf(spec_);
  if (continuation == Continuation::kNone) {
    Warn(absl::StrCat("fold ", train_.fold, " starts from the beginning: trees of boosting ",
                      spec_.lightgbm->boosting, " cannot go on from a checkpoint"));
    return TreeCheckpoint();
  }
  std::vector<std::string> warnings;
  absl::StatusOr<TreeCheckpoint> found =
      FindTrees(train_.state_dir, train_.resume, Expected(), warnings);
  for (std::string& warning : warnings) Warn(std::move(warning));
  if (!found.ok()) {
    Warn(absl::StrCat("fold ", train_.fold,
                      " starts from the beginning: ", found.status().message()));
    return TreeCheckpoint();
  }
  if (continuation == Continuation::kOtherDraws) {
    sink_.Send(rank_protocol::LogText{
        "info", absl::StrCat("fold ", train_.fold, " goes on from round ", found->rounds,
                             "; its further draws of rows and columns are others than those of a "
                             "run without interruption, the trees are as good")});
  }
  return *std::move(found);
}

absl::Status TreeTrainer::Restore(const TreeCheckpoint& c) {
  rounds_ = c.rounds;
  epoch_ = c.epochs;
  rounds_in_epoch_ = c.rounds_in_epoch;
  has_best_ = c.has_best;
  best_rounds_ = c.best_rounds;
  best_metric_ = c.best_metric;
  best_epoch_ = c.best_epoch;
  if (!has_best_) return absl::OkStatus();
  best_answers_.resize(fold_.rows.validation.size() * static_cast<size_t>(fold_.outputs));
  RETURN_IF_ERROR(booster_->Predict(fold_.EncodeValidation(fold_.rows.validation.size()),
                                    best_rounds_, absl::MakeSpan(best_answers_)));
  best_smearing_ = fold_.ToValues(spec_.metric, absl::MakeSpan(best_answers_));
  return absl::OkStatus();
}

void TreeTrainer::SendStarted() {
  rank_protocol::Started started;
  started.attempt = train_.attempt;
  started.precision = "fp32";
  started.batch = static_cast<int>(fold_.rows.training.size());
  started.steps_per_epoch = spec_.RoundsPerEpoch();
  started.first_step = rounds_;
  started.start_epoch = static_cast<int>(epoch_);
  started.resolved_settings =
      absl::StrCat("library=", spec_.kind, " threads=", train_.threads, " rounds=", spec_.rounds,
                   " rounds_per_epoch=", spec_.RoundsPerEpoch(), " patience=", spec_.patience);
  sink_.Send(started);
}

absl::StatusOr<Ending> TreeTrainer::TrainUntilStopped() {
  if (train_.rank > 0) return Ending{StopCause::kEpochs, false};
  while (true) {
    ReadOrders();
    const StopCause why = WhyStop();
    if (why != StopCause::kNone) return Ending{why, !orders_.stop || orders_.predict};
    RETURN_IF_ERROR(RunRound());
  }
}

void TreeTrainer::ReadOrders() {
  if (control_.version() == orders_version_) return;
  orders_version_ = control_.version();
  orders_ = control_.orders();
}

StopCause TreeTrainer::WhyStop() {
  if (orders_.stop) return orders_.cause == StopCause::kNone ? StopCause::kTime : orders_.cause;
  if (rounds_ >= spec_.rounds || epoch_ >= orders_.epochs) return StopCause::kEpochs;
  const bool out_of_patience =
      spec_.patience > 0 && has_best_ && rounds_ - best_rounds_ >= spec_.patience;
  if (exhausted_ || out_of_patience) return StopCause::kPatience;
  // A round of a kernel may take seconds: one that would end too late does not begin.
  const absl::Duration next = has_best_ ? round_time_ : absl::ZeroDuration();
  if (clock_.MonotonicNow() + next >= orders_.stop_at) return StopCause::kTime;
  return StopCause::kNone;
}

absl::Status TreeTrainer::RunRound() {
  const absl::Duration began = clock_.MonotonicNow();
  ASSIGN_OR_RETURN(const bool grows, booster_->TrainRound());
  exhausted_ = !grows;
  rounds_ = booster_->rounds();
  RETURN_IF_ERROR(Judge());
  const absl::Duration now = clock_.MonotonicNow();
  round_time_ = now - began;
  if (!probed_) {
    first_rounds_.push_back(now - began);
    absl::Duration total;
    for (const absl::Duration round : first_rounds_) total += round;
    if (first_rounds_.size() >= kProbeRounds || total >= kProbeTime) RETURN_IF_ERROR(SendProbe());
  }
  if (now - progress_at_ >= kProgressEvery) ReportProgress(now);
  const bool epoch_ends = rounds_ - epoch_first_ >= epoch_rounds_ || rounds_ >= spec_.rounds;
  if (epoch_ends || exhausted_) RETURN_IF_ERROR(EndEpoch());
  return SaveWhatIsDue();
}

void TreeTrainer::BeginEpoch() {
  constexpr double kRounding = 1e-9;  // 0.07 of 100 rounds are 7
  const double rounds = orders_.row_share * static_cast<double>(spec_.RoundsPerEpoch());
  epoch_first_ = rounds_ - std::exchange(rounds_in_epoch_, 0);
  epoch_rounds_ = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(rounds - kRounding)));
  epoch_began_ = clock_.MonotonicNow();
}

// The answers of all rounds so far for the validation rows, and whether they are the best ones.
absl::Status TreeTrainer::Judge() {
  const absl::Duration began = clock_.MonotonicNow();
  RETURN_IF_ERROR(booster_->AnswerValidation(answers_));
  Smearing smearing = fold_.ToValues(spec_.metric, absl::MakeSpan(answers_));
  metric_ = fold_.Score(spec_.metric, answers_);
  bool better = !has_best_ || Better(spec_.metric, metric_, best_metric_);
  // Equal scores are common where rows are few: the smaller loss then decides.
  if (!better && !Better(spec_.metric, best_metric_, metric_)) {
    if (!has_best_loss_) best_loss_ = fold_.Loss(best_answers_);
    has_best_loss_ = true;
    better = fold_.Loss(answers_) < best_loss_;
  }
  if (better) {
    has_best_ = true;
    has_best_loss_ = false;
    best_rounds_ = rounds_;
    best_metric_ = metric_;
    best_epoch_ = EpochsDone();
    best_answers_ = answers_;
    best_smearing_ = std::move(smearing);
    best_saved_ = false;
  }
  judge_time_ = clock_.MonotonicNow() - began;
  return absl::OkStatus();
}

absl::Status TreeTrainer::EndEpoch() {
  if (!probed_) RETURN_IF_ERROR(SendProbe());
  for (const float answer : answers_) {
    if (!std::isfinite(answer)) {
      return DivergedError(
          absl::StrCat("the trees' predictions are not finite at round ", rounds_));
    }
  }
  const absl::Duration now = clock_.MonotonicNow();
  rank_protocol::Epoch epoch;
  epoch.attempt = train_.attempt;
  epoch.epoch = static_cast<int>(++epoch_);
  epoch.step = rounds_;
  epoch.val_loss = fold_.Loss(answers_);
  epoch.val_metric = metric_;
  epoch.best_metric = best_metric_;
  epoch.epoch_s = absl::ToDoubleSeconds(now - epoch_began_);
  epoch.evaluate_s = absl::ToDoubleSeconds(judge_time_);
  epoch.row_share = orders_.row_share;
  sink_.Send(epoch);
  BeginEpoch();
  return absl::OkStatus();
}

absl::Status TreeTrainer::SendProbe() {
  probed_ = true;
  std::vector<absl::Duration> sorted(first_rounds_.begin() + (first_rounds_.size() > 1 ? 1 : 0),
                                     first_rounds_.end());
  std::sort(sorted.begin(), sorted.end());
  const auto quantile = [&](double share) {
    const double at = share * static_cast<double>(sorted.size() - 1) + 0.5;
    return absl::ToDoubleSeconds(sorted[static_cast<size_t>(at)]);
  };
  ASSIGN_OR_RETURN(predict_time_, EstimatePrediction(quantile(0.5)));
  rank_protocol::Probe probe;
  probe.attempt = train_.attempt;
  probe.step_s = quantile(0.5);
  probe.step_p90_s = quantile(0.9);
  probe.timed_steps = static_cast<int64_t>(first_rounds_.size());
  probe.evaluate_s = absl::ToDoubleSeconds(judge_time_);
  probe.predict_s = absl::ToDoubleSeconds(predict_time_);
  sink_.Send(probe);
  return absl::OkStatus();
}

// Returns the seconds to predict `rows` with `rounds`: the faster of two calls, as the first one
// may allocate memory and start threads.
absl::StatusOr<double> TreeTrainer::TimePrediction(const TreeMatrix& rows, int64_t rounds) {
  std::vector<float> answers(static_cast<size_t>(rows.rows) * static_cast<size_t>(fold_.outputs));
  double least_s = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 2; ++i) {
    const absl::Duration began = clock_.MonotonicNow();
    RETURN_IF_ERROR(booster_->Predict(rows, rounds, absl::MakeSpan(answers)));
    least_s = std::min(least_s, absl::ToDoubleSeconds(clock_.MonotonicNow() - began));
  }
  return least_s;
}

// Predicts some rows with one round and with the rounds so far. round_s: the time of a round.
absl::StatusOr<absl::Duration> TreeTrainer::EstimatePrediction(double round_s) {
  constexpr size_t kRows = 4096;
  const TreeMatrix encoded = fold_.EncodeValidation(kRows);
  TimedPrediction timed;
  timed.rows = encoded.rows;
  timed.rounds = rounds_;
  ASSIGN_OR_RETURN(timed.one_round_s, TimePrediction(encoded, 1));
  if (rounds_ > 1) {
    ASSIGN_OR_RETURN(timed.all_rounds_s, TimePrediction(encoded, rounds_));
  }
  const absl::Duration left = std::min(orders_.stop_at, orders_.deadline) - clock_.MonotonicNow();
  const double rounds =
      RoundsToCome(std::min(spec_.rounds, orders_.epochs * spec_.RoundsPerEpoch()), rounds_,
                   absl::ToDoubleSeconds(left), round_s);
  const int64_t test_rows = fold_.table->rows(Split::kTest);
  const int64_t answers = test_rows + static_cast<int64_t>(fold_.rows.validation.size());
  return absl::Seconds(PredictionSeconds(timed, rounds, test_rows) +
                       WritingSeconds(answers * fold_.outputs));
}

void TreeTrainer::ReportProgress(absl::Duration now) {
  const double seconds = absl::ToDoubleSeconds(now - progress_at_);
  rank_protocol::Progress progress;
  progress.attempt = train_.attempt;
  progress.step = rounds_;
  progress.epoch = EpochsDone();
  progress.steps_per_s = static_cast<double>(rounds_ - progress_rounds_) / seconds;
  progress.samples_per_s = progress.steps_per_s * static_cast<double>(fold_.rows.training.size());
  progress.peak_memory_bytes = PeakResidentBytes();
  sink_.SendProgress(progress);
  progress_at_ = now;
  progress_rounds_ = rounds_;
}

absl::Status TreeTrainer::SaveWhatIsDue() {
  if (saver_->CheckpointDue()) RETURN_IF_ERROR(StartCheckpoint());
  if (best_saved_ || !saver_->AnswersDue(predict_time_)) return absl::OkStatus();
  ASSIGN_OR_RETURN(TestAnswers test, PredictTest());
  best_saved_ = true;
  saver_->answers().Start(FoldSavedNow(), best_answers_, std::move(test));
  return absl::OkStatus();
}

absl::Status TreeTrainer::StartCheckpoint() {
  TreeCheckpoint checkpoint = Expected();
  checkpoint.job = train_.job;
  checkpoint.attempt = train_.attempt;
  checkpoint.rounds = rounds_;
  checkpoint.epochs = epoch_;
  checkpoint.rounds_in_epoch = rounds_ - epoch_first_;
  checkpoint.epoch = EpochsDone();
  checkpoint.has_best = has_best_;
  checkpoint.best_rounds = best_rounds_;
  checkpoint.best_metric = best_metric_;
  checkpoint.best_epoch = best_epoch_;
  checkpoint.best_smearing = best_smearing_;
  ASSIGN_OR_RETURN(checkpoint.trees, booster_->Save(rounds_));
  if (saver_->StartCheckpoint(std::move(checkpoint))) checkpoint_rounds_ = rounds_;
  return absl::OkStatus();
}

// Predicts the test rows with the best rounds.
absl::StatusOr<TestAnswers> TreeTrainer::PredictTest() {
  const absl::Duration began = clock_.MonotonicNow();
  const int64_t rows = fold_.table->rows(Split::kTest);
  const size_t width = static_cast<size_t>(fold_.outputs);
  TestAnswers answers;
  answers.values.resize(static_cast<size_t>(rows) * width);
  if (fold_.lags != nullptr) {
    RETURN_IF_ERROR(fold_.lags->PredictTest(
        [this](const TreeMatrix& matrix, absl::Span<float> out) {
          return booster_->Predict(matrix, best_rounds_, out);
        },
        absl::MakeSpan(answers.values)));
    predict_time_ = clock_.MonotonicNow() - began;
    return answers;
  }
  for (int64_t begin = 0; begin < rows; begin += kRowsAtOnce) {
    const int64_t end = std::min(rows, begin + kRowsAtOnce);
    RETURN_IF_ERROR(booster_->Predict(fold_.encoder->Encode(*fold_.table, Split::kTest, begin, end),
                                      best_rounds_,
                                      absl::MakeSpan(answers.values)
                                          .subspan(static_cast<size_t>(begin) * width,
                                                   static_cast<size_t>(end - begin) * width)));
  }
  ToOwnUnit(fold_.encoder_state.transforms, best_smearing_, absl::MakeSpan(answers.values));
  predict_time_ = clock_.MonotonicNow() - began;
  return answers;
}

rank_protocol::FoldSaved TreeTrainer::FoldSavedNow() const {
  rank_protocol::FoldSaved saved;
  saved.attempt = train_.attempt;
  saved.fold = train_.fold;
  saved.trial = train_.trial;
  saved.seed = train_.seed;
  saved.epochs_done = EpochsDone();
  saved.score = best_metric_;
  saved.predict_s = absl::ToDoubleSeconds(predict_time_);
  saved.best_epoch = best_epoch_;
  saved.step = rounds_;
  return saved;
}

absl::Status TreeTrainer::Finish(const Ending& ending) {
  if (train_.rank > 0) return absl::OkStatus();
  // A task that comes too late for anything else still answers.
  if (ending.predict && !has_best_) RETURN_IF_ERROR(RunRound());
  // Time before the deadline goes to the answers; the checkpoint is written beside them, or later
  // where an earlier file is still being written.
  RETURN_IF_ERROR(SaveLastCheckpoint());
  if (ending.predict) RETURN_IF_ERROR(PredictAndSave(ending));
  saver_->Wait(kLongestWait);
  RETURN_IF_ERROR(SaveLastCheckpoint());
  saver_->Wait(kLongestWait);
  if (!ending.predict) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::string trees, booster_->Save(best_rounds_));
  saver_->StartBestTrees(std::move(trees), StateFileSuffix(spec_.kind));
  saver_->Wait(kLongestWait);
  return absl::OkStatus();
}

absl::Status TreeTrainer::SaveLastCheckpoint() {
  return rounds_ > 0 && checkpoint_rounds_ != rounds_ ? StartCheckpoint() : absl::OkStatus();
}

void TreeTrainer::WeighColumns(const Ending& ending) {
  if (fold_.lags != nullptr) return;
  const absl::Duration now = clock_.MonotonicNow();
  const std::unique_ptr<ColumnScorer> scorer =
      NewTreeColumnScorer(fold_, *booster_, best_rounds_, spec_.metric, best_smearing_);
  if (!TellsImportance(train_, ending.cause, scorer->Columns().size())) return;
  TellImportance(*scorer, spec_.metric, spec_.seed, train_, sink_, clock_,
                 TimeForImportance(train_.trial, now - started_,
                                   std::min(orders_.stop_at, orders_.deadline) - now));
}

absl::Status TreeTrainer::PredictAndSave(const Ending& ending) {
  WeighColumns(ending);
  const absl::Duration began = clock_.MonotonicNow();
  ASSIGN_OR_RETURN(const TestAnswers test, PredictTest());
  rank_protocol::FoldSaved saved = FoldSavedNow();
  saved.last = true;
  saved.complete = ending.cause == StopCause::kEpochs || ending.cause == StopCause::kPatience;
  saved.stopped_by = ending.cause;
  saved.predict_s = absl::ToDoubleSeconds(clock_.MonotonicNow() - began);
  return saver_->answers().SaveLast(std::move(saved), best_answers_, test);
}

// Something went wrong, but there are good trees: the fold may still count.
void TreeTrainer::Rescue() {
  if (saver_ == nullptr || !has_best_ || best_saved_) return;
  absl::StatusOr<TestAnswers> test = PredictTest();
  if (!test.ok()) return;
  saver_->Wait(kLongestWait);
  saver_->answers().Start(FoldSavedNow(), best_answers_, *std::move(test));
  saver_->Wait(kLongestWait);
}

double TreeTrainer::EpochsDone() const {
  const double done =
      static_cast<double>(rounds_ - epoch_first_) / static_cast<double>(epoch_rounds_);
  return static_cast<double>(epoch_) + std::min(1.0, done);
}

void TreeTrainer::Warn(std::string text) {
  sink_.Send(rank_protocol::LogText{"warning", std::move(text)});
}

}  // namespace traind
