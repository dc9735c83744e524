// The floor's predictions as files under the job's folder (common/base/job_layout.h).
//
// floor.json is written first and tells the digests of both files, of the new
// floor and of the one before: whenever a writer is killed, each file is whole
// and known, though oof.npy and test.npy may be of two floors until the next one.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/table/npy.h"
#include "common/publish/test_values.h"

namespace traind {

struct Floor {
  std::string model;  // prior, mean, logistic, ridge
  double score = 0;   // the Job's metric, out of fold over all rows
  Array<float> oof;   // [train_rows, C]
  Array<float> test;  // [test_rows, C]; no values without test rows
  // In place of `test`, where its values are too many to be held: a whole file of them in the
  // folder of the floor, which WriteFloor renames, and its digest as `test_sha256`.
  std::string test_file;
  std::string oof_sha256, test_sha256;  // set by WriteFloor
};

// What stands on disk.
struct StandingFloor {
  std::string model;
  double score = 0;
  std::vector<float> oof;  // [train_rows, C]
  std::shared_ptr<const TestValues> test;
  std::string oof_sha256, test_sha256;
};

// Writes durably, holding the job's publish lock; sets the digests. Errors as of
// WriteFileDurably, and Unavailable as of JobPublishLock::Take.
absl::Status WriteFloor(const std::string& state_dir, const std::string& job, Floor& floor);

// REQUIRES: the publish lock is held. NotFound: none yet; DataLoss: a file is not
// as it was written, or has values that are not finite.
absl::StatusOr<StandingFloor> ReadFloor(const std::string& state_dir, const std::string& job);

}  // namespace traind
