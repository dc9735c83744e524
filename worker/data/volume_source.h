// A media source of patches of volumes.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <memory>

#include "common/data/volume/sliding_window.h"
#include "common/data/volume/volume_set.h"
#include "worker/data/media_source.h"
#include "worker/data/patch_changes.h"

namespace traind {

// Serves the volumes of one split. Row r is a patch of volume r modulo volumes(). An epoch
// takes several patches of a volume through rows that are equal modulo volumes().
// Threads: safe. Ownership: keeps the set.
class VolumeSource final : public MediaSource {
 public:
  VolumeSource(std::shared_ptr<const VolumeSet> set, Split split, const Extent3& patch,
               const PatchChanges& changes = {})
      : set_(std::move(set)), split_(split), patch_(patch), changes_(changes) {}

  int64_t volumes() const { return static_cast<int64_t>(set_->volumes(split_).size()); }
  const StoredVolume& volume(int64_t row) const {
    return set_->volumes(split_)[static_cast<size_t>(row % volumes())];
  }
  const Extent3& patch() const { return patch_; }
  const VolumeSet& set() const { return *set_; }

  // Loads values [B, D, H, W, C] and, if the volumes have masks, target [B, 1, D, H, W]. In
  // training, the position of a patch is random and the patch is augmented; if the volume has
  // foreground, half of the patches contain a foreground voxel, of each class in turn.
  // Otherwise the patch is the middle of the volume.
  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override;
  // Loads the values of the patches of one volume that begin at `begins`.
  void LoadPatches(int64_t row, absl::Span<const Extent3> begins, MediaBatch& out) const;
  const VolumeSource* volumes_source() const override { return this; }

  // Returns the beginning of the random patch of a row.
  Extent3 Draw(int32_t row, uint64_t seed) const;

 private:
  // Load one patch. values: [patch, C], target: [patch].
  void LoadAsItIs(const StoredVolume& stored, const Extent3& begin, float* values,
                  float* target) const;
  void LoadWarped(const StoredVolume& stored, const Extent3& begin, const PatchWarp& warp,
                  float* values, float* target) const;
  absl::Span<const int64_t> PlacesFor(int32_t row, uint64_t seed) const;

  const std::shared_ptr<const VolumeSet> set_;
  const Split split_;
  const Extent3 patch_;
  const PatchChanges changes_;  // in training only
};

}  // namespace traind
