// Media: the pixels, voxels or tokens that samples have besides the columns of their rows.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace traind {

// The media of some rows in the form that a model takes. Fields that a kind of media
// does not use stay empty.
struct MediaBatch {
  // Dense media: [B, H, W, C] or [B, D, H, W, C], channels last.
  std::vector<int64_t> shape;
  std::vector<float> values;
  // Packed media: the tokens of all samples, one sample after the other, and
  // the end of each sample.
  std::vector<int32_t> tokens;
  std::vector<int32_t> ends;  // [B]
  // A target that replaces the table's, such as a mask, in the form that the objective takes.
  std::vector<int64_t> target_shape;
  std::vector<float> target;
  // What MediaLoader's `stage` made of all this; null: nothing.
  std::shared_ptr<const void> staged = nullptr;
};

struct MediaRequest {
  absl::Span<const int32_t> rows;
  // Whether to augment. Random changes of a row follow from `seed` and the row alone, not from
  // the other rows of the batch, so they are the same for any number of Ranks.
  bool training = false;
  uint64_t seed = 0;  // derived from the Job's seed, the fold and the epoch
};

class VolumeSource;

// Loads the media of rows. Threads: safe.
class MediaSource {
 public:
  virtual ~MediaSource() = default;
  // Overwrites `out` and reuses its memory. Errors: InvalidArgument names the unreadable item
  // and its place; errors of reading files.
  virtual absl::Status Load(const MediaRequest& request, MediaBatch& out) const = 0;
  // If samples are patches of volumes, returns the volumes, which are predicted
  // as a whole; else null.
  virtual const VolumeSource* volumes_source() const { return nullptr; }
};

}  // namespace traind
