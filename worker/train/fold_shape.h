// The shapes of a fold's model, its inputs and its answers, found without making the rows ready.
#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "worker/model/networks/model_spec.h"
#include "worker/train/training_spec.h"

namespace traind {

struct FoldShape {
  ModelShape shape;    // as FoldData::shape() has it
  int64_t pieces = 0;  // of the tokenizer that the spec gives; 0: there is none
};

// Reads no text, image or voxel. Where the fold learns its own words their number is taken
// to be the most there can be. Errors: as LoadFold.
absl::StatusOr<FoldShape> ShapeOfFold(const std::string& state_dir, const std::string& table,
                                      const std::string& job, int fold, const TrainingSpec& spec);

}  // namespace traind
