// Extra seeds: models of a fold besides its first one (Spec::seeds, B9). Counts how many are in
// a Plan, how many more fit, and how many have to go. They use time that no fold can use, and
// no fold loses anything to them.
//
// Threads: safe, nothing is kept.
#pragma once

#include <absl/time/time.h>

#include "server/plan/planner.h"

namespace traind {

class ExtraSeeds {
 public:
  // epochs, row_share: the Plan's. REQUIRES: `in` outlives it.
  ExtraSeeds(const PlanInput& in, int epochs, double row_share);

  int planned() const { return planned_; }  // trained, running or waiting; also those that failed
  int fresh() const { return fresh_; }      // those that wait and never ran
  int most() const { return in_.spec->folds * (in_.spec->seeds - 1); }
  // Every fold of the spec has run or runs with all its epochs and rows, one of them at least
  // answers or may, and, with a deadline, a gang has nothing to do.
  bool MayGrow(int folds) const;
  // How many more would be trained before `limit`; while nothing is known of the cost, one
  // for each gang, to learn it.
  int MoreThatFit(absl::Time limit) const;
  // How many of those that never ran would not.
  int TooLate(absl::Time limit) const;
  // When the last of those that wait is done, with `more` besides; `more` < 0: without the last.
  absl::Time DoneAt(int more) const;
  // Adds what runs and waits of them, and those up to `planned` models.
  void AddTo(WorkLeft& work, int planned) const;

 private:
  const PlanInput& in_;
  const int plan_epochs_;
  const double row_share_;
  double expected_ = 0;
  int planned_ = 0, waiting_ = 0, fresh_ = 0;
};

}  // namespace traind
