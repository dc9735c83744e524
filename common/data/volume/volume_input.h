// What a model reads of volumes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/volume/overlap.h"
#include "common/data/volume/sliding_window.h"
#include "common/data/volume/volume_treatment.h"

namespace traind {

struct VolumeInput {
  std::string column;  // of the volumes' files
  int64_t channels = 1;
  std::vector<std::string> classes;  // as VolumeSet::classes()
  VolumeTreatment treatment;
  Extent3 patch{};  // in which they are predicted

  // As VolumeSet::values().
  int64_t values() const { return ValuesPerVoxel(classes.size()); }
};

}  // namespace traind
