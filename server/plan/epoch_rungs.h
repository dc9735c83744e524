// Stops a trial within a fold by the metric that it reports: asynchronous successive halving over
// epochs (ASHA; Li et al. 2020), beside the rungs over folds in server/plan/trials.h.
#pragma once

#include <map>
#include <optional>
#include <utility>

namespace traind {

// A fold has rungs after a ninth and after a third of its epochs, rounded up. A trial that comes to
// a rung goes on if its metric is in the best third, rounded up, of the trials that have come to it
// in the same fold. Before three trials have come nobody is stopped.
//
// What was reported is not stored: after a restart of traind the rungs fill again.
// Threads: confined to one.
class EpochRungs {
 public:
  struct Report {
    int trial = 0, fold = 0;
    int epochs_done = 0;
    int epochs = 0;     // of the whole fold
    double metric = 0;  // the best so far
  };
  // A trial that is to stop.
  struct Place {
    int epochs = 0;  // of the rung
    int place = 0;   // from 1
    int trials = 0;  // that have come to it
  };

  // Takes in a report. Returns a place if the trial has come to a rung where it is not among the
  // best. Of several rungs that one report passes the last one counts.
  std::optional<Place> Take(const Report& report, bool higher_is_better);

 private:
  std::map<std::pair<int, int>, std::map<int, double>> metrics_;  // (fold, rung) -> trial -> metric
};

}  // namespace traind
