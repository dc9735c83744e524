#include "common/data/volume/volume_set_writer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "common/base/status_macros.h"
#include "common/data/volume/mask_reader.h"
#include "common/data/volume/resampled_reader.h"
#include "common/data/volume/spacing.h"
#include "common/data/volume/turned_reader.h"

namespace traind {
namespace {

constexpr size_t kMostPlaces = 1 << 13;

template <class T>
void Encode(absl::Span<const float> values, std::string& out) {
  out.resize(values.size() * sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
  }
}

void Encode(VoxelType type, absl::Span<const float> values, std::string& out) {
  switch (type) {
    case VoxelType::kUint8:
      return Encode<uint8_t>(values, out);
    case VoxelType::kInt16:
      return Encode<int16_t>(values, out);
    case VoxelType::kUint16:
      return Encode<uint16_t>(values, out);
    case VoxelType::kFloat32:
      return Encode<float>(values, out);
  }
}

// Keeps every interval_-th foreground voxel; the interval doubles when there are too many.
class PlaceSample {
 public:
  void Add(int64_t place) {
    if (seen_++ % interval_ != 0) return;
    places_.push_back(place);
    if (places_.size() < kMostPlaces) return;
    for (size_t i = 0; i * 2 < places_.size(); ++i) places_[i] = places_[i * 2];
    places_.resize(kMostPlaces / 2);
    interval_ *= 2;
  }
  int64_t seen() const { return seen_; }
  const std::vector<int64_t>& places() const { return places_; }

 private:
  int64_t seen_ = 0, interval_ = 1;
  std::vector<int64_t> places_;
};

// Returns the shape of a volume, its axes turned, with that spacing.
absl::StatusOr<VolumeShape> GridOf(const std::string& path, const VolumeReader& reader,
                                   const Orientation& orientation, const Spacing& spacing) {
  const absl::StatusOr<Spacing> own = SpacingOf(reader.geometry());
  const absl::StatusOr<VolumeShape> shape =
      own.ok() ? ShapeAt(reader.shape(), orientation.SpacingOf(*own), spacing) : own.status();
  if (shape.ok()) return shape;
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", shape.status().message()));
}

}  // namespace

VolumeSetWriter::VolumeSetWriter(const std::string& path, std::unique_ptr<DurableWriter> out,
                                 std::vector<std::string> classes, const VolumeTreatment& treatment)
    : out_(std::move(out)), scratch_(std::filesystem::path(path).parent_path()) {
  index_.classes = std::move(classes);
  index_.treatment = treatment;
}
VolumeSetWriter::~VolumeSetWriter() = default;

absl::StatusOr<std::unique_ptr<VolumeSetWriter>> VolumeSetWriter::Create(
    const std::string& path, std::vector<std::string> classes, const VolumeTreatment& treatment) {
  ASSIGN_OR_RETURN(std::unique_ptr<DurableWriter> out, DurableWriter::Create(path));
  RETURN_IF_ERROR(out->Append(kVolumeSetMagic));
  return std::unique_ptr<VolumeSetWriter>(
      new VolumeSetWriter(path, std::move(out), std::move(classes), treatment));
}

absl::Status VolumeSetWriter::Align() {
  const size_t behind = static_cast<size_t>(out_->bytes()) % kVolumeSetAlignment;
  return behind == 0 ? absl::OkStatus()
                     : out_->Append(std::string(kVolumeSetAlignment - behind, '\0'));
}

absl::StatusOr<StoredVolume> VolumeSetWriter::Add(Split split, const std::string& image,
                                                  const std::string& mask) {
  ASSIGN_OR_RETURN(std::unique_ptr<VolumeReader> reader, OpenVolume(image));
  for (const auto& volumes : index_.volumes) {
    if (volumes.empty() || volumes[0].shape.channels == reader->shape().channels) continue;
    return absl::InvalidArgumentError(absl::StrCat(image, ": ", reader->shape().channels,
                                                   " channels, where the volumes before it have ",
                                                   volumes[0].shape.channels));
  }
  StoredVolume volume;
  volume.geometry = reader->geometry();
  if (index_.treatment.turns() && volume.geometry.has_value()) {
    volume.orientation = OrientationOf(*volume.geometry, reader->shape());
  }
  reader = TurnedVolume(std::move(reader), volume.orientation, scratch_);
  volume.shape = volume.own = reader->shape();
  volume.picture = reader->picture();
  if (index_.treatment.spacing.has_value()) {
    ASSIGN_OR_RETURN(volume.shape,
                     GridOf(image, *reader, volume.orientation, *index_.treatment.spacing));
  }
  if (volume.resampled()) {
    const LowPass low_pass = index_.treatment.blurs() ? LowPass::kGaussian : LowPass::kNone;
    reader = ResampledVolume(std::move(reader), volume.shape, low_pass);
  }
  volume.type = reader->type();
  RETURN_IF_ERROR(AddVoxels(*reader, volume));
  if (!mask.empty()) {
    RETURN_IF_ERROR(AddMask(mask, volume));
    RETURN_IF_ERROR(AddOwnMask(mask, volume));
  }
  index_.volumes[split == Split::kTest ? 1 : 0].push_back(volume);
  return volume;
}

absl::Status VolumeSetWriter::AddVoxels(VolumeReader& reader, StoredVolume& volume) {
  RETURN_IF_ERROR(Align());
  volume.voxels_at = static_cast<uint64_t>(out_->bytes());
  std::vector<float> slice(static_cast<size_t>(volume.shape.slice()));
  std::string bytes;
  // Sums are taken relative to the first value, so that large values with little spread keep their
  // digits.
  double sum = 0, squares = 0, first = 0;
  for (int64_t z = 0; z < volume.shape.depth; ++z) {
    RETURN_IF_ERROR(reader.ReadSlice(z, absl::MakeSpan(slice)));
    if (z == 0) {
      first = slice[0];
      volume.least = volume.most = slice[0];
    }
    for (const float value : slice) {
      const double away = value - first;
      sum += away;
      squares += away * away;
      volume.least = std::min(volume.least, value);
      volume.most = std::max(volume.most, value);
    }
    Encode(volume.type, slice, bytes);
    RETURN_IF_ERROR(out_->Append(bytes));
  }
  const double count = static_cast<double>(volume.shape.voxels() * volume.shape.channels);
  const double mean = sum / count;
  const double variance = squares / count - mean * mean;
  volume.mean = static_cast<float>(first + mean);
  volume.deviation = variance > 0 ? static_cast<float>(std::sqrt(variance)) : 1.0f;
  return absl::OkStatus();
}

absl::Status VolumeSetWriter::AddMask(const std::string& path, StoredVolume& volume) {
  std::vector<PlaceSample> places(std::max<size_t>(1, index_.classes.size()));
  ASSIGN_OR_RETURN(std::unique_ptr<MaskReader> file, OpenMask(path, volume));
  ResampledMask reader(std::move(file), volume.own, volume.shape);
  RETURN_IF_ERROR(Align());
  volume.has_mask = true;
  volume.mask_at = static_cast<uint64_t>(out_->bytes());
  const int64_t plane = volume.shape.height * volume.shape.width;
  std::vector<uint8_t> slice(static_cast<size_t>(plane));
  for (int64_t z = 0; z < volume.shape.depth; ++z) {
    RETURN_IF_ERROR(reader.ReadSlice(z, absl::MakeSpan(slice)));
    for (int64_t i = 0; i < plane; ++i) {
      const uint8_t label = slice[static_cast<size_t>(i)];
      if (label != 0) places[label - 1u].Add(z * plane + i);
    }
    RETURN_IF_ERROR(out_->Append({reinterpret_cast<const char*>(slice.data()), slice.size()}));
  }
  for (const PlaceSample& of : places) {
    RETURN_IF_ERROR(Align());
    volume.classes.push_back({of.seen(), static_cast<uint64_t>(out_->bytes()),
                              static_cast<int64_t>(of.places().size())});
    RETURN_IF_ERROR(out_->Append(
        {reinterpret_cast<const char*>(of.places().data()), of.places().size() * sizeof(int64_t)}));
  }
  return absl::OkStatus();
}

// Adds the mask on the grid of its file, and so checks each of its voxels.
absl::Status VolumeSetWriter::AddOwnMask(const std::string& path, StoredVolume& volume) {
  volume.own_mask_at = volume.mask_at;
  if (!volume.resampled()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<MaskReader> reader, OpenMask(path, volume));
  RETURN_IF_ERROR(Align());
  volume.own_mask_at = static_cast<uint64_t>(out_->bytes());
  std::vector<uint8_t> slice(static_cast<size_t>(volume.own.height * volume.own.width));
  for (int64_t z = 0; z < volume.own.depth; ++z) {
    RETURN_IF_ERROR(reader->ReadSlice(z, absl::MakeSpan(slice)));
    RETURN_IF_ERROR(out_->Append({reinterpret_cast<const char*>(slice.data()), slice.size()}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<MaskReader>> VolumeSetWriter::OpenMask(
    const std::string& path, const StoredVolume& volume) const {
  MaskedVolume of(volume.orientation.Inverse().ShapeOf(volume.own));
  of.orientation = volume.orientation;
  if (index_.treatment.turns()) of.geometry = volume.geometry;
  of.scratch = scratch_;
  return MaskReader::Open(path, of, static_cast<int>(std::max<size_t>(1, index_.classes.size())));
}

absl::StatusOr<FileDigest> VolumeSetWriter::Commit() {
  const std::string index = EncodeVolumeIndex(index_);
  const uint64_t size = index.size();
  RETURN_IF_ERROR(out_->Append(index));
  RETURN_IF_ERROR(out_->Append({reinterpret_cast<const char*>(&size), sizeof size}));
  RETURN_IF_ERROR(out_->Append(kVolumeSetMagic));
  return out_->Commit();
}

}  // namespace traind
