#include "common/data/volume/answer_mask.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/data/volume/overlap.h"

namespace traind {

AnswerMask::AnswerMask(const VolumeSet& set, const StoredVolume& volume, Take take,
                       absl::Span<const int> largest)
    : own_(volume.own),
      values_(set.values()),
      slice_values_(static_cast<size_t>(volume.shape.height * volume.shape.width * set.values())),
      take_(std::move(take)),
      labels_(static_cast<size_t>(own_.height * own_.width)) {
  if (volume.resampled()) resampler_.emplace(volume.shape, volume.own, values_);
  if (set.treatment().largest_component) {
    components_.emplace(own_.height, own_.width, set.foregrounds());
  } else if (set.treatment().choose_components && !largest.empty()) {
    std::vector<bool> chosen(static_cast<size_t>(set.foregrounds()));
    for (const int index : largest) {
      if (index >= 0 && index < set.foregrounds()) chosen[static_cast<size_t>(index)] = true;
    }
    components_.emplace(own_.height, own_.width, set.foregrounds(), std::move(chosen));
  }
}

absl::Status AnswerMask::Add(absl::Span<const float> values) {
  for (; !values.empty(); values.remove_prefix(slice_values_)) {
    const auto slice = values.first(slice_values_);
    if (!resampler_.has_value()) {
      RETURN_IF_ERROR(AddOwn(slice));
      continue;
    }
    RETURN_IF_ERROR(
        resampler_->Add(slice, [this](absl::Span<const float> own) { return AddOwn(own); }));
  }
  return absl::OkStatus();
}

absl::Status AnswerMask::AddOwn(absl::Span<const float> values) {
  LabelsOf(values, values_, absl::MakeSpan(labels_));
  if (!components_.has_value()) return take_(z_++, labels_);
  components_->Add(labels_);
  ++z_;
  return absl::OkStatus();
}

absl::Status AnswerMask::Finish() {
  if (!components_.has_value()) return absl::OkStatus();
  for (int64_t z = 0; z < z_; ++z) {
    components_->Read(z, absl::MakeSpan(labels_));
    RETURN_IF_ERROR(take_(z, labels_));
  }
  return absl::OkStatus();
}

}  // namespace traind
