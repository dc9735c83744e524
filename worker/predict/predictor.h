// Computes a fold's answers for its test rows.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/data/row_encoder.h"
#include "worker/device/collective.h"
#include "worker/learner/learner.h"
#include "worker/task/answer_files.h"

namespace traind {

// Predicts the test rows. Rows are encoded part by part, so memory does not grow with them
// beyond the result. If samples have a history (the encoder's shape), a series' test rows
// follow its training rows; beyond the horizon, predictions stand in for past targets that do not
// count as known (SampleShape::rolling). media: of the test rows; null if samples have none. Voxels
// of volumes may be too many to be held in memory, so for volumes `file` is written instead, slab
// by slab: [voxels of all test rows, values per voxel]. Errors: those of the learner and of
// DurableWriter.
//
// group: null, or ranks that all call this with the same weights; each predicts a part of the
// rows, and rank 0 gets the answers (the others get none). REQUIRES: CanShareTest, then.
// Errors, too: those of Group.
absl::StatusOr<TestAnswers> PredictTest(Learner& learner, const RowEncoder& encoder,
                                        std::shared_ptr<const MediaSource> media, Weights which,
                                        int outputs, const std::string& file,
                                        Group* group = nullptr);

// Whether ranks may share the test rows: not the steps of series, of which one needs the answer
// before it, and not volumes, which are written as they come.
bool CanShareTest(const RowEncoder& encoder, const MediaSource* media);

}  // namespace traind
