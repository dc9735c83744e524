// Ridge regression on a series' last known values.
#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "common/data/table/folds.h"
#include "common/data/table/series_places.h"
#include "common/data/table/table.h"
#include "worker/floor/linear_model.h"

namespace traind {

// Standardises values. A missing value becomes the mean, and far values are cut.
struct LagScale {
  double mean = 0, inverse = 0;  // of the standard deviation

  float operator()(float value) const;
};

// One fold's models, one for each target. They look at the last known targets, the one a season
// before, and the numbers of the last known row.
// Threads: confined to one. Ownership: the table outlives it.
class LagModels {
 public:
  using Late = std::function<bool()>;
  struct Fitting {
    int64_t most_rows = 0;  // further rows are left out by chance
    uint64_t seed = 0;
    Late late;  // ends the fit with the weights so far
  };
  struct State {
    std::vector<LagScale> targets, features;
    std::vector<std::vector<float>> weights;  // [target]
  };

  // period: the rows of a season.
  LagModels(const Table& table, const SampleShape& shape, int64_t period);

  // REQUIRES: rows is not empty.
  void Fit(absl::Span<const int32_t> rows, const Fitting& fitting);
  State state() const;
  // Takes what models of another table of the same columns were fitted to. Returns false if the
  // sizes do not fit.
  bool Restore(const State& state);

  // Predicts training rows; out: [training rows, targets]. Returns false if it gets late.
  bool PredictTrain(absl::Span<const int32_t> rows, const Late& late, absl::Span<float> out);
  // Adds share * the test rows' predictions to out, [test rows, targets]. Where a
  // target is not known, the row's prediction stands in its place for the rows behind it. Returns
  // false if it gets late.
  bool PredictTest(float share, const Late& late, absl::Span<float> out);

 private:
  size_t width() const { return static_cast<size_t>(lags_) + 1 + features_.size(); }
  void Row(size_t series, int64_t at, size_t target, const std::vector<float>& values,
           float* out) const;
  float Predict(size_t series, int64_t at, size_t target, const std::vector<float>& values);
  LinearModel NewModel() const { return LinearModel(Link::kIdentity, width(), 0, 0, 1); }

  const Table& table_;
  const int64_t horizon_, lags_, period_;
  std::vector<int> features_;
  std::vector<SeriesPlaces> series_;
  std::vector<std::pair<size_t, int64_t>>
      place_of_;  // [training row]: its series and its place in it
  std::vector<std::vector<std::vector<float>>> all_;  // [target][series]
  std::vector<LagScale> target_scale_, feature_scale_;
  std::vector<LinearModel> models_;
  DesignRows one_;  // the row that is being predicted
};

}  // namespace traind
