// The index of a set of volumes as text; for the files volume_set*.cc.
#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "common/data/volume/volume_set.h"

namespace traind {

inline constexpr absl::string_view kVolumeSetMagic = "TRVOLUM1";
inline constexpr size_t kVolumeSetAlignment = 64;  // of its arrays

struct VolumeIndex {
  std::vector<std::string> classes;
  std::vector<StoredVolume> volumes[2];  // of Split
};

std::string EncodeVolumeIndex(const VolumeIndex& index);
// false: it is none. Extents are checked to be those of a volume, places in the file are not.
bool DecodeVolumeIndex(absl::string_view text, VolumeIndex& index);

}  // namespace traind
