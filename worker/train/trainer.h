// Trains a fold: from a Train message to the fold's predictions on disk.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/data/sample_order.h"
#include "worker/device/collective.h"
#include "worker/learner/learner.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/event_sink.h"
#include "worker/task/fold_trainer.h"
#include "worker/task/task_control.h"
#include "worker/train/evaluator.h"
#include "worker/train/fold_data.h"
#include "worker/train/fold_saver.h"
#include "worker/train/gang.h"
#include "worker/train/memory_ladder.h"
#include "worker/train/schedule.h"
#include "worker/train/signals.h"
#include "worker/train/step_timer.h"
#include "worker/train/thaw.h"
#include "worker/train/training_spec.h"

namespace traind {

// A network on one Rank. In a gang every rank sends Started; all else is sent by rank 0, which
// alone writes files.
// Threads, errors: those of FoldTrainer.
class Trainer final : public FoldTrainer {
 public:
  // Asked before the forward and backward pass of each micro-batch; an error that it returns is
  // taken as if the pass had ended so. For tests.
  using MicroBatchHook = std::function<absl::Status(const StepInput&)>;
  // References outlive it.
  Trainer(rank_protocol::Train train, TaskControl& control, EventSink& sink, const Clock& clock,
          MicroBatchHook before_micro_batch = nullptr);
  ~Trainer() override;

  absl::Status Start() override;
  absl::StatusOr<Ending> TrainUntilStopped() override;
  absl::Status Finish(const Ending& ending) override;
  void Rescue() override;

 private:
  // Getting ready.
  void SaveModelFile();
  absl::Status JoinGang();
  absl::Status CreateLearner();
  absl::Status Resume();
  absl::Status StartPretrained();
  absl::Status ShareCheckpoint(Checkpoint& checkpoint, bool& found);
  absl::Status CheckFrozenBody(const PretrainedReport& report) const;
  void ChooseBatch(const Checkpoint* resumed);
  double PeakRate() const;
  absl::Status ChooseTrainingPrecision(const Checkpoint* resumed);
  std::string ResolvedSettings() const;
  void SendStarted();

  // The loop.
  absl::Status BeginEpoch();
  absl::Status ChooseFrozen();
  absl::Status TimeWholeStep();
  absl::Status FindLearningRate();
  absl::StatusOr<double> LossOfTestStep(int64_t& position, int64_t& begin, double rate);
  absl::StatusOr<Verdict> BeforeStep();
  absl::Status ValidateWithin(const Verdict& verdict);
  Verdict Decide();
  bool NextStepIsTooLong(absl::Duration now) const;
  absl::Status RunStep();
  absl::Status RunMicroBatches(StepInput step);
  int64_t PassRows(int64_t rows_left) const;
  absl::Status RunMicroBatchesThatFit(const StepInput& step);
  absl::Status MakeRoom(const absl::Status& failed);
  absl::Status ShortenWindow(int64_t steps);
  absl::Status FinishEpoch();
  bool OutOfPatience() const;

  // Looking at what came out.
  absl::Status ReportProgress(absl::Duration now);
  UsageWindow MeasureUsage(absl::Duration now, double gather_s);
  absl::Status AddLoss();
  absl::Status SendProbe();
  // Records that memory made predictions take fewer rows at a time.
  void ReportRowsAtOnce();
  absl::Status Validate();
  // smearing: becomes that of the outputs.
  absl::Status EvaluateNow(Weights which, std::vector<float>& outputs, Smearing& smearing);
  // Validates in the half precision of the training, too, where it is not yet known whether this
  // will do. `outputs`, `smearing` and last_ become what was chosen.
  absl::Status ChooseAnswersIn(std::vector<float>& outputs, Smearing& smearing);
  void AnswerIn(Precision precision);
  absl::Status FallBack();
  void SaveWhatIsDue();
  void StartCheckpoint();

  // The end.
  // Whether all ranks predict the last test answers.
  bool SharesTest() const;
  // Of rank 0 alone, unless the others call it, too: then with `group`.
  absl::StatusOr<TestAnswers> PredictTestNow(bool last, Group* group = nullptr);
  absl::Status SaveLast(const Ending& ending, const TestAnswers& test, absl::Duration predicted);
  void WeighColumns(const Ending& ending);

  Checkpoint Capture(Learner::State state) const;
  absl::Status Restore(const Checkpoint& checkpoint);
  double EpochsDone() const;
  // Rows of an optimizer step.
  int64_t GangStepRows() const { return step_rows_ * gang_->world_size(); }
  int64_t StepsPerEpoch() const;  // of all rows
  // The steps of an epoch as the Plan wants it.
  int64_t EpochSteps() const;
  int64_t EpochRows() const { return std::min(TrainingRows(), EpochSteps() * GangStepRows()); }
  int64_t ScheduleStep() const;
  double LearningRate() const;
  int64_t LayersOf(int64_t epoch) const {
    return LayersInEpoch(epoch, spec_.frozen_epochs, spec_.thaw_layers, learner_->layers());
  }
  // Whether epochs to come train layers of the body that stay as they are now.
  bool ThawsLater() const { return learner_->trained_layers() < LayersOf(planned_epochs_ - 1); }
  // Whether the weights that an epoch ends with belong to the average (train.swa).
  bool AveragesEpoch(int64_t epoch) const {
    constexpr double kRounding = 1e-9;  // 0.7 of 10 epochs are 7
    const double from = (1 - spec_.swa) * static_cast<double>(planned_epochs_);
    return spec_.swa > 0 && static_cast<double>(epoch) > from + kRounding;
  }
  void PlanSchedule();
  // The rows that an epoch over all rows visits.
  int64_t TrainingRows() const {
    return static_cast<int64_t>(data_.rows.training.size()) - rows_left_out_;
  }
  rank_protocol::FoldSaved FoldSavedNow() const;
  void SendDecision(DecisionRule rule, std::string cause, std::string from, std::string to);
  void Warn(std::string text);
  void LookAtLoader(const UsageWindow& usage);

  const rank_protocol::Train train_;
  TaskControl& control_;
  EventSink& sink_;
  const Clock& clock_;

  TrainingSpec spec_;
  std::string pretrained_;  // what of the weights was taken from a file; empty: nothing
  FoldData data_;
  std::unique_ptr<Evaluator> evaluator_;
  const CudaApi* cuda_ = nullptr;
  std::unique_ptr<Group> group_;
  absl::Duration exchange_timeout_;  // of the group
  std::unique_ptr<Gang> gang_;
  std::unique_ptr<Learner> learner_;
  std::unique_ptr<FoldSaver> saver_;  // rank 0's

  // The plan.
  TaskControl::Orders orders_;
  int64_t orders_version_ = 0;
  int64_t planned_epochs_ = 0;
  double planned_row_share_ = 1;  // share of the training rows that an epoch sees
  int64_t batch_ = 0;             // rows of one pass, of this rank
  int64_t step_rows_ = 0;         // rows of an optimizer step, of this rank
  int64_t rows_left_out_ = 0;     // at the end of each epoch
  bool recompute_ = false;
  int threads_ = 1;
  Schedule schedule_;
  bool rate_found_ = false;  // by a range test; its peak

  // The position.
  int64_t step_ = 0;         // optimizer steps done; never goes back
  int64_t epoch_ = 0;        // full epochs done
  int64_t position_ = 0;     // in the epoch's order
  double epochs_seen_ = 0;   // over all rows, in full epochs
  double frozen_seen_ = 0;   // of these, with a body that stayed as it was
  int64_t order_begin_ = 0;  // of this rank's next batch in the learner's order
  bool order_stale_ = true;
  LossSum epoch_loss_, progress_loss_;  // since the epoch began, since the last Progress

  // Early stopping.
  bool has_best_ = false;
  Evaluation best_, last_;
  double best_epoch_ = 0;
  int64_t epochs_without_better_ = 0;
  double patience_metric_ = 0;       // the best one's at the last end of an epoch
  std::vector<float> best_outputs_;  // of the validation rows; empty: to be computed
  Smearing best_smearing_;           // of answers of the best weights
  bool predictions_saved_ = false;   // of the best weights

  // Measured.
  StepTimer timer_;
  bool probed_ = false;
  absl::Duration whole_step_;  // of a step that trains the body, too, while it is frozen
  absl::Duration evaluate_time_;
  absl::Duration predict_time_;        // by all ranks, where they share it
  absl::Duration predict_alone_time_;  // by rank 0 alone
  absl::Duration started_, epoch_began_;
  int64_t validated_at_step_ = -1;
  absl::Duration validated_at_;
  absl::Duration progress_at_;
  int64_t progress_step_ = 0, progress_rows_ = 0, rows_done_ = 0;
  int64_t micro_batches_ = 0, progress_micro_batches_ = 0;
  absl::Duration pause_;  // since the last Progress: time in which no steps were made
  double cpu_s_ = 0;      // of the process, at the last Progress
  std::optional<UsageWatch> usage_;
  std::optional<LoaderWatch> loader_;

  // Falling back to float32.
  std::optional<Checkpoint> good_;  // the last state known to be finite; under AMP
  int bad_windows_ = 0;
  bool fall_back_ = false;

  // Running out of memory.
  const MicroBatchHook before_micro_batch_;
  MemoryLadder ladder_;
  bool exchanging_ = false;         // in a pass whose gradients go to other ranks meanwhile
  int64_t steps_in_precision_ = 0;  // of this run; the same on all ranks
  int64_t rows_at_once_ = 0;        // that the learner predicted at last
  bool answers_in_chosen_ = false;  // the precision of predictions
};

}  // namespace traind
