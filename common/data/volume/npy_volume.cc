#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/mapped_file.h"
#include "common/data/table/npy.h"
#include "common/data/table/zip.h"
#include "common/data/volume/npy_bytes.h"
#include "common/data/volume/volume_reader.h"

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

// This is more than any header that numpy writes.
constexpr uint64_t kMostHeader = 1 << 17;

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
  explicit NpyVolume(std::string path) : VolumeReader(std::move(path)) {}

  absl::Status Initialize(bool archive) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const OpenFile> file, OpenFile::Open(path()));
    uint64_t size = file->size();
    ZipMember member;
    uint64_t begin = 0;
    if (archive) RETURN_IF_ERROR(FindMember(member, begin));
    if (archive) size = member.size;
    const auto open = [&] {
      return archive ? BytesOfMember(file, begin, member) : BytesOfFile(file, 0);
    };
    bytes_.push_back(open());
    std::string first(std::min<uint64_t>(size, kMostHeader), '\0');
    RETURN_IF_ERROR(bytes_[0]->Read(0, absl::MakeSpan(&first[0], first.size())));
    absl::StatusOr<NpyHeader> header = ParseNpyHeader(first, path());
    if (!header.ok()) return absl::InvalidArgumentError(header.status().message());
    RETURN_IF_ERROR(ApplyHeader(*header, size));
    // In an archive, a separate stream reads each channel.
    for (int64_t c = 1; archive && c < shape_.channels; ++c) bytes_.push_back(open());
    return absl::OkStatus();
  }

 protected:
  absl::Status Decode(int64_t z, absl::Span<float> out) override {
    const int64_t plane = shape_.height * shape_.width;
    slice_.resize(static_cast<size_t>(plane * file_type_->bytes));
    for (int64_t c = 0; c < shape_.channels; ++c) {
      const int64_t first = (c * shape_.depth + z) * plane;
      NpyBytes& bytes = *bytes_[std::min(static_cast<size_t>(c), bytes_.size() - 1)];
      RETURN_IF_ERROR(bytes.Read(data_begin_ + static_cast<uint64_t>(first * file_type_->bytes),
                                 absl::MakeSpan(slice_)));
      file_type_->convert(slice_.data(), plane, shape_.channels, out.data() + c);
    }
    return absl::OkStatus();
  }

 private:
  // Finds the archive's only member, and where its bytes begin in the file.
  absl::Status FindMember(ZipMember& member, uint64_t& begin) const {
    ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file,
                     MappedFile::Open(path(), MapUse::kStream));
    ASSIGN_OR_RETURN(const std::vector<ZipMember> members, ReadZip(file->bytes(), path()));
    if (members.size() != 1) {
      return Wrong(absl::StrCat("the archive holds ", members.size(),
                                " arrays; it must hold one, the volume"));
    }
    member = members[0];
    begin = static_cast<uint64_t>(member.stored.data() - file->bytes().data());
    return absl::OkStatus();
  }

  absl::Status ApplyHeader(const NpyHeader& header, uint64_t size) {
    for (const FileType& type : kTypes) {
      if (type.dtype == header.dtype) file_type_ = &type;
    }
    if (file_type_ == nullptr) {
      return Wrong(absl::StrCat("voxels of type ", header.dtype,
                                "; float32, float64 and integers of 8 to 32 bits can be read"));
    }
    if (header.fortran_order) return Wrong("in Fortran order; numpy.ascontiguousarray helps");
    const size_t dims = header.shape.size();
    if (dims < 2 || dims > 4) {
      return Wrong(absl::StrCat("an array of shape (", absl::StrJoin(header.shape, ", "),
                                "), not (H, W), (D, H, W) or (C, D, H, W)"));
    }
    type_ = file_type_->voxel;
    data_begin_ = header.data_begin;
    const auto count = CountNpyValues(header, size - data_begin_,
                                      static_cast<uint64_t>(file_type_->bytes), path());
    if (!count.ok()) return absl::InvalidArgumentError(count.status().message());
    const int64_t* const last = header.shape.data() + dims;
    shape_ = {dims > 2 ? last[-3] : 1, last[-2], last[-1], dims == 4 ? header.shape[0] : 1};
    return absl::OkStatus();
  }

  std::vector<std::unique_ptr<NpyBytes>> bytes_;  // one for all channels, or one for each
  uint64_t data_begin_ = 0;
  const FileType* file_type_ = nullptr;
  std::vector<char> slice_;  // of one channel
};

}  // namespace

absl::StatusOr<std::unique_ptr<VolumeReader>> OpenNpyVolume(const std::string& path, bool archive) {
  auto volume = std::make_unique<NpyVolume>(path);
  RETURN_IF_ERROR(volume->Initialize(archive));
  return std::unique_ptr<VolumeReader>(std::move(volume));
}

}  // namespace traind
