#include "common/data/volume/mask_writer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <zlib.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/data/image/encode.h"
#include "common/data/table/npy.h"

namespace traind {
namespace {

class NpyMask final : public MaskWriter {
 public:
  explicit NpyMask(std::unique_ptr<DurableWriter> out) : out_(std::move(out)) {}
  absl::Status Append(absl::Span<const uint8_t> slice) override {
    return out_->Append({reinterpret_cast<const char*>(slice.data()), slice.size()});
  }
  absl::StatusOr<FileDigest> Commit() override { return out_->Commit(); }

 private:
  const std::unique_ptr<DurableWriter> out_;
};

class NiftiMask final : public MaskWriter {
 public:
  explicit NiftiMask(std::unique_ptr<DurableWriter> out) : out_(std::move(out)) {}
  ~NiftiMask() override { deflateEnd(&stream_); }

  absl::Status Begin(absl::string_view header) {
    constexpr int kGzip = MAX_WBITS + 16, kMemory = 8;
    if (deflateInit2(&stream_, 6, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
      return absl::ResourceExhaustedError("no memory to pack a mask");
    }
    return Pack(header, Z_NO_FLUSH);
  }
  absl::Status Append(absl::Span<const uint8_t> slice) override {
    return Pack({reinterpret_cast<const char*>(slice.data()), slice.size()}, Z_NO_FLUSH);
  }
  absl::StatusOr<FileDigest> Commit() override {
    RETURN_IF_ERROR(Pack("", Z_FINISH));
    return out_->Commit();
  }

 private:
  // REQUIRES: bytes.size() < 2^32, as of any slice.
  absl::Status Pack(absl::string_view bytes, int flush) {
    // zlib does not write to its input.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed_.data());
      stream_.avail_out = static_cast<uInt>(packed_.size());
      deflate(&stream_, flush);
      RETURN_IF_ERROR(out_->Append({packed_.data(), packed_.size() - stream_.avail_out}));
    } while (stream_.avail_out == 0);
    return absl::OkStatus();
  }

  const std::unique_ptr<DurableWriter> out_;
  z_stream stream_ = {};
  std::string packed_ = std::string(1 << 16, '\0');
};

template <class T>
void Put(T value, std::string& out) {
  for (size_t i = 0; i < sizeof value; ++i) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
  }
}

// The TIFF is written by hand because the library seeks while it writes and a durable file only
// grows. Each page's strip is followed by its directory (IFD), whose offset the page before has
// announced. It is a BigTIFF, so that no offset is too large.
class TiffMask final : public MaskWriter {
 public:
  TiffMask(std::unique_ptr<DurableWriter> out, const VolumeShape& shape)
      : out_(std::move(out)), shape_(shape) {}

  absl::Status Append(absl::Span<const uint8_t> slice) override {
    uLongf size = compressBound(slice.size());
    std::string packed(size, '\0');
    if (compress2(reinterpret_cast<Bytef*>(packed.data()), &size, slice.data(), slice.size(), 6) !=
        Z_OK) {
      return absl::ResourceExhaustedError("no memory to pack a mask");
    }
    packed.resize((size + 7) / 8 * 8, '\0');
    // The page before (or the header) ends with the offset of this page's directory.
    std::string bytes;
    if (pages_ == 0) {
      bytes.append("II");
      Put<uint16_t>(43, bytes);
      Put<uint16_t>(8, bytes);  // bytes of an offset
      Put<uint16_t>(0, bytes);
    }
    const uint64_t strip = static_cast<uint64_t>(out_->bytes()) + bytes.size() + 8;
    Put<uint64_t>(strip + packed.size(), bytes);
    bytes += packed;
    PutDirectory(strip, size, bytes);
    ++pages_;
    return out_->Append(bytes);
  }

  absl::StatusOr<FileDigest> Commit() override {
    std::string end;
    Put<uint64_t>(0, end);
    RETURN_IF_ERROR(out_->Append(end));
    return out_->Commit();
  }

 private:
  // Appends the directory except the offset of the next one.
  void PutDirectory(uint64_t strip, uint64_t strip_bytes, std::string& bytes) const {
    struct Entry {
      uint16_t tag, type;
      uint64_t value;
    };
    constexpr uint16_t kShort = 3, kLong = 4, kLong8 = 16;
    const Entry entries[] = {
        {256, kLong, static_cast<uint64_t>(shape_.width)},
        {257, kLong, static_cast<uint64_t>(shape_.height)},
        {258, kShort, 8},                                    // bits per sample
        {259, kShort, 8},                                    // compression: deflate
        {262, kShort, 1},                                    // photometric: 0 is black
        {273, kLong8, strip},                                // offset of the strip
        {277, kShort, 1},                                    // samples per pixel
        {278, kLong, static_cast<uint64_t>(shape_.height)},  // rows per strip
        {279, kLong8, strip_bytes},
        {339, kShort, 1},  // sample format: unsigned
    };
    Put<uint64_t>(sizeof entries / sizeof entries[0], bytes);
    for (const Entry& entry : entries) {
      Put<uint16_t>(entry.tag, bytes);
      Put<uint16_t>(entry.type, bytes);
      Put<uint64_t>(1, bytes);
      Put<uint64_t>(entry.value, bytes);
    }
  }

  const std::unique_ptr<DurableWriter> out_;
  const VolumeShape shape_;
  int64_t pages_ = 0;
};

class PngMask final : public MaskWriter {
 public:
  PngMask(std::unique_ptr<DurableWriter> out, const VolumeShape& shape)
      : out_(std::move(out)), shape_(shape) {}
  absl::Status Append(absl::Span<const uint8_t> slice) override {
    ASSIGN_OR_RETURN(const std::string bytes, EncodePng(slice, shape_.height, shape_.width));
    return out_->Append(bytes);
  }
  absl::StatusOr<FileDigest> Commit() override { return out_->Commit(); }

 private:
  const std::unique_ptr<DurableWriter> out_;
  const VolumeShape shape_;
};

// Turns the mask back into the order of its volume's file.
class TurnedMask final : public MaskWriter {
 public:
  TurnedMask(std::unique_ptr<MaskWriter> file, std::unique_ptr<SliceTurner> turner,
             const VolumeShape& shape, bool keeps_slices)
      : file_(std::move(file)),
        turner_(std::move(turner)),
        depth_(shape.depth),
        keeps_slices_(keeps_slices),
        slice_(static_cast<size_t>(shape.height * shape.width)) {}

  absl::Status Append(absl::Span<const uint8_t> slice) override {
    turner_->Put(put_++, reinterpret_cast<const char*>(slice.data()));
    return keeps_slices_ ? Pass(put_ - 1) : absl::OkStatus();
  }
  absl::StatusOr<FileDigest> Commit() override {
    for (int64_t z = 0; !keeps_slices_ && z < depth_; ++z) RETURN_IF_ERROR(Pass(z));
    return file_->Commit();
  }

 private:
  absl::Status Pass(int64_t z) {
    turner_->Read(z, reinterpret_cast<char*>(slice_.data()));
    return file_->Append(slice_);
  }

  const std::unique_ptr<MaskWriter> file_;
  const std::unique_ptr<SliceTurner> turner_;
  const int64_t depth_;
  const bool keeps_slices_;
  std::vector<uint8_t> slice_;  // of the file
  int64_t put_ = 0;
};

}  // namespace

std::string MaskEnding(MaskForm form) {
  switch (form) {
    case MaskForm::kNpy:
      return ".npy";
    case MaskForm::kTiff:
      return ".tiff";
    case MaskForm::kPng:
      return ".png";
    case MaskForm::kNifti:
      break;
  }
  return ".nii.gz";
}

absl::StatusOr<std::unique_ptr<MaskWriter>> MaskWriter::Create(const std::string& path,
                                                               MaskForm form,
                                                               const VolumeShape& shape,
                                                               const NiftiGeometry& geometry,
                                                               const Orientation& orientation) {
  if (orientation.turned()) {
    const Orientation back = orientation.Inverse();
    const VolumeShape file = back.ShapeOf(shape);
    ASSIGN_OR_RETURN(std::unique_ptr<SliceTurner> turner,
                     SliceTurner::Create(shape, back, sizeof(uint8_t),
                                         std::filesystem::path(path).parent_path()));
    ASSIGN_OR_RETURN(std::unique_ptr<MaskWriter> writer, Create(path, form, file, geometry));
    return std::unique_ptr<MaskWriter>(std::make_unique<TurnedMask>(
        std::move(writer), std::move(turner), file, back.keeps_slices()));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<DurableWriter> out, DurableWriter::Create(path));
  if (form == MaskForm::kTiff) {
    return std::unique_ptr<MaskWriter>(std::make_unique<TiffMask>(std::move(out), shape));
  }
  if (form == MaskForm::kPng) {
    return std::unique_ptr<MaskWriter>(std::make_unique<PngMask>(std::move(out), shape));
  }
  if (form == MaskForm::kNifti) {
    auto mask = std::make_unique<NiftiMask>(std::move(out));
    RETURN_IF_ERROR(mask->Begin(NiftiMaskHeader(shape, geometry)));
    return std::unique_ptr<MaskWriter>(std::move(mask));
  }
  RETURN_IF_ERROR(out->Append(NpyHeaderText("|u1", {shape.depth, shape.height, shape.width})));
  return std::unique_ptr<MaskWriter>(std::make_unique<NpyMask>(std::move(out)));
}

}  // namespace traind
