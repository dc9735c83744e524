// A fold's answers: computed, and as files.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/data/row_encoder.h"
#include "worker/model/learner.h"

namespace traind {

// [test_rows, outputs]; empty without test rows. Rows are encoded part by part, so
// memory does not grow with them beyond the result. Where samples have a history
// (the encoder's shape), a series' test rows follow its training rows; what they
// need of their own targets' past beyond the horizon is what was predicted for it.
// media: of the test rows; null where samples have none. Of volumes the result is
// [voxels of all test rows, 1] instead.
absl::StatusOr<std::vector<float>> PredictTest(Learner& learner, const RowEncoder& encoder,
                                               std::shared_ptr<const MediaSource> media,
                                               Weights which, int outputs);

struct SavedPredictions {
  // Relative to the job's folder.
  std::string oof, oof_sha256;
  std::string test, test_sha256;  // empty without test rows
};

// oof<suffix>.npy and test<suffix>.npy in the Attempt's folder, which exists; durable.
// oof, test: [rows, outputs]. Errors: those of WriteNpy.
absl::StatusOr<SavedPredictions> WritePredictions(const std::string& state_dir,
                                                  const std::string& job, int64_t attempt,
                                                  const std::string& suffix, int outputs,
                                                  absl::Span<const float> oof,
                                                  absl::Span<const float> test);

}  // namespace traind
