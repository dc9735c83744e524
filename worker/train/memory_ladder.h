// The steps by which a task saves memory when it runs out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace traind {

// The rungs, one per time that a step fails for lack of memory: half the batch, with
// twice the passes per optimizer step, so that the step stays what it was; then
// activations are computed again in the backward pass, where the model can; then
// smaller batches still, down to one row; then shorter windows, where that is allowed.
// After that there is none.
// Threads: a value.
class MemoryLadder {
 public:
  struct Rung {
    int64_t batch = 0;       // rows of one pass
    bool recompute = false;  // turn it on
    int64_t window = 0;      // steps of a sample from now on; 0: as they are
    std::string from, to;    // for the Decision
  };

  struct Means {
    bool can_recompute = false;  // it is off, and the model can
    int64_t window = 0;          // steps of a sample that may be shortened; 0: may not
  };
  // Nullopt: nothing is left to give up.
  std::optional<Rung> Next(int64_t batch, int64_t step_rows, const Means& means);

 private:
  int rungs_ = 0;
};

// "64 rows x 4 passes".
std::string PassesText(int64_t batch, int64_t step_rows);

}  // namespace traind
