#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/data_roots.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/volume/file_pair.h"
#include "common/data/volume/nifti_header.h"
#include "common/data/volume/volume_reader.h"

namespace traind {
namespace {

// A file, unpacked as it is read if it is packed by gzip.
class UnpackedFile {
 public:
  static absl::StatusOr<std::unique_ptr<UnpackedFile>> Open(const std::string& path) {
    // O_NONBLOCK keeps a FIFO from blocking us; it has no effect on a regular file.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
    absl::Cleanup closer = [fd] { close(fd); };
    RETURN_IF_ERROR(CheckUserFile(fd, path));
    const gzFile file = gzdopen(fd, "rb");
    if (file == nullptr) return absl::ResourceExhaustedError("no memory to unpack");
    std::move(closer).Cancel();
    gzbuffer(file, 1 << 18);
    return std::unique_ptr<UnpackedFile>(new UnpackedFile(file));
  }
  ~UnpackedFile() { gzclose(file_); }
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  // Returns the number of bytes from `at` on, fewer than asked for only where the file ends; -1: it
  // is damaged. Going back in a packed file unpacks it from its beginning.
  int64_t Read(uint64_t at, absl::Span<char> out) {
    if (gzseek(file_, static_cast<z_off_t>(at), SEEK_SET) < 0) return -1;
    constexpr size_t kMost = 1 << 30;  // zlib counts in 32 bits
    size_t done = 0;
    while (done < out.size()) {
      const auto some = static_cast<unsigned>(std::min(kMost, out.size() - done));
      const int n = gzread(file_, out.data() + done, some);
      if (n < 0) return -1;
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return static_cast<int64_t>(done);
  }
  // What is wrong after -1.
  std::string Error() const {
    int code = Z_OK;
    const char* const text = gzerror(file_, &code);
    return code == Z_OK ? "cannot be read" : text;
  }

 private:
  explicit UnpackedFile(gzFile file) : file_(file) {}
  const gzFile file_;
};

template <class T>
void Convert(const char* from, int64_t count, bool swapped, float* out, int64_t stride) {
  for (int64_t i = 0; i < count; ++i) {
    char raw[sizeof(T)];
    std::memcpy(raw, from + i * static_cast<int64_t>(sizeof raw), sizeof raw);
    if (swapped) std::reverse(raw, raw + sizeof raw);
    T value;
    std::memcpy(&value, raw, sizeof value);
    out[i * stride] = static_cast<float>(value);
  }
}

using Converter = void (*)(const char*, int64_t, bool, float*, int64_t);

struct FileType {
  int64_t datatype;  // NIfTI's
  int64_t bytes;
  Converter convert;
  VoxelType voxel;
};
constexpr FileType kTypes[] = {
    {2, 1, Convert<uint8_t>, VoxelType::kUint8},
    {4, 2, Convert<int16_t>, VoxelType::kInt16},
    {8, 4, Convert<int32_t>, VoxelType::kFloat32},
    {16, 4, Convert<float>, VoxelType::kFloat32},
    {64, 8, Convert<double>, VoxelType::kFloat32},
    {256, 1, Convert<int8_t>, VoxelType::kInt16},
    {512, 2, Convert<uint16_t>, VoxelType::kUint16},
    {768, 4, Convert<uint32_t>, VoxelType::kFloat32},
    {1024, 8, Convert<int64_t>, VoxelType::kFloat32},
    {1280, 8, Convert<uint64_t>, VoxelType::kFloat32},
};

class NiftiVolume final : public VolumeReader {
 public:
  explicit NiftiVolume(std::string path) : VolumeReader(std::move(path)) {}

  absl::Status Initialize() {
    RETURN_IF_ERROR(AddFile(path()));
    std::string first(kMostNiftiHeader, '\0');
    const int64_t read = files_[0]->Read(0, absl::MakeSpan(&first[0], first.size()));
    if (read < 0) return Wrong(files_[0]->Error());
    first.resize(static_cast<size_t>(read));
    if (!IsNifti(first)) return Wrong("packed by gzip, but not a NIfTI file");
    absl::StatusOr<NiftiHeader> header = ParseNiftiHeader(first);
    if (!header.ok()) return Wrong(header.status().message());
    header_ = *header;
    for (const FileType& type : kTypes) {
      if (type.datatype == header_.datatype) file_type_ = &type;
    }
    if (file_type_ == nullptr) {
      return Wrong(absl::StrCat("voxels of NIfTI's data type ", header_.datatype,
                                "; integers of 8 to 64 bits, float32 and float64 can be read"));
    }
    shape_ = header_.shape;
    type_ = Scaled() ? VoxelType::kFloat32 : file_type_->voxel;
    geometry_ = header_.geometry;
    std::string voxels = path();
    if (header_.pair) {
      voxels = OtherOfPair(path());
      if (voxels.empty()) {
        return Wrong(
            "a header whose voxels are in a file beside it (.img or .img.gz), which is "
            "not there");
      }
      files_.clear();
      RETURN_IF_ERROR(AddFile(voxels));
    }
    // A separate stream reads each channel, so that none goes back.
    for (int64_t c = 1; c < std::min(shape_.channels, kMostStreams); ++c) {
      RETURN_IF_ERROR(AddFile(voxels));
    }
    return absl::OkStatus();
  }

 protected:
  absl::Status Decode(int64_t z, absl::Span<float> out) override {
    const int64_t plane = shape_.height * shape_.width;
    slice_.resize(static_cast<size_t>(plane * file_type_->bytes));
    for (int64_t c = 0; c < shape_.channels; ++c) {
      const int64_t first = (c * shape_.depth + z) * plane;
      UnpackedFile& file = *files_[static_cast<size_t>(c) % files_.size()];
      const int64_t read =
          file.Read(header_.data_begin + static_cast<uint64_t>(first * file_type_->bytes),
                    absl::MakeSpan(slice_));
      if (read < 0) return Wrong(absl::StrCat("slice ", z, ": ", file.Error()));
      if (static_cast<size_t>(read) < slice_.size()) {
        return Wrong(absl::StrCat("the file ends in slice ", z, " of ", shape_.depth));
      }
      file_type_->convert(slice_.data(), plane, header_.swapped, out.data() + c, shape_.channels);
    }
    if (z + 1 == shape_.depth) RETURN_IF_ERROR(CheckEnd());
    if (!Scaled()) return absl::OkStatus();
    for (float& value : out) {
      value = static_cast<float>(value * header_.scl_slope + header_.scl_inter);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kMostStreams = 16;

  bool Scaled() const {
    return header_.scl_slope != 0 && (header_.scl_slope != 1 || header_.scl_inter != 0);
  }
  // The checksum of a packed file is compared when its end is read.
  absl::Status CheckEnd() {
    const int64_t bytes = shape_.voxels() * shape_.channels * file_type_->bytes;
    char beyond;
    UnpackedFile& last = *files_[static_cast<size_t>(shape_.channels - 1) % files_.size()];
    const int64_t read =
        last.Read(header_.data_begin + static_cast<uint64_t>(bytes), absl::MakeSpan(&beyond, 1));
    return read < 0 ? Wrong(last.Error()) : absl::OkStatus();
  }
  absl::Status AddFile(const std::string& of) {
    ASSIGN_OR_RETURN(std::unique_ptr<UnpackedFile> file, UnpackedFile::Open(of));
    files_.push_back(std::move(file));
    return absl::OkStatus();
  }

  std::vector<std::unique_ptr<UnpackedFile>> files_;
  NiftiHeader header_;
  const FileType* file_type_ = nullptr;
  std::vector<char> slice_;  // of one channel
};

}  // namespace

absl::StatusOr<std::unique_ptr<VolumeReader>> OpenNiftiVolume(const std::string& path) {
  auto volume = std::make_unique<NiftiVolume>(path);
  RETURN_IF_ERROR(volume->Initialize());
  return std::unique_ptr<VolumeReader>(std::move(volume));
}

}  // namespace traind
