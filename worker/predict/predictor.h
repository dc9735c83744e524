// A fold's answers: computed, and as files.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/data/row_encoder.h"
#include "worker/learner/learner.h"

namespace traind {

// What a fold answers for the test rows.
struct TestAnswers {
  std::vector<float> values;  // [test_rows, outputs]; empty without test rows
  // In their place, of volumes: a whole test.npy that is written already, absolute.
  std::string file, sha256;
};

// Rows are encoded part by part, so memory does not grow with them beyond the result. Where samples
// have a history (the encoder's shape), a series' test rows follow its training rows; what they
// need of their own targets' past beyond the horizon is what was predicted for it.
// media: of the test rows; null where samples have none. Of volumes, whose voxels' values may be
// too many to be held, `file` is written instead, slab by slab: [voxels of all test rows, values of
// a voxel]. Errors: those of the learner and of DurableWriter.
absl::StatusOr<TestAnswers> PredictTest(Learner& learner, const RowEncoder& encoder,
                                        std::shared_ptr<const MediaSource> media, Weights which,
                                        int outputs, const std::string& file);

// Where WritePredictions puts test<suffix>.npy, absolute.
std::string TestPath(const std::string& state_dir, const std::string& job, int64_t attempt,
                     const std::string& suffix);

struct SavedPredictions {
  // Relative to the job's folder.
  std::string oof, oof_sha256;
  std::string test, test_sha256;  // empty without test rows
};

// oof<suffix>.npy and test<suffix>.npy in the Attempt's folder, which exists; durable.
// oof: [rows, outputs]. test: a file is the one at TestPath. Errors: those of WriteNpy.
absl::StatusOr<SavedPredictions> WritePredictions(const std::string& state_dir,
                                                  const std::string& job, int64_t attempt,
                                                  const std::string& suffix, int outputs,
                                                  absl::Span<const float> oof,
                                                  const TestAnswers& test);

}  // namespace traind
