#include "common/data/volume/volume_set.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/volume/volume_set_index.h"

namespace traind {
namespace {

size_t BytesOf(VoxelType type) {
  switch (type) {
    case VoxelType::kUint8:
      return 1;
    case VoxelType::kInt16:
    case VoxelType::kUint16:
      return 2;
    case VoxelType::kFloat32:
      break;
  }
  return 4;
}

template <class T>
void Decode(const char* from, int64_t count, float mean, float scale, float* out) {
  const T* values = reinterpret_cast<const T*>(from);  // each array of the set is aligned
  for (int64_t i = 0; i < count; ++i) out[i] = (static_cast<float>(values[i]) - mean) * scale;
}

void Decode(VoxelType type, const char* from, int64_t count, float mean, float scale, float* out) {
  switch (type) {
    case VoxelType::kUint8:
      return Decode<uint8_t>(from, count, mean, scale, out);
    case VoxelType::kInt16:
      return Decode<int16_t>(from, count, mean, scale, out);
    case VoxelType::kUint16:
      return Decode<uint16_t>(from, count, mean, scale, out);
    case VoxelType::kFloat32:
      return Decode<float>(from, count, mean, scale, out);
  }
}

// Calls row(offset in the patch, offset in the volume, voxels) for each row of voxels that lies in
// both.
template <class F>
void ForRows(const VolumeShape& shape, const Extent3& begin, const Extent3& extent, const F& row) {
  const Extent3 size{shape.depth, shape.height, shape.width};
  Extent3 first, last;
  for (size_t axis = 0; axis < 3; ++axis) {
    first[axis] = std::max<int64_t>(0, begin[axis]);
    last[axis] = std::min(size[axis], begin[axis] + extent[axis]);
  }
  if (first[2] >= last[2]) return;
  for (int64_t z = first[0]; z < last[0]; ++z) {
    for (int64_t y = first[1]; y < last[1]; ++y) {
      const int64_t to =
          ((z - begin[0]) * extent[1] + y - begin[1]) * extent[2] + first[2] - begin[2];
      row(to, (z * size[1] + y) * size[2] + first[2], last[2] - first[2]);
    }
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const VolumeSet>> VolumeSet::Open(const std::string& path) {
  const std::shared_ptr<VolumeSet> set(new VolumeSet());
  ASSIGN_OR_RETURN(set->file_, MappedFile::Open(path, MapUse::kStream));
  const absl::string_view bytes = set->file_->bytes();
  const auto damaged = [&path] {
    return absl::DataLossError(absl::StrCat(path, " is not a complete set of volumes"));
  };
  const size_t magic = kVolumeSetMagic.size(), tail = magic + sizeof(uint64_t);
  if (bytes.size() < magic + tail || bytes.substr(0, magic) != kVolumeSetMagic ||
      bytes.substr(bytes.size() - magic) != kVolumeSetMagic) {
    return damaged();
  }
  uint64_t size = 0;
  std::memcpy(&size, bytes.data() + bytes.size() - tail, sizeof size);
  if (size > bytes.size() - magic - tail) return damaged();
  const uint64_t data_end = bytes.size() - tail - size;
  VolumeIndex index;
  if (!DecodeVolumeIndex(bytes.substr(data_end, size), index)) return damaged();
  set->classes_ = std::move(index.classes);
  set->treatment_ = index.treatment;
  set->volumes_[0] = std::move(index.volumes[0]);
  set->volumes_[1] = std::move(index.volumes[1]);
  for (const auto& volumes : set->volumes_) {
    for (const StoredVolume& volume : volumes) {
      const auto voxels = static_cast<uint64_t>(volume.shape.voxels());
      const auto fits = [&](uint64_t at, uint64_t array) {
        return at % kVolumeSetAlignment == 0 && at <= data_end && array <= data_end - at;
      };
      const uint64_t values = voxels * static_cast<uint64_t>(volume.shape.channels);
      if (!fits(volume.voxels_at, values * BytesOf(volume.type)) ||
          (volume.has_mask &&
           (!fits(volume.mask_at, voxels) ||
            !fits(volume.own_mask_at, static_cast<uint64_t>(volume.own.voxels()))))) {
        return damaged();
      }
      for (const StoredClass& of : volume.classes) {
        if (!fits(of.places_at, static_cast<uint64_t>(of.places) * sizeof(int64_t))) {
          return damaged();
        }
        for (const int64_t place : set->Places(of)) {
          if (place < 0 || place >= volume.shape.voxels()) return damaged();
        }
      }
      set->channels_ = volume.shape.channels;
    }
  }
  return std::shared_ptr<const VolumeSet>(set);
}

Extent3 VolumeSet::PatchOf(Extent3 asked) const {
  const auto flat = [](const StoredVolume& volume) { return volume.shape.depth == 1; };
  if (std::all_of(volumes_[0].begin(), volumes_[0].end(), flat)) asked[0] = 1;
  return asked;
}

int64_t VolumeSet::TestVoxels() const {
  int64_t voxels = 0;
  for (const StoredVolume& volume : volumes_[1]) voxels += volume.shape.voxels();
  return voxels;
}

void VolumeSet::ReadPatch(const StoredVolume& volume, const Extent3& begin, const Extent3& extent,
                          float* out) const {
  const int64_t channels = volume.shape.channels;
  std::fill_n(out, Volume(extent) * channels, 0.0f);
  const char* voxels = file_->bytes().data() + volume.voxels_at;
  const auto bytes = static_cast<int64_t>(BytesOf(volume.type));
  ForRows(volume.shape, begin, extent, [&](int64_t to, int64_t from, int64_t count) {
    Decode(volume.type, voxels + from * channels * bytes, count * channels, volume.mean,
           1 / volume.deviation, out + to * channels);
  });
}

void VolumeSet::ReadMaskPatch(const StoredVolume& volume, const Extent3& begin,
                              const Extent3& extent, float* out) const {
  std::fill_n(out, Volume(extent), 0.0f);
  const uint8_t* mask = Mask(volume).data();
  ForRows(volume.shape, begin, extent, [&](int64_t to, int64_t from, int64_t count) {
    for (int64_t i = 0; i < count; ++i) out[to + i] = mask[from + i];
  });
}

void VolumeSet::ReadSlice(const StoredVolume& volume, int64_t z, absl::Span<float> out) const {
  const auto bytes = static_cast<int64_t>(BytesOf(volume.type));
  Decode(volume.type, file_->bytes().data() + volume.voxels_at + z * volume.shape.slice() * bytes,
         volume.shape.slice(), 0, 1, out.data());
}

void VolumeSet::Release(const StoredVolume& volume, int64_t z, int64_t slices) const {
  const auto part = [&](uint64_t at, size_t bytes) {
    file_->Release(file_->bytes().substr(at + static_cast<size_t>(z) * bytes,
                                         static_cast<size_t>(slices) * bytes));
  };
  part(volume.voxels_at, static_cast<size_t>(volume.shape.slice()) * BytesOf(volume.type));
  if (!volume.has_mask) return;
  part(volume.mask_at, static_cast<size_t>(volume.shape.height * volume.shape.width));
}

absl::Span<const uint8_t> VolumeSet::Mask(const StoredVolume& volume) const {
  if (!volume.has_mask) return {};
  return {reinterpret_cast<const uint8_t*>(file_->bytes().data() + volume.mask_at),
          static_cast<size_t>(volume.shape.voxels())};
}

absl::Span<const uint8_t> VolumeSet::OwnMaskSlice(const StoredVolume& volume, int64_t z) const {
  const auto plane = static_cast<size_t>(volume.own.height * volume.own.width);
  const char* const mask = file_->bytes().data() + volume.own_mask_at;
  return {reinterpret_cast<const uint8_t*>(mask) + static_cast<size_t>(z) * plane, plane};
}

void VolumeSet::ReleaseOwnMaskSlice(const StoredVolume& volume, int64_t z) const {
  const auto plane = static_cast<size_t>(volume.own.height * volume.own.width);
  file_->Release(file_->bytes().substr(volume.own_mask_at + static_cast<size_t>(z) * plane, plane));
}

absl::Span<const int64_t> VolumeSet::Places(const StoredClass& of) const {
  return {reinterpret_cast<const int64_t*>(file_->bytes().data() + of.places_at),
          static_cast<size_t>(of.places)};
}

}  // namespace traind
