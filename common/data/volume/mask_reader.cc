#include "common/data/volume/mask_reader.h"

#include <absl/strings/str_cat.h>

#include "common/base/status_macros.h"

namespace traind {

absl::StatusOr<std::unique_ptr<MaskReader>> MaskReader::Open(const std::string& path,
                                                             const VolumeShape& of, int classes) {
  ASSIGN_OR_RETURN(std::unique_ptr<VolumeReader> reader, OpenVolume(path, VolumeUse::kMask));
  VolumeShape wanted = of;
  wanted.channels = 1;
  if (reader->shape() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a mask of ", ToString(reader->shape()),
                                                   " voxels for a volume of ", ToString(wanted)));
  }
  return std::unique_ptr<MaskReader>(new MaskReader(path, std::move(reader), classes));
}

int MaskReader::LabelOf(float value) {
  if (classes_ > 1) {
    if (!(value >= 0 && value <= static_cast<float>(classes_))) return -1;
    const int label = static_cast<int>(value);
    return static_cast<float>(label) == value ? label : -1;
  }
  if (foreground_ == 0 && (value == 1 || value == 255)) foreground_ = value;
  return value == 0 ? 0 : value == foreground_ ? 1 : -1;
}

absl::Status MaskReader::ReadSlice(int64_t z, absl::Span<uint8_t> out) {
  values_.resize(out.size());
  RETURN_IF_ERROR(reader_->ReadSlice(z, absl::MakeSpan(values_)));
  for (size_t i = 0; i < out.size(); ++i) {
    const int label = LabelOf(values_[i]);
    if (label < 0) {
      const int64_t width = reader_->shape().width, pixel = static_cast<int64_t>(i);
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": the mask's voxel at z ", z, ", y ", pixel / width, ", x ", pixel % width,
          " is ", values_[i],
          classes_ == 1 ? "; a mask has 0 and 1, or 0 and 255"
                        : absl::StrCat("; a mask of ", classes_, " classes has 0 to ", classes_)));
    }
    out[i] = static_cast<uint8_t>(label);
  }
  return absl::OkStatus();
}

}  // namespace traind
