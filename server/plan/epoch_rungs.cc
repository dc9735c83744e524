#include "server/plan/epoch_rungs.h"

#include "server/plan/trials.h"

namespace traind {

std::optional<EpochRungs::Place> EpochRungs::Take(const Report& report, bool higher_is_better) {
  std::optional<Place> worse;
  for (int share = kRungFactor * kRungFactor; share > 1; share /= kRungFactor) {
    const int rung = (report.epochs + share - 1) / share;
    if (rung >= report.epochs || report.epochs_done < rung) continue;
    std::map<int, double>& metrics = metrics_[{report.fold, rung}];
    // A later Attempt of the fold, and a later epoch, have passed it already.
    if (!metrics.emplace(report.trial, report.metric).second) continue;
    int better = 0;
    for (const auto& [trial, metric] : metrics) {
      better += higher_is_better ? metric > report.metric : metric < report.metric;
    }
    const auto trials = static_cast<int>(metrics.size());
    const int stay = (trials + kRungFactor - 1) / kRungFactor;
    worse.reset();
    if (trials >= kRungFactor && better >= stay) worse = Place{rung, better + 1, trials};
  }
  return worse;
}

}  // namespace traind
