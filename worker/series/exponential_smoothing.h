// Exponential smoothing in state-space form with additive errors: level, trend and season
// (Hyndman, Koehler, Ord & Snyder 2008).
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "worker/series/series_model.h"

namespace traind {

struct SmoothingForm {
  bool trend = false;
  bool damped = false;  // REQUIRES: trend
  size_t period = 1;    // rows of a season; 1: none
  // Logarithms are smoothed, so trend and season multiply. For positive values.
  bool logarithms = false;
};

// With the error e of a row, the level grows by alpha e, the slope by beta e, and the season by
// gamma e; before that, the slope shrinks by the factor phi.
struct SmoothingWeights {
  double alpha = 0.5, beta = 0, gamma = 0, phi = 1;
};

struct SmoothingState {
  double level = 0, slope = 0;
  // [period]: of the next row, then of the rows after it in turn; empty: none.
  std::vector<double> season;
};

class ExponentialSmoothing final : public SeriesModel {
 public:
  // Starts with a given state, before the first row.
  ExponentialSmoothing(const SmoothingForm& form, const SmoothingWeights& weights,
                       SmoothingState state)
      : form_(form), weights_(weights), state_(std::move(state)) {}

  // Fits the weights and the first level and slope by maximum likelihood; the first season comes
  // from a decomposition. Has then seen all values.
  // REQUIRES: two values or more are known, and two seasons or more if form has a season.
  static ExponentialSmoothing Fit(absl::Span<const double> values, const SmoothingForm& form);

  // Fits those forms that the values allow, with and without trend, damping, season and logarithms,
  // and takes the one with the least AICc. Only the last `most_rows` values are looked at. Null if
  // fewer than four values are known.
  static std::unique_ptr<SeriesModel> FitBest(absl::Span<const double> values, size_t period,
                                              size_t most_rows);

  void Append(double value) override;
  double Forecast(int64_t steps) const override;

  const SmoothingWeights& weights() const { return weights_; }
  // The sum of squared errors of one step, of the appended values (their logarithms).
  double squares() const { return squares_; }
  // The corrected criterion of Akaike, comparable between forms that have seen the same values.
  double Aicc() const;

 private:
  class Search;
  // Append() of what is smoothed: the value or its logarithm.
  void Step(double seen);
  double Ahead(int64_t steps) const;

  SmoothingForm form_;
  SmoothingWeights weights_;
  SmoothingState state_;
  size_t next_ = 0;  // the next row's place in state_.season
  size_t known_ = 0;
  double squares_ = 0, seen_sum_ = 0;
};

}  // namespace traind
