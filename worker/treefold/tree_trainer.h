// Trains a fold of boosted trees: from a Train message to the fold's answers on disk.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "worker/rank_protocol/messages.h"
#include "worker/task/event_sink.h"
#include "worker/task/fold_trainer.h"
#include "worker/task/task_control.h"
#include "worker/treefold/tree_fold.h"
#include "worker/treefold/tree_saver.h"
#include "worker/trees/booster.h"
#include "worker/trees/tree_spec.h"

namespace traind {

// A step is a round, and an epoch of the Plan is a hundredth of the rounds that the spec allows
// (of a shortened epoch, the Plan's share of that). After each round the Job's metric of the
// validation rows is known; the best round predicts.
// In a gang the first rank trains and the others do nothing: a round has threads of its own.
// Threads, errors: those of FoldTrainer.
class TreeTrainer final : public FoldTrainer {
 public:
  // References outlive it.
  TreeTrainer(rank_protocol::Train train, TaskControl& control, EventSink& sink,
              const Clock& clock);
  ~TreeTrainer() override;

  absl::Status Start() override;
  absl::StatusOr<Ending> TrainUntilStopped() override;
  absl::Status Finish(const Ending& ending) override;
  void Rescue() override;

 private:
  // Getting ready.
  void SaveModelFile();
  TreeCheckpoint Expected() const;
  absl::Status CreateBooster();
  TreeCheckpoint FindResume();
  absl::Status Restore(const TreeCheckpoint& checkpoint);
  void SendStarted();

  // The loop.
  void ReadOrders();
  StopCause WhyStop();
  absl::Status RunRound();
  void BeginEpoch();
  absl::Status Judge();
  absl::Status EndEpoch();
  absl::Status SendProbe();
  absl::StatusOr<double> TimePrediction(const TreeMatrix& rows, int64_t rounds);
  absl::StatusOr<absl::Duration> EstimatePrediction(double round_s);
  void ReportProgress(absl::Duration now);
  absl::Status SaveWhatIsDue();
  absl::Status StartCheckpoint();

  absl::Status SaveLastCheckpoint();
  absl::Status PredictAndSave(const Ending& ending);
  void WeighColumns(const Ending& ending);
  absl::StatusOr<TestAnswers> PredictTest();
  rank_protocol::FoldSaved FoldSavedNow() const;
  double EpochsDone() const;
  void Warn(std::string text);

  const rank_protocol::Train train_;
  TaskControl& control_;
  EventSink& sink_;
  const Clock& clock_;

  TreeSpec spec_;
  TreeFold fold_;
  std::unique_ptr<Booster> booster_;
  std::unique_ptr<TreeSaver> saver_;

  // The plan.
  TaskControl::Orders orders_;
  int64_t orders_version_ = 0;
  absl::Duration started_;

  // The position.
  int64_t rounds_ = 0;
  int64_t epoch_ = 0;            // whole ones done
  int64_t epoch_first_ = 0;      // rounds before the running one
  int64_t epoch_rounds_ = 1;     // of the running one
  int64_t rounds_in_epoch_ = 0;  // of a resumed one, done before
  bool exhausted_ = false;       // no tree can be split any further

  // Early stopping.
  std::vector<float> answers_, best_answers_;  // of the validation rows, now and at best
  Smearing best_smearing_;
  double metric_ = 0;
  bool has_best_ = false, has_best_loss_ = false;
  int64_t best_rounds_ = 0;
  double best_metric_ = 0, best_loss_ = 0, best_epoch_ = 0;
  bool best_saved_ = false;         // its answers
  int64_t checkpoint_rounds_ = -1;  // of the newest checkpoint

  // Measured.
  std::vector<absl::Duration> first_rounds_;
  bool probed_ = false;
  absl::Duration round_time_, judge_time_, predict_time_;
  absl::Duration epoch_began_, progress_at_;
  int64_t progress_rounds_ = 0;
};

}  // namespace traind
