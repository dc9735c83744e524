#include "worker/data/volume_source.h"

#include <algorithm>
#include <vector>

#include "worker/data/random.h"

namespace traind {
namespace {

// Random streams of a row besides the one for the patch's position.
enum : uint64_t { kTurns = 1, kChanges = 2, kWarp = 3 };

Extent3 ExtentOf(const VolumeShape& shape) { return {shape.depth, shape.height, shape.width}; }

}  // namespace

// Returns the voxels of the class whose turn it is. The classes in a volume take turns over its
// patches in an epoch. The first class is random, so that all classes are reached even with few
// patches per epoch.
absl::Span<const int64_t> VolumeSource::PlacesFor(int32_t row, uint64_t seed) const {
  std::vector<absl::Span<const int64_t>> present;
  for (const StoredClass& stored : volume(row).classes) {
    if (stored.places > 0) present.push_back(set_->Places(stored));
  }
  if (present.size() < 2) return present.empty() ? absl::Span<const int64_t>() : present[0];
  const auto number = static_cast<uint64_t>(row / volumes());
  const auto index = static_cast<uint64_t>(row % volumes());
  const uint64_t first = StreamSeed(seed, Stream::kMedia, index, /*b=*/kTurns);
  return present[(first % present.size() + number) % present.size()];
}

Extent3 VolumeSource::Draw(int32_t row, uint64_t seed) const {
  const StoredVolume& stored = volume(row);
  const Extent3 extent = ExtentOf(stored.shape);
  Random random(StreamSeed(seed, Stream::kMedia, static_cast<uint64_t>(row)));
  const bool with_foreground = random.Next() % 2 == 0;
  const auto places = PlacesFor(row, seed);
  Extent3 least{0, 0, 0}, most;
  for (size_t axis = 0; axis < 3; ++axis) {
    most[axis] = std::max<int64_t>(0, extent[axis] - patch_[axis]);
  }
  if (with_foreground && !places.empty()) {
    const int64_t place = places[random.Below(places.size())];
    const Extent3 at{place / (extent[1] * extent[2]), place / extent[2] % extent[1],
                     place % extent[2]};
    for (size_t axis = 0; axis < 3; ++axis) {
      least[axis] = std::clamp<int64_t>(at[axis] - patch_[axis] + 1, 0, most[axis]);
      most[axis] = std::min(at[axis], most[axis]);
    }
  }
  Extent3 begin;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto choices = static_cast<uint64_t>(most[axis] - least[axis] + 1);
    begin[axis] = least[axis] + static_cast<int64_t>(random.Below(choices));
  }
  return begin;
}

absl::Status VolumeSource::Load(const MediaRequest& request, MediaBatch& out) const {
  const auto count = static_cast<int64_t>(request.rows.size());
  const int64_t channels = set_->channels(), voxels = Volume(patch_);
  out.shape = {count, patch_[0], patch_[1], patch_[2], channels};
  out.values.resize(static_cast<size_t>(count * voxels * channels));
  out.target_shape = {count, 1, patch_[0], patch_[1], patch_[2]};
  out.target.resize(static_cast<size_t>(count * voxels));
  out.tokens.clear();
  out.ends.clear();
  for (int64_t i = 0; i < count; ++i) {
    const int32_t row = request.rows[static_cast<size_t>(i)];
    const StoredVolume& stored = volume(row);
    Extent3 begin = ExtentOf(stored.shape);
    if (request.training) {
      begin = Draw(row, request.seed);
    } else {
      for (size_t axis = 0; axis < 3; ++axis) {
        begin[axis] = std::max<int64_t>(0, (begin[axis] - patch_[axis]) / 2);
      }
    }
    float* const values = out.values.data() + i * voxels * channels;
    float* const target = out.target.data() + i * voxels;
    const auto seed = [&](uint64_t stream) {
      return StreamSeed(request.seed, Stream::kMedia, static_cast<uint64_t>(row), stream);
    };
    if (request.training && changes_.warp.any()) {
      LoadWarped(stored, begin, PatchWarp(changes_.warp, patch_, seed(kWarp)), values, target);
    } else {
      LoadAsItIs(stored, begin, values, target);
    }
    if (request.training && changes_.any()) {
      ChangePatch(changes_, patch_, channels, seed(kChanges), values, target);
    }
  }
  return absl::OkStatus();
}

void VolumeSource::LoadAsItIs(const StoredVolume& stored, const Extent3& begin, float* values,
                              float* target) const {
  set_->ReadPatch(stored, begin, patch_, values);
  if (stored.has_mask) {
    set_->ReadMaskPatch(stored, begin, patch_, target);
  } else {
    std::fill_n(target, Volume(patch_), 0.0f);
  }
}

void VolumeSource::LoadWarped(const StoredVolume& stored, const Extent3& begin,
                              const PatchWarp& warp, float* values, float* target) const {
  Extent3 from;
  for (size_t axis = 0; axis < 3; ++axis) from[axis] = begin[axis] + warp.begin()[axis];
  std::vector<float> box(static_cast<size_t>(Volume(warp.extent()) * set_->channels()));
  set_->ReadPatch(stored, from, warp.extent(), box.data());
  warp.WarpValues(box.data(), set_->channels(), values);
  if (!stored.has_mask) {
    std::fill_n(target, Volume(patch_), 0.0f);
    return;
  }
  set_->ReadMaskPatch(stored, from, warp.extent(), box.data());
  warp.WarpMask(box.data(), target);
}

void VolumeSource::LoadPatches(int64_t row, absl::Span<const Extent3> begins,
                               MediaBatch& out) const {
  const auto count = static_cast<int64_t>(begins.size());
  const int64_t values = Volume(patch_) * set_->channels();
  out.shape = {count, patch_[0], patch_[1], patch_[2], set_->channels()};
  out.values.resize(static_cast<size_t>(count * values));
  out.target_shape.clear();
  for (int64_t i = 0; i < count; ++i) {
    set_->ReadPatch(volume(row), begins[static_cast<size_t>(i)], patch_,
                    out.values.data() + i * values);
  }
}

}  // namespace traind
