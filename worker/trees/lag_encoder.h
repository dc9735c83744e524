// Converts rows of series to what trees forecast from: past values of the target, the row's place
// in the calendar, its own values of columns that are known ahead, and the other columns of the
// last known row.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/folds.h"
#include "common/data/table/series_places.h"
#include "common/data/table/table.h"
#include "worker/data/lag_state.h"
#include "worker/trees/tree_rows.h"

namespace traind {

// A row that is forecast, and from which one.
struct LagSample {
  size_t series = 0;
  int64_t place = 0;  // in its series: training rows, then test rows
  int64_t steps = 1;  // rows between the last known row and this one
};

struct LagRows {
  TreeMatrix matrix;
  // A value is base + scale * what trees learn or answer. [rows]
  std::vector<float> base, scale;
};

// Trees do not extrapolate levels. So values are relative to a base: one of the past values, their
// mean, or the series' mean, whichever leaves the least squared error over the training rows. With
// several series they are also divided by the series' standard deviation over those rows. Values
// as they are if `raw`.
// Threads: confined to one.
class LagEncoder final : public TreeColumns {
 public:
  // columns: of the rows. time: the column that orders them; what its dates tell is known ahead,
  // and so are the columns known_ahead. training: the fold's training rows.
  LagEncoder(std::shared_ptr<const Table> table, const TreeEncoder& columns, const SplitSpec& split,
             absl::Span<const int32_t> training, const std::string& time,
             std::vector<std::string> known_ahead, bool raw);

  // Goes on in a table of later rows with the same series. It has no training rows.
  LagEncoder(std::shared_ptr<const Table> table, const TreeEncoder& columns,
             const SampleShape& shape, const std::string& time, LagState state);

  // The values that were chosen and measured on the training rows.
  const LagState& state() const { return state_; }

  // The training rows, some of them several times, forecast from different rows before them.
  const std::vector<LagSample>& training() const { return training_; }
  // The rows that a fold validates, ascending.
  std::vector<LagSample> Validation(absl::Span<const int16_t> fold_of, int fold) const;
  // The rows that are predicted at once: all series' next `horizon` test rows from row `begin` on,
  // or all rows if all their past counts as known.
  std::vector<LagSample> Test(int64_t begin) const;
  int64_t TestRow(const LagSample& sample) const;
  // Forecasts all test rows, [test rows]; predictions stand in for what is not known. learnt: sets
  // a span, [rows], to what trees answer for a matrix.
  using Learnt = absl::FunctionRef<absl::Status(const TreeMatrix&, absl::Span<float>)>;
  absl::Status PredictTest(Learnt learnt, absl::Span<float> out);

  LagRows Encode(absl::Span<const LagSample> samples) const;
  float Value(const LagSample& sample) const;
  // Sets the target of a test row, from which later rows are forecast.
  void SetValue(const LagSample& sample, float value);

 private:
  void ReadTable(const TreeEncoder& columns, const std::string& time);
  void FindScales(absl::Span<const int32_t> rows);
  void ChooseTraining(absl::Span<const int32_t> rows);
  void ChooseBase();
  bool TestIsKnown() const;
  void NameColumns(const TreeEncoder& columns, const std::string& time);
  // The past values of a sample, [past()]: lags, seasons, mean.
  void Past(const LagSample& sample, float* out) const;
  size_t past() const { return static_cast<size_t>(state_.lags) + state_.periods.size() + 1; }
  float ColumnAt(size_t column, const LagSample& sample) const;

  const std::shared_ptr<const Table> table_;
  const SplitSpec split_;
  int64_t test_step_ = 0;  // how many test rows of each series are predicted at once
  LagState state_;
  std::vector<SeriesPlaces> series_;
  std::vector<std::vector<float>> values_;  // [series][place]
  std::vector<LagSample> training_;
  std::vector<size_t> table_columns_;  // columns of the rows' matrices
  std::vector<bool> known_ahead_;      // [table_columns_]
  TreeMatrix train_rows_, test_rows_;
};

}  // namespace traind
