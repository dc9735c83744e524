// Reads a later file of the series that a model forecasts.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/data/table/feature_reader.h"
#include "common/data/table/folds.h"
#include "common/data/table/series_input.h"
#include "common/data/table/table_source.h"
#include "common/data/table/table_writer.h"

namespace traind {

struct LaterSeries {
  // Its training rows are the history, its test rows are to be predicted. It has all series of the
  // models, also those without rows, so that their numbers are the models'.
  TableRows rows;
  std::string id;  // name of the ids
  TextRows ids;    // [test rows]: those of the file, or else series and time
};

// The rows of a series up to its last known target are its history. The rows after that are
// predicted; if there are none, the next `horizon` rows are, whose times go on in the models' step.
// InvalidArgument: a column is missing, a series is unknown or has too little history for a sample
// of `shape`, a row does not come one step after the one before, or a value is bad; the error names
// the first such row.
absl::StatusOr<LaterSeries> ReadLaterSeries(const CsvFile& file, const InputSchema& input,
                                            const SeriesInput& series, const SampleShape& shape);

}  // namespace traind
