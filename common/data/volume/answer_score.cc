#include "common/data/volume/answer_score.h"

#include <vector>

#include "common/base/status_macros.h"

namespace traind {

AnswerScore::AnswerScore(const VolumeSet& set, const StoredVolume& volume)
    : set_(set),
      volume_(volume),
      score_(set.values()),
      mask_(set, volume, [this](int64_t z, absl::Span<const uint8_t> labels) {
        score_.Add(labels, set_.OwnMaskSlice(volume_, z));
        set_.ReleaseOwnMaskSlice(volume_, z);
        if (largest_.has_value()) largest_->Add(labels);
        return absl::OkStatus();
      }) {
  if (!set.treatment().choose_components) return;
  largest_.emplace(volume.own.height, volume.own.width, set.foregrounds());
  largest_score_.emplace(set.values());
}

absl::Status AnswerScore::Finish() {
  RETURN_IF_ERROR(mask_.Finish());
  if (!largest_.has_value()) return absl::OkStatus();
  std::vector<uint8_t> labels(static_cast<size_t>(volume_.own.height * volume_.own.width));
  for (int64_t z = 0; z < volume_.own.depth; ++z) {
    largest_->Read(z, absl::MakeSpan(labels));
    largest_score_->Add(labels, set_.OwnMaskSlice(volume_, z));
    set_.ReleaseOwnMaskSlice(volume_, z);
  }
  return absl::OkStatus();
}

}  // namespace traind
