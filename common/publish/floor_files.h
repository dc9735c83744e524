// The floor's predictions as files under the job's folder (common/job_layout.h).
//
// floor.json is written first and tells the digests of both files, of the new
// floor and of the one before: whenever a writer is killed, each file is whole
// and known, though oof.npy and test.npy may be of two floors until the next one.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/table/npy.h"

namespace traind {

struct Floor {
  std::string model;                    // prior, mean, logistic, ridge
  double score = 0;                     // the Job's metric, out of fold over all rows
  Array<float> oof;                     // [train_rows, C]
  Array<float> test;                    // [test_rows, C]; no values without test rows
  std::string oof_sha256, test_sha256;  // set by WriteFloor and ReadFloor
};

// Writes durably, holding the job's publish lock; sets the digests. Errors as of
// WriteFileDurably, and Unavailable as of JobPublishLock::Take.
absl::Status WriteFloor(const std::string& state_dir, const std::string& job, Floor& floor);

// REQUIRES: the publish lock is held. NotFound: none yet; DataLoss: a file is not
// as it was written.
absl::StatusOr<Floor> ReadFloor(const std::string& state_dir, const std::string& job);

}  // namespace traind
