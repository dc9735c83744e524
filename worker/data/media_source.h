// What samples have besides the columns of their rows: pixels, voxels, tokens.
#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

namespace traind {

// The media of some rows, as a model takes them. What a kind of media does not have
// stays empty.
struct MediaBatch {
  // Dense: [B, H, W, C] or [B, D, H, W, C], channels last.
  std::vector<int64_t> shape;
  std::vector<float> values;
  // Packed: the tokens of one sample after the other, and where each sample's end.
  std::vector<int32_t> tokens;
  std::vector<int32_t> ends;  // [B]
  // In place of the table's target, such as a mask: as the objective takes it.
  std::vector<int64_t> target_shape;
  std::vector<float> target;
};

struct MediaRequest {
  absl::Span<const int32_t> rows;
  // Augmented. What is drawn for a row follows from `seed` and the row alone, never from
  // the rows beside it, so that it is the same for any number of Ranks.
  bool training = false;
  uint64_t seed = 0;  // of the Job's seed, the fold and the epoch
};

class VolumeSource;

// Threads: safe.
class MediaSource {
 public:
  virtual ~MediaSource() = default;
  // Overwrites `out`, whose memory is used again. Errors: InvalidArgument names what
  // cannot be read, and its place; those of reading files.
  virtual absl::Status Load(const MediaRequest& request, MediaBatch& out) const = 0;
  // Where samples are parts of volumes, the volumes; they are predicted whole. Else null.
  virtual const VolumeSource* volumes_source() const { return nullptr; }
};

}  // namespace traind
