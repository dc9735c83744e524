// The files in which a fold's answers lie: what publishing joins.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

// A fold's answers for the test rows.
struct TestAnswers {
  std::vector<float> values;  // [test_rows, outputs]; empty without test rows
  // In their place, of volumes: a whole test.npy that is written already, absolute.
  std::string file, sha256;
};

// Where WritePredictions puts test<suffix>.npy, absolute.
std::string TestPath(const std::string& state_dir, const std::string& job, int64_t attempt,
                     const std::string& suffix);

struct SavedPredictions {
  // Relative to the job's folder.
  std::string oof, oof_sha256;
  std::string test, test_sha256;  // empty without test rows
};

// Writes oof<suffix>.npy and test<suffix>.npy into the Attempt's folder, which exists; durable.
// oof: [rows, outputs]. test: a file is the one at TestPath. Errors: those of WriteNpy.
// Threads: safe for different suffixes.
absl::StatusOr<SavedPredictions> WritePredictions(const std::string& state_dir,
                                                  const std::string& job, int64_t attempt,
                                                  const std::string& suffix, int outputs,
                                                  absl::Span<const float> oof,
                                                  const TestAnswers& test);

}  // namespace traind
