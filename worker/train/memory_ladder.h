// What a task gives up when memory runs out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace traind {

// The rungs, one per time that a step fails for lack of memory: half the batch, with
// twice the passes per optimizer step, so that the step stays what it was; then
// activations are computed again in the backward pass, where the model can; then
// smaller batches still, down to one row. After that there is none.
// Threads: a value.
class MemoryLadder {
 public:
  struct Rung {
    int64_t batch = 0;       // rows of one pass
    bool recompute = false;  // turn it on
    std::string from, to;    // for the Decision
  };

  // can_recompute: it is off, and the model can. Nullopt: nothing is left to give up.
  std::optional<Rung> Next(int64_t batch, int64_t step_rows, bool can_recompute);

 private:
  int rungs_ = 0;
};

// "64 rows x 4 passes".
std::string PassesText(int64_t batch, int64_t step_rows);

}  // namespace traind
