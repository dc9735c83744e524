// A fold's own learning rate (train.find_learning_rate).
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>

#include "common/base/status_macros.h"
#include "worker/data/random.h"
#include "worker/data/sample_order.h"
#include "worker/train/rate_sweep.h"
#include "worker/train/trainer.h"

namespace traind {
namespace {

constexpr int64_t kMostSteps = 100, kFewestSteps = 20, kTimedSteps = 3;
constexpr int kShareOfTime = 20;  // a twentieth of what is left,
constexpr absl::Duration kMostTime = absl::Seconds(30);
constexpr int64_t kOrderOfTest = -1;  // of the rows; no epoch has this number

}  // namespace

// All ranks take the same steps, and leave the state as it was.
absl::Status Trainer::FindLearningRate() {
  rate_found_ = true;
  ASSIGN_OR_RETURN(const Learner::State state, learner_->Save());
  const absl::Duration started = clock_.MonotonicNow();
  int64_t position = 0, begin = 0;
  for (int64_t timed = 0; timed < kTimedSteps; ++timed) {
    RETURN_IF_ERROR(LossOfTestStep(position, begin, 0).status());
  }
  const absl::Duration taken = (clock_.MonotonicNow() - started) / kTimedSteps;
  const absl::Duration allowed =
      std::min(kMostTime, (orders_.stop_at - clock_.MonotonicNow()) / kShareOfTime);
  int64_t steps = allowed / kMostSteps > taken
                      ? kMostSteps
                      : static_cast<int64_t>(absl::FDivDuration(allowed, taken));
  if (gang_->group() != nullptr) {
    RETURN_IF_ERROR(gang_->group()->Broadcast(absl::MakeSpan(&steps, 1)));
  }
  const bool sgd = spec_.optimizer.kind == OptimizerKind::kSgd;
  std::optional<double> found;
  if (steps >= kFewestSteps) {
    RateSweep test(sgd ? 1e-6 : 1e-7, sgd ? 10 : 1, steps);
    bool goes_on = true;
    while (goes_on) {
      ASSIGN_OR_RETURN(const double loss, LossOfTestStep(position, begin, test.Rate()));
      goes_on = test.Add(loss);
    }
    found = test.Steepest();
  }
  RETURN_IF_ERROR(learner_->Load(state));
  RETURN_IF_ERROR(learner_->ConsumeLoss().status());
  pause_ += clock_.MonotonicNow() - started;
  const double before = schedule_.peak;
  if (found.has_value()) schedule_.peak = *found;
  if (gang_->leads()) {
    const std::string cause =
        steps < kFewestSteps ? "there is no time for a range test"
        : !found.has_value()
            ? absl::StrCat("a range test of ", steps, " steps: no loss fell")
            : absl::StrCat("a range test of ", steps, " steps: there the loss fell fastest");
    SendDecision(DecisionRule::kLearningRate, cause, absl::StrFormat("%.2g", before),
                 absl::StrFormat("%.2g", schedule_.peak));
  }
  return absl::OkStatus();
}

// The mean loss of a step over all ranks, which has the same bits on each. position: in the order
// of the test, which begins again at its end; begin: in this rank's share of it.
absl::StatusOr<double> Trainer::LossOfTestStep(int64_t& position, int64_t& begin, double rate) {
  if (position == 0 || position >= TrainingRows()) {
    const std::vector<int32_t> order =
        EpochOrder(data_.rows.training, spec_.seed, train_.fold, kOrderOfTest);
    RETURN_IF_ERROR(learner_->SetOrder(
        RankShare(order, 0, gang_->rank(), gang_->world_size()),
        StreamSeed(spec_.seed, Stream::kMedia, static_cast<uint64_t>(train_.fold),
                   static_cast<uint64_t>(kOrderOfTest))));
    position = begin = 0;
  }
  const BatchShare share =
      ShareOfBatch(TrainingRows(), position, step_rows_, gang_->rank(), gang_->world_size());
  StepInput step;
  step.begin = begin;
  step.rows = share.rank_rows;
  step.gang_rows = share.gang_rows;
  step.learning_rate = rate;
  step.overlap = false;
  RETURN_IF_ERROR(RunMicroBatchesThatFit(step));
  position += share.gang_rows;
  begin += share.rank_rows;
  ASSIGN_OR_RETURN(const LossSum loss, learner_->ConsumeLoss());
  float both[] = {static_cast<float>(loss.sum), static_cast<float>(loss.weight)};
  if (gang_->group() != nullptr) RETURN_IF_ERROR(gang_->group()->Sum(absl::MakeSpan(both)));
  return both[1] > 0 ? both[0] / both[1] : 0;
}

}  // namespace traind
