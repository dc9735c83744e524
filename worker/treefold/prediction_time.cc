#include "worker/treefold/prediction_time.h"

#include <algorithm>

namespace traind {

double PredictionSeconds(const TimedPrediction& timed, double rounds, int64_t rows) {
  double each_s = 0;  // for each round after the first
  if (timed.rounds > 1) {
    each_s = std::max(0.0, timed.all_rounds_s - timed.one_round_s) /
             static_cast<double>(timed.rounds - 1);
  }
  const double all_s = timed.one_round_s + each_s * std::max(0.0, rounds - 1);
  return all_s * static_cast<double>(rows) / static_cast<double>(timed.rows);
}

double WritingSeconds(int64_t values) {
  constexpr double kSyncs_s = 0.02, kBytesPerSecond = 100e6;
  return kSyncs_s + static_cast<double>(values) * sizeof(float) / kBytesPerSecond;
}

double RoundsToCome(int64_t planned, int64_t done, double left_s, double round_s) {
  const double possible = static_cast<double>(done) + std::max(0.0, left_s) / round_s;
  return std::min(static_cast<double>(planned), possible);
}

}  // namespace traind
