// Estimates how long a fold of trees will take to predict, from predictions of a few rows.
#pragma once

#include <cstdint>

namespace traind {

// Times of predicting some rows with one round and with all rounds so far.
struct TimedPrediction {
  int64_t rows = 0;
  double one_round_s = 0;
  int64_t rounds = 1;
  double all_rounds_s = 0;  // not used where rounds is 1
};

// Returns the seconds for `rows` with `rounds`. The time of one round holds what a prediction
// costs in any case, so only the time beyond it is multiplied by the rounds.
// REQUIRES: timed.rows > 0.
double PredictionSeconds(const TimedPrediction& timed, double rounds, int64_t rows);

// Returns the seconds to write the answers: `values` floats, and syncs.
double WritingSeconds(int64_t values);

// Returns the rounds that the Plan asks for, or fewer where the time does not allow them.
double RoundsToCome(int64_t planned, int64_t done, double left_s, double round_s);

}  // namespace traind
