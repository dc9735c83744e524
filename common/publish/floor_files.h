// The floor's predictions as files in the Job's folder (common/base/job_layout.h).
//
// floor.json is written first. It holds the digests of both files, of the new floor and of the one
// before. So whenever a writer is killed, each file is whole and known, though oof.npy and test.npy
// may belong to two different floors until the next write.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/npy.h"
#include "common/publish/test_values.h"

namespace traind {

// Beside the predictions: the model behind them (worker/floor/floor_model_file.h). Absent if it
// predicts no other rows.
inline constexpr char kFloorModelFile[] = "model.bin";
// The same of a forecast (worker/floor/series_floor_model.h).
inline constexpr char kSeriesFloorModelFile[] = "series.json";
// The same of volumes (worker/floor/volume_floor_model.h).
inline constexpr char kVolumeFloorModelFile[] = "volumes.json";

struct Floor {
  std::string
      model;         // prior, mean, logistic, ridge, naive, ets, theta; of a mix: names joined by +
  double score = 0;  // the Job's metric, out of fold, over all rows
  Array<float> oof;  // [train_rows, C]
  Array<float> test;  // [test_rows, C]; no values without test rows
  // Used instead of `test` if its values are too many for memory: a complete file in the floor's
  // folder, which WriteFloor renames. Its digest is given as `test_sha256`.
  std::string test_file;
  std::string oof_sha256, test_sha256;  // set by WriteFloor
};

// The floor on disk.
struct StandingFloor {
  std::string model;
  double score = 0;
  std::vector<float> oof;  // [train_rows, C]
  std::shared_ptr<const TestValues> test;
  std::string oof_sha256, test_sha256;
};

// Calls `keep_model`, which writes the model into the floor's folder, writes the files durably, and
// sets the digests. It holds the Job's publish lock meanwhile. Errors: FailedPrecondition if the
// Job is over (nothing is written then, so its model and its answer stay those of one floor), those
// of keep_model and of WriteFileDurably, and Unavailable from JobPublishLock::Acquire.
absl::Status WriteFloor(const std::string& state_dir, const std::string& job, Floor& floor,
                        absl::FunctionRef<absl::Status()> keep_model);

// REQUIRES: the publish lock is held. NotFound: there is none yet; DataLoss: a file has changed
// since it was written, or has values that are not finite.
absl::StatusOr<StandingFloor> ReadFloor(const std::string& state_dir, const std::string& job);

}  // namespace traind
