// The floor of a forecast, kept so that it predicts later rows.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/table/feature_reader.h"
#include "common/data/table/series_input.h"
#include "worker/floor/lag_models.h"

namespace traind {

struct SeriesFloorModel {
  struct Part {
    std::string name;  // mean, naive, ridge, ets or theta
    double weight = 0;
  };

  std::string job;
  std::string table_sha256;  // of the table that it was fitted to
  InputSchema input;
  SeriesInput series;
  SampleShape shape;
  int64_t period = 1;  // rows of a season
  int64_t season = 1;  // of ridge, ets and theta
  std::vector<Part> parts;
  std::vector<float> prior;             // [targets]: the training rows' means
  std::vector<LagModels::State> ridge;  // [fold]; empty unless ridge is a part

  // Returns the answers for a table's test rows, [test rows, targets]. ets and theta are fitted
  // to its training rows, the history. DataLoss: a part is unknown or does not fit the table.
  absl::StatusOr<std::vector<float>> Predict(const Table& later) const;
};

// Writes the file durably. dir: the floor's existing folder.
absl::Status WriteSeriesFloorModel(const std::string& dir, const SeriesFloorModel& model);

// Errors: NotFound; DataLoss says how the file is damaged.
absl::StatusOr<SeriesFloorModel> ReadSeriesFloorModel(const std::string& dir);

}  // namespace traind
