#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/string_view.h>

#include <cstring>
#include <utility>
#include <vector>

#include "common/durable_file.h"
#include "common/status_macros.h"
#include "common/table/mapped_file.h"
#include "common/table/npy.h"
#include "common/table/zip.h"
#include "common/volume/volume_reader.h"

namespace traind {
namespace {

template <class T>
void Convert(const char* from, int64_t count, int64_t stride, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * static_cast<int64_t>(sizeof value), sizeof value);
    out[i * stride] = static_cast<float>(value);
  }
}

using Converter = void (*)(const char*, int64_t, int64_t, float*);

struct FileType {
  absl::string_view dtype;  // numpy's
  int64_t bytes;
  Converter convert;
  VoxelType voxel;
};
constexpr FileType kTypes[] = {
    {"<f4", 4, Convert<float>, VoxelType::kFloat32},
    {"<f8", 8, Convert<double>, VoxelType::kFloat32},
    {"|u1", 1, Convert<uint8_t>, VoxelType::kUint8},
    {"|i1", 1, Convert<int8_t>, VoxelType::kInt16},
    {"|b1", 1, Convert<uint8_t>, VoxelType::kUint8},
    {"<u2", 2, Convert<uint16_t>, VoxelType::kUint16},
    {"<i2", 2, Convert<int16_t>, VoxelType::kInt16},
    {"<u4", 4, Convert<uint32_t>, VoxelType::kFloat32},
    {"<i4", 4, Convert<int32_t>, VoxelType::kFloat32},
};

class NpyVolume final : public VolumeReader {
 public:
  NpyVolume(std::string path, std::unique_ptr<MappedFile> file)
      : VolumeReader(std::move(path)), file_(std::move(file)) {}

  absl::Status Initialize(bool archive) {
    absl::string_view bytes = file_->bytes();
    if (archive) {
      ASSIGN_OR_RETURN(const std::vector<ZipMember> members, ReadZip(bytes, path()));
      if (members.size() != 1) {
        return Wrong(absl::StrCat("an archive of ", members.size(), " arrays; one is the volume"));
      }
      ASSIGN_OR_RETURN(bytes, ReadMember(members[0], path(), unpacked_));
    }
    absl::StatusOr<NpyHeader> header = ParseNpyHeader(bytes, path());
    if (!header.ok()) return absl::InvalidArgumentError(header.status().message());
    for (const FileType& type : kTypes) {
      if (type.dtype == header->dtype) file_type_ = &type;
    }
    if (file_type_ == nullptr) {
      return Wrong(absl::StrCat("voxels of type ", header->dtype,
                                "; float32, float64 and integers of 8 to 32 bits can be read"));
    }
    if (header->fortran_order) return Wrong("in Fortran order; numpy.ascontiguousarray helps");
    const size_t dims = header->shape.size();
    if (dims != 3 && dims != 4) {
      return Wrong(absl::StrCat("an array of shape (", absl::StrJoin(header->shape, ", "),
                                "), not (D, H, W) or (C, D, H, W)"));
    }
    type_ = file_type_->voxel;
    data_ = bytes.substr(header->data_begin);
    const auto count =
        CountNpyValues(*header, data_.size(), static_cast<uint64_t>(file_type_->bytes), path());
    if (!count.ok()) return absl::InvalidArgumentError(count.status().message());
    const int64_t* extent = header->shape.data() + (dims - 3);
    shape_ = {extent[0], extent[1], extent[2], dims == 4 ? header->shape[0] : 1};
    return absl::OkStatus();
  }

 protected:
  absl::Status Decode(int64_t z, absl::Span<float> out) override {
    const int64_t plane = shape_.height * shape_.width;
    for (int64_t c = 0; c < shape_.channels; ++c) {
      const int64_t first = (c * shape_.depth + z) * plane;
      file_type_->convert(data_.data() + first * file_type_->bytes, plane, shape_.channels,
                          out.data() + c);
    }
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<MappedFile> file_;
  std::string unpacked_;
  absl::string_view data_;
  const FileType* file_type_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VolumeReader>> OpenNpyVolume(const std::string& path, bool archive) {
  ASSIGN_OR_RETURN(std::unique_ptr<MappedFile> file, MappedFile::Open(path, MapUse::kStream));
  auto volume = std::make_unique<NpyVolume>(path, std::move(file));
  RETURN_IF_ERROR(volume->Initialize(archive));
  return std::unique_ptr<VolumeReader>(std::move(volume));
}

}  // namespace traind
