// Which layers of a fold's network are trained (train.freeze).
#include <absl/strings/str_cat.h>

#include <algorithm>

#include "common/base/status_macros.h"
#include "worker/train/trainer.h"

namespace traind {

// What of the body stays as it is depends on the epoch alone, so a resumed run finds its place.
absl::Status Trainer::ChooseFrozen() {
  const int64_t before = learner_->trained_layers(), layers = learner_->layers();
  const int64_t trained = LayersOf(epoch_);
  if (trained == before) return absl::OkStatus();
  // The same on all ranks, whose plans may differ until they meet.
  if (trained < LayersOf(spec_.epochs - 1) && whole_step_ == absl::ZeroDuration()) {
    RETURN_IF_ERROR(TimeWholeStep());
  }
  RETURN_IF_ERROR(learner_->TrainLayers(trained));
  if (trained < before) return absl::OkStatus();
  // Steps take longer from now on, and memory may run out as in first ones.
  probed_ = false;
  timer_ = StepTimer();
  steps_in_precision_ = 0;
  epochs_without_better_ = 0;
  if (gang_->leads()) {
    const auto text = [layers](int64_t count) {
      return count == 0        ? "the last layer is trained"
             : count == layers ? "all layers are trained"
                               : absl::StrCat("the last layer and ", count, " of ", layers,
                                              " before it are trained");
    };
    SendDecision(DecisionRule::kFreeze,
                 spec_.thaw_layers == 0
                     ? absl::StrCat("train.freeze.epochs: ", spec_.frozen_epochs)
                     : absl::StrCat("train.freeze.thaw_layers: ", spec_.thaw_layers),
                 text(before), text(trained));
  }
  return absl::OkStatus();
}

// The Plan counts on the steps of all epochs, and most of them train the body, too. The state
// stays.
absl::Status Trainer::TimeWholeStep() {
  const int64_t rows = std::min(batch_, TrainingRows());
  ASSIGN_OR_RETURN(const Learner::State state, learner_->Save());
  RETURN_IF_ERROR(learner_->SetOrder(
      absl::MakeConstSpan(data_.rows.training).first(static_cast<size_t>(rows))));
  StepInput step;
  step.rows = rows;
  step.gang_rows = rows * gang_->world_size();
  step.overlap = false;
  for (int timed = 0; timed < 2; ++timed) {  // the first one warms up
    const absl::Duration started = clock_.MonotonicNow();
    RETURN_IF_ERROR(RunMicroBatchesThatFit(step));
    RETURN_IF_ERROR(learner_->Synchronize());
    whole_step_ = clock_.MonotonicNow() - started;
  }
  whole_step_ *= static_cast<double>(step_rows_) / static_cast<double>(rows);
  RETURN_IF_ERROR(learner_->Load(state));
  return learner_->ConsumeLoss().status();
}

}  // namespace traind
