#include "server/plan/extra_seeds.h"

#include <algorithm>

#include "server/plan/fold_costs.h"

namespace traind {
ExtraSeeds::ExtraSeeds(const PlanInput& in, int epochs, double row_share)
    : in_(in),
      plan_epochs_(epochs),
      row_share_(row_share),
      expected_(EpochsOfTheLongest(in, epochs)) {
  for (const FoldView& fold : in.folds) {
    if (!IsExtra(fold)) continue;
    planned_ += fold.state != TaskState::kDropped;
    const bool waits = fold.state == TaskState::kPending;
    waiting_ += waits;
    fresh_ += waits && !fold.started;
  }
}

bool ExtraSeeds::MayGrow(int folds) const {
  if (planned_ >= most() || folds < in_.spec->folds) return false;
  int busy = 0;
  bool answers = false;  // what no fold could do, its like cannot either
  for (const FoldView& fold : in_.folds) {
    const bool runs = fold.state == TaskState::kRunning;
    const bool waits = fold.state == TaskState::kPending;
    if (!IsExtra(fold) && (waits || (runs && (plan_epochs_ < in_.spec->epochs || row_share_ < 1))))
      return false;
    busy += runs || waits;
    answers |= runs || fold.answers;
  }
  return answers && (!in_.window.bounded() || busy < std::max(in_.gangs, 1));
}

absl::Time ExtraSeeds::DoneAt(int more) const {
  WorkLeft work;
  work.gangs = in_.gangs;
  work.sharing = in_.sharing;
  for (const FoldView& fold : in_.folds) {
    if (fold.state != TaskState::kRunning) continue;
    // One that took longer than its like may take all epochs.
    const double epochs = fold.epochs_done < expected_ ? expected_ : plan_epochs_;
    work.running.push_back(SecondsLeft(in_, fold, epochs, row_share_));
  }
  const int count = std::max(0, waiting_ + more);
  work.pending.assign(static_cast<size_t>(count),
                      SecondsLeft(in_, FoldView(), expected_, row_share_));
  return in_.now + absl::Seconds(PendingSeconds(work));
}

int ExtraSeeds::MoreThatFit(absl::Time limit) const {
  const int left = most() - planned_;
  if (!in_.cost.known()) return in_.now < limit ? std::min(left, std::max(in_.gangs, 1)) : 0;
  int more = 0;
  while (more < left && DoneAt(more + 1) <= limit) ++more;
  return more;
}

int ExtraSeeds::TooLate(absl::Time limit) const {
  int fewer = 0;
  while (fewer < fresh_ && DoneAt(-fewer) > limit) ++fewer;
  return fewer;
}

void ExtraSeeds::AddTo(WorkLeft& work, int planned) const {
  for (const FoldView& fold : in_.folds) {
    if (!IsExtra(fold) || fold.state != TaskState::kRunning) continue;
    work.running.push_back(SecondsLeft(in_, fold, expected_, row_share_));
  }
  const int waiting = std::max(0, waiting_ + planned - planned_);
  work.pending.insert(work.pending.end(), static_cast<size_t>(waiting),
                      SecondsLeft(in_, FoldView(), expected_, row_share_));
}

}  // namespace traind
