// Encodes the index of a set of volumes; used by volume_set*.cc.
#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "common/data/volume/volume_set.h"
#include "common/data/volume/volume_treatment.h"

namespace traind {

inline constexpr absl::string_view kVolumeSetMagic = "TRVOLUM1";
inline constexpr size_t kVolumeSetAlignment = 64;  // of each array

struct VolumeIndex {
  std::vector<std::string> classes;
  VolumeTreatment treatment;
  std::vector<StoredVolume> volumes[2];  // [Split]
};

std::string EncodeVolumeIndex(const VolumeIndex& index);
// Returns false if the text is not an index. Extents are checked; places in the file are not.
bool DecodeVolumeIndex(absl::string_view text, VolumeIndex& index);

}  // namespace traind
