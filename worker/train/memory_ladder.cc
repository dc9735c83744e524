#include "worker/train/memory_ladder.h"

#include <absl/strings/str_cat.h>

namespace traind {

std::string PassesText(int64_t batch, int64_t step_rows) {
  const int64_t passes = (step_rows + batch - 1) / batch;
  return absl::StrCat(batch, batch == 1 ? " row x " : " rows x ", passes,
                      passes == 1 ? " pass" : " passes");
}

std::optional<MemoryLadder::Rung> MemoryLadder::Next(int64_t batch, int64_t step_rows,
                                                     bool can_recompute) {
  Rung rung{batch, false, "", ""};
  if (can_recompute && (rungs_ > 0 || batch == 1)) {
    rung.recompute = true;
    rung.from = "activations kept";
    rung.to = "activations computed again";
  } else if (batch > 1) {
    rung.batch = (batch + 1) / 2;
    rung.from = PassesText(batch, step_rows);
    rung.to = PassesText(rung.batch, step_rows);
  } else {
    return std::nullopt;
  }
  ++rungs_;
  return rung;
}

}  // namespace traind
