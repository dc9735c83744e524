#include "worker/train/memory_ladder.h"

#include <absl/strings/str_cat.h>

namespace traind {

std::string PassesText(int64_t batch, int64_t step_rows) {
  const int64_t passes = (step_rows + batch - 1) / batch;
  return absl::StrCat(batch, batch == 1 ? " row x " : " rows x ", passes,
                      passes == 1 ? " pass" : " passes");
}

std::optional<MemoryLadder::Rung> MemoryLadder::Next(int64_t batch, int64_t step_rows,
                                                     const Means& means) {
  constexpr int64_t kLeastWindow = 2;
  Rung rung;
  rung.batch = batch;
  if (means.can_recompute && (rungs_ > 0 || batch == 1)) {
    rung.recompute = true;
    rung.from = "activations kept";
    rung.to = "activations computed again";
  } else if (batch > 1) {
    rung.batch = (batch + 1) / 2;
    rung.from = PassesText(batch, step_rows);
    rung.to = PassesText(rung.batch, step_rows);
  } else if (means.window / 2 >= kLeastWindow) {
    rung.window = (means.window + 1) / 2;
    rung.from = absl::StrCat("windows of ", means.window, " steps");
    rung.to = absl::StrCat("windows of ", rung.window, " steps");
  } else {
    return std::nullopt;
  }
  ++rungs_;
  return rung;
}

}  // namespace traind
