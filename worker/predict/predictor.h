// Computes a fold's predictions and writes them to files.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/data/row_encoder.h"
#include "worker/learner/learner.h"

namespace traind {

// A fold's predictions for the test rows.
struct TestAnswers {
  std::vector<float> values;  // [test_rows, outputs]; empty without test rows
  // Volumes only, instead of `values`: the absolute path of a complete test.npy, and its
  // digest.
  std::string file, sha256;
};

// Predicts the test rows. Rows are encoded part by part, so memory does not grow with them
// beyond the result. If samples have a history (the encoder's shape), a series' test rows
// follow its training rows; beyond the horizon, predictions stand in for past targets.
// media: of the test rows; null if samples have none. Voxels of volumes may be too many to be
// held in memory, so for volumes `file` is written instead, slab by slab: [voxels of all test
// rows, values per voxel]. Errors: those of the learner and of DurableWriter.
absl::StatusOr<TestAnswers> PredictTest(Learner& learner, const RowEncoder& encoder,
                                        std::shared_ptr<const MediaSource> media, Weights which,
                                        int outputs, const std::string& file);

// The absolute path at which WritePredictions puts test<suffix>.npy.
std::string TestPath(const std::string& state_dir, const std::string& job, int64_t attempt,
                     const std::string& suffix);

struct SavedPredictions {
  // Paths are relative to the Job's folder.
  std::string oof, oof_sha256;
  std::string test, test_sha256;  // empty if there are no test rows
};

// Writes oof<suffix>.npy and test<suffix>.npy to the Attempt's existing folder, durably. oof:
// [rows, outputs]. test: if it is a file, it is the one at TestPath. Errors: those of WriteNpy.
absl::StatusOr<SavedPredictions> WritePredictions(const std::string& state_dir,
                                                  const std::string& job, int64_t attempt,
                                                  const std::string& suffix, int outputs,
                                                  absl::Span<const float> oof,
                                                  const TestAnswers& test);

}  // namespace traind
