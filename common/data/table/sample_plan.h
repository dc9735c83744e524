// The content of one sample of a Job and the split of samples, stored in samples.json beside
// folds.npy (common/base/job_layout.h). PREPARE decides it once for all Ranks.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "common/data/table/folds.h"

namespace traind {

// Writes split.kind, which must not be kAuto, and split.shape durably.
absl::Status WriteSamplePlan(const std::string& path, const SplitSpec& split);

// Without a file, samples are single rows with a stratified split. DataLoss: the file is damaged.
absl::StatusOr<SplitSpec> ReadSamplePlan(const std::string& path);

}  // namespace traind
