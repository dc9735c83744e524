// The file of a floor's model, in the floor's folder (common/base/job_layout.h).
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <string>

#include "worker/floor/floor_model.h"

namespace traind {

// Writes the file durably. dir: the floor's existing folder. Errors: those of WriteFileDurably.
absl::Status WriteFloorModel(const std::string& dir, const FloorModel& model);

// Errors: NotFound; DataLoss says how the file is damaged.
absl::StatusOr<FloorModel> ReadFloorModel(const std::string& dir);

}  // namespace traind
