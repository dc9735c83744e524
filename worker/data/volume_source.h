// Parts of volumes as a network takes them.
#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <memory>

#include "common/data/volume/sliding_window.h"
#include "common/data/volume/volume_set.h"
#include "worker/data/media_source.h"
#include "worker/data/patch_changes.h"

namespace traind {

// Of the volumes of one split. Row r is a patch of volume r modulo volumes(): an epoch takes
// several patches of a volume by rows that differ so.
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

  // values [B, D, H, W, C] of the patches' extent; target [B, 1, D, H, W], where there are
  // masks. Training: drawn, and changed; even draws of a row's seed contain a voxel of the mask,
  // if it has one: of each of its classes in turn. Else the volume's middle.
  absl::Status Load(const MediaRequest& request, MediaBatch& out) const override;
  // The patches of one volume that begin there: values alone.
  void LoadPatches(int64_t row, absl::Span<const Extent3> begins, MediaBatch& out) const;
  const VolumeSource* volumes_source() const override { return this; }

  // Where the patch of a row begins.
  Extent3 Draw(int32_t row, uint64_t seed) const;

 private:
  absl::Span<const int64_t> PlacesFor(int32_t row, uint64_t seed) const;

  const std::shared_ptr<const VolumeSet> set_;
  const Split split_;
  const Extent3 patch_;
  const PatchChanges changes_;  // when training
};

}  // namespace traind
