#include "common/data/volume/mask_writer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <zlib.h>

#include <utility>

#include "common/base/status_macros.h"
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

}  // namespace

absl::StatusOr<std::unique_ptr<MaskWriter>> MaskWriter::Create(const std::string& path,
                                                               MaskForm form,
                                                               const VolumeShape& shape) {
  ASSIGN_OR_RETURN(std::unique_ptr<DurableWriter> out, DurableWriter::Create(path));
  if (form == MaskForm::kTiff)
    return std::unique_ptr<MaskWriter>(std::make_unique<TiffMask>(std::move(out), shape));
  RETURN_IF_ERROR(out->Append(NpyHeaderText("|u1", {shape.depth, shape.height, shape.width})));
  return std::unique_ptr<MaskWriter>(std::make_unique<NpyMask>(std::move(out)));
}

}  // namespace traind
