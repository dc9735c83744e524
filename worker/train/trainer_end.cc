// How a fold ends: its last checkpoint and its predictions.
#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/predict/predictor.h"
#include "worker/task/column_drops.h"
#include "worker/train/network_columns.h"
#include "worker/train/trainer.h"

namespace traind {

rank_protocol::FoldSaved Trainer::FoldSavedNow() const {
  rank_protocol::FoldSaved saved;
  saved.trial = train_.trial;
  saved.seed = train_.seed;
  saved.attempt = train_.attempt;
  saved.fold = train_.fold;
  saved.epochs_done = EpochsDone();
  saved.score = best_.metric;
  saved.predict_s = absl::ToDoubleSeconds(predict_time_);
  saved.best_epoch = best_epoch_;
  saved.step = step_;
  return saved;
}

absl::Status Trainer::Finish(const Ending& ending) {
  // A task that begins at its end (resumed there, or too late) has not looked yet.
  if (ending.predict && !has_best_) RETURN_IF_ERROR(Validate());
  if (ending.predict && !has_best_) RETURN_IF_ERROR(Validate());  // having fallen back to float32
  if (ending.predict && best_outputs_.empty()) {
    RETURN_IF_ERROR(EvaluateNow(Weights::kBest, best_outputs_, best_smearing_));
  }
  const bool shares = ending.predict && SharesTest();
  if (!gang_->leads()) {
    if (shares) RETURN_IF_ERROR(PredictTestNow(/*last=*/true, gang_->group()).status());
    return absl::OkStatus();
  }
  // Room in the deadline goes to the predictions; the checkpoint is written beside.
  constexpr absl::Duration kLongestWait = absl::Seconds(30);
  RETURN_IF_ERROR(AddLoss());
  ASSIGN_OR_RETURN(Learner::State state, learner_->Save());
  const Checkpoint checkpoint = Capture(std::move(state));
  std::optional<double> score;
  if (validated_at_step_ == step_) score = last_.metric;
  const bool started = saver_->StartCheckpoint(learner_->layout(), checkpoint, score);
  if (ending.predict) {
    const absl::Duration began = clock_.MonotonicNow();
    ASSIGN_OR_RETURN(const TestAnswers test,
                     PredictTestNow(/*last=*/true, shares ? gang_->group() : nullptr));
    RETURN_IF_ERROR(SaveLast(ending, test, clock_.MonotonicNow() - began));
  }
  if (!started && saver_->Wait(kLongestWait)) {
    saver_->StartCheckpoint(learner_->layout(), checkpoint, score);
  }
  saver_->Wait(kLongestWait);
  return absl::OkStatus();
}

// Predicts with the best weights. last: the fold's last answers.
absl::StatusOr<TestAnswers> Trainer::PredictTestNow(bool last, Group* group) {
  const std::string file = gang_->leads() ? saver_->answers().NextTestFile(last) : "";
  ASSIGN_OR_RETURN(TestAnswers answers, PredictTest(*learner_, *data_.encoder, data_.test_media,
                                                    Weights::kBest, data_.outputs, file, group));
  ToOwnUnit(data_.encoder->transforms(), best_smearing_, absl::MakeSpan(answers.values));
  return answers;
}

bool Trainer::SharesTest() const {
  return gang_->group() != nullptr && CanShareTest(*data_.encoder, data_.test_media.get());
}

// Something went wrong, but there are good weights: the fold may still count.
void Trainer::Rescue() {
  if (!gang_->leads() || !has_best_ || predictions_saved_ || best_outputs_.empty()) return;
  const absl::StatusOr<TestAnswers> test = PredictTestNow(/*last=*/false);
  if (!test.ok()) return;
  constexpr absl::Duration kLongestWait = absl::Seconds(10);
  saver_->Wait(kLongestWait);
  saver_->answers().Start(FoldSavedNow(), best_outputs_, *test);
  saver_->Wait(kLongestWait);
}

void Trainer::WeighColumns(const Ending& ending) {
  if (!HasPlainRows(data_)) return;
  const absl::Duration now = clock_.MonotonicNow();
  const std::unique_ptr<ColumnScorer> scorer =
      NewNetworkColumnScorer(data_, *learner_, spec_.metric, best_smearing_);
  if (!TellsImportance(train_, ending.cause, scorer->Columns().size())) return;
  TellImportance(*scorer, spec_.metric, spec_.seed, train_, sink_, clock_,
                 TimeForImportance(train_.trial, now - started_,
                                   std::min(orders_.stop_at, orders_.deadline) - now));
}

absl::Status Trainer::SaveLast(const Ending& ending, const TestAnswers& test,
                               absl::Duration predicted) {
  WeighColumns(ending);
  rank_protocol::FoldSaved saved = FoldSavedNow();
  saved.last = true;
  saved.complete = ending.cause == StopCause::kEpochs || ending.cause == StopCause::kPatience;
  saved.stopped_by = ending.cause;
  saved.predict_s = absl::ToDoubleSeconds(predicted);
  return saver_->answers().SaveLast(std::move(saved), best_outputs_, test);
}

}  // namespace traind
