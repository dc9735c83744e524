// The size of a volume and the type of its voxels.
#pragma once

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <string>

namespace traind {

struct VolumeShape {
  int64_t depth = 0, height = 0, width = 0;
  int64_t channels = 1;

  int64_t slice() const { return height * width * channels; }  // values
  int64_t voxels() const { return depth * height * width; }
  friend bool operator==(const VolumeShape& a, const VolumeShape& b) {
    return a.depth == b.depth && a.height == b.height && a.width == b.width &&
           a.channels == b.channels;
  }
  friend bool operator!=(const VolumeShape& a, const VolumeShape& b) { return !(a == b); }
};
// Returns "32 x 64 x 64", with " x 3 channels" if there are several.
inline std::string ToString(const VolumeShape& shape) {
  return absl::StrCat(shape.depth, " x ", shape.height, " x ", shape.width,
                      shape.channels == 1 ? "" : absl::StrCat(" x ", shape.channels, " channels"));
}

// The smallest type that holds a file's values (32-bit integers: float32).
enum class VoxelType { kUint8, kInt16, kUint16, kFloat32 };

// The largest extent of a volume, and the most values of a slice; more counts as a malicious
// header.
inline constexpr int64_t kMostExtent = 1 << 16;
inline constexpr int64_t kMostSliceValues = int64_t{1} << 28;

}  // namespace traind
