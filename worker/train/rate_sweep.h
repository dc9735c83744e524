// A range test of learning rates (Smith 2017).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace traind {

// Rates grow from step to step by one factor, from the least to the most, while losses are looked
// at. Threads: confined to one.
class RateSweep {
 public:
  // REQUIRES: steps > 1, 0 < least < most.
  RateSweep(double least, double most, int64_t steps) : least_(least), most_(most), steps_(steps) {}

  // The rate of the next step.
  double Rate() const { return RateOf(static_cast<int64_t>(smooth_.size())); }
  // Takes the loss that the step with Rate() began with. Returns false when the test is over: after
  // the last step, and once the loss is not finite or four times the least one.
  bool Add(double loss);
  // The rate at which the smoothed loss fell fastest, before it was least; none if it never fell.
  std::optional<double> Steepest() const;

 private:
  double RateOf(int64_t step) const;

  const double least_, most_;
  const int64_t steps_;
  double average_ = 0;          // exponential, of the losses
  std::vector<double> smooth_;  // of each step
};

}  // namespace traind
