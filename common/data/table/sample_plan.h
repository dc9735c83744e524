// What the samples of a Job are, and how they are split: samples.json beside
// folds.npy (common/base/job_layout.h). PREPARE decides it once for all Ranks.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "common/data/table/folds.h"

namespace traind {

// Writes durably. Of `split` the kind, which is not kAuto, and the shape.
absl::Status WriteSamplePlan(const std::string& path, const SplitSpec& split);

// Where there is no file: plain rows, stratified. DataLoss: it is damaged.
absl::StatusOr<SplitSpec> ReadSamplePlan(const std::string& path);

}  // namespace traind
