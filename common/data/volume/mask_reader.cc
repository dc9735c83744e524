#include "common/data/volume/mask_reader.h"

#include <absl/strings/str_cat.h>

#include "common/base/status_macros.h"
#include "common/data/volume/turned_reader.h"

namespace traind {

namespace {

// The orientation of the mask's file. Its header counts only where both files tell how they lie.
absl::StatusOr<Orientation> OrientationOfMask(const std::string& path, const VolumeReader& mask,
                                              const MaskedVolume& of) {
  const std::optional<NiftiGeometry>& geometry = mask.geometry();
  const auto tells = [](const std::optional<NiftiGeometry>& g) {
    return g.has_value() && AffineOf(*g).has_value();
  };
  if (!tells(geometry) || !tells(of.geometry)) return of.orientation;
  const Orientation orientation = OrientationOf(*geometry, mask.shape());
  if (orientation == of.orientation) return orientation;
  if (LieAlike(*geometry, mask.shape(), *of.geometry, of.shape)) return orientation;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": the mask's header tells other axes than its volume's, and places it ",
                   "elsewhere; give it the header of the volume"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MaskReader>> MaskReader::Open(const std::string& path,
                                                             const MaskedVolume& of, int classes) {
  ASSIGN_OR_RETURN(std::unique_ptr<VolumeReader> reader, OpenVolume(path, VolumeUse::kMask));
  ASSIGN_OR_RETURN(const Orientation orientation, OrientationOfMask(path, *reader, of));
  const VolumeShape file = reader->shape();
  VolumeShape wanted = of.shape;
  wanted.channels = 1;
  if (orientation.ShapeOf(file) != of.orientation.ShapeOf(wanted)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a mask of ", ToString(file),
                                                   " voxels for a volume of ", ToString(wanted)));
  }
  reader = TurnedVolume(std::move(reader), orientation, of.scratch);
  return std::unique_ptr<MaskReader>(
      new MaskReader(path, std::move(reader), orientation, file, classes));
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
      const Place3 place = orientation_.InFile({z, pixel / width, pixel % width}, file_);
      return absl::InvalidArgumentError(absl::StrCat(
          path_, ": the mask's voxel at z ", place[0], ", y ", place[1], ", x ", place[2], " is ",
          values_[i],
          classes_ == 1 ? "; a mask has 0 and 1, or 0 and 255"
                        : absl::StrCat("; a mask of ", classes_, " classes has 0 to ", classes_)));
    }
    out[i] = static_cast<uint8_t>(label);
  }
  return absl::OkStatus();
}

}  // namespace traind
