// predictions.csv, and the folders that Predictions stand in.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <string>

#include "common/publish/manifest.h"
#include "common/table/table.h"

namespace traind {

// The file's text: the id column (or `row`, from 0), each target's name with the
// predicted class or value, and for classes one column p_<class> each. Rows are in
// the test file's order.
// `values`: float32 [test_rows, C] row-major, as in common/job_layout.h.
std::string PredictionsCsv(const Table& table, absl::Span<const float> values);

// Writes prediction-<n>/, n one more than any before, and switches `current` to
// it; keeps the last three. Sets number, path, sha256, bytes and rows of
// manifest.prediction. REQUIRES: the job's publish lock is held. Killed at any
// instant it leaves the standing Prediction or the new one, each whole.
absl::Status WritePrediction(const std::string& state_dir, const std::string& csv, int64_t rows,
                             Manifest& manifest);

}  // namespace traind
