// The files of a Prediction for volumes.
#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>
#include <vector>

#include "common/data/volume/volume_set.h"
#include "common/publish/prediction_files.h"
#include "common/publish/prediction_form.h"
#include "common/publish/test_values.h"

namespace traind {

// Writes a mask for each test volume, and a row with the share of foreground (and of each of
// several classes) in it. The caller commits. columns: without those of several classes. ids: of
// the rows; ignored without an id column. values, largest: as for WriteMasks. REQUIRES: the Job's
// publish lock is held. Errors: those of PredictionWriter and WriteMasks.
absl::StatusOr<std::unique_ptr<PredictionWriter>> WriteMaskPrediction(
    const std::string& state_dir, const std::string& job, AnswerColumns columns,
    PredictionForm form, const VolumeSet& set, const std::vector<std::string>& ids,
    const JoinedValues& values, absl::Span<const int> largest);

}  // namespace traind
