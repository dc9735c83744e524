#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/data_roots.h"
#include "common/base/status_macros.h"
#include "common/data/volume/volume_reader.h"

namespace traind {
namespace {

// The format of a page's values.
struct PageForm {
  int64_t width = 0, height = 0, channels = 1;
  int bits = 8;
  int format = SAMPLEFORMAT_UINT;

  friend bool operator==(const PageForm& a, const PageForm& b) {
    return a.width == b.width && a.height == b.height && a.channels == b.channels &&
           a.bits == b.bits && a.format == b.format;
  }
};

std::string ToString(const PageForm& form) {
  const char* format = form.format == SAMPLEFORMAT_IEEEFP ? "float"
                       : form.format == SAMPLEFORMAT_INT  ? "int"
                                                          : "uint";
  return absl::StrCat(form.height, " x ", form.width, " x ", form.channels, " ", format, form.bits);
}

template <class T>
void Convert(const std::vector<char>& from, absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, from.data() + i * sizeof value, sizeof value);
    out[i] = static_cast<float>(value);
  }
}

using Converter = void (*)(const std::vector<char>&, absl::Span<float>);

struct FileType {
  int format, bits;
  Converter convert;
  VoxelType voxel;
};
constexpr FileType kTypes[] = {
    {SAMPLEFORMAT_UINT, 8, Convert<uint8_t>, VoxelType::kUint8},
    {SAMPLEFORMAT_UINT, 16, Convert<uint16_t>, VoxelType::kUint16},
    {SAMPLEFORMAT_UINT, 32, Convert<uint32_t>, VoxelType::kFloat32},
    {SAMPLEFORMAT_INT, 8, Convert<int8_t>, VoxelType::kInt16},
    {SAMPLEFORMAT_INT, 16, Convert<int16_t>, VoxelType::kInt16},
    {SAMPLEFORMAT_INT, 32, Convert<int32_t>, VoxelType::kFloat32},
    {SAMPLEFORMAT_IEEEFP, 32, Convert<float>, VoxelType::kFloat32},
};

int KeepError(TIFF*, void* kept, const char*, const char* format, va_list args) {
  char text[256];
  std::vsnprintf(text, sizeof text, format, args);
  *static_cast<std::string*>(kept) = text;
  return 1;
}
int DropWarning(TIFF*, void*, const char*, const char*, va_list) { return 1; }

class TiffVolume final : public VolumeReader {
 public:
  explicit TiffVolume(std::string path) : VolumeReader(std::move(path)) {}
  ~TiffVolume() override {
    if (tiff_ != nullptr) TIFFClose(tiff_);
  }

  absl::Status Initialize() {
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, KeepError, &error_);
    TIFFOpenOptionsSetWarningHandlerExtR(options, DropWarning, nullptr);
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, kMostSliceValues * 8);
    tiff_ = TIFFOpenExt(path().c_str(), "rm",
                        options);  // m: not mapped, so that a cut file is an error
    TIFFOpenOptionsFree(options);
    if (tiff_ == nullptr) return Broken("cannot be opened");
    RETURN_IF_ERROR(CheckUserFile(TIFFFileno(tiff_), path()));
    do {
      ASSIGN_OR_RETURN(const PageForm form, FormOfPage());
      if (pages_.empty()) {
        form_ = form;
      } else if (!(form == form_)) {
        return Wrong(absl::StrCat("page ", pages_.size(), " is ", ToString(form), ", the first ",
                                  ToString(form_)));
      }
      pages_.push_back(TIFFCurrentDirOffset(tiff_));
      if (pages_.size() > static_cast<size_t>(kMostExtent)) return Wrong("too many pages");
      error_.clear();
    } while (TIFFReadDirectory(tiff_) != 0);
    if (!error_.empty()) return Broken(absl::StrCat("page ", pages_.size(), " cannot be read"));
    for (const FileType& type : kTypes) {
      if (type.format != form_.format || type.bits != form_.bits) continue;
      convert_ = type.convert;
      type_ = type.voxel;
    }
    if (convert_ == nullptr) {
      return Wrong(absl::StrCat("pages of ", ToString(form_),
                                "; integers of 8, 16 or 32 bits and float32 can be read"));
    }
    shape_ = {static_cast<int64_t>(pages_.size()), form_.height, form_.width, form_.channels};
    return absl::OkStatus();
  }

 protected:
  absl::Status Decode(int64_t z, absl::Span<float> out) override {
    error_.clear();
    const std::string page = absl::StrCat("page ", z);
    if (TIFFSetSubDirectory(tiff_, pages_[static_cast<size_t>(z)]) == 0) {
      return Broken(absl::StrCat(page, " cannot be read"));
    }
    const size_t bytes = out.size() * static_cast<size_t>(form_.bits / 8);
    page_.resize(bytes);
    const bool whole = TIFFIsTiled(tiff_) != 0 ? ReadTiles() : ReadStrips();
    if (!whole) return Broken(absl::StrCat(page, " is damaged or cut"));
    convert_(page_, out);
    return absl::OkStatus();
  }

 private:
  absl::Status Broken(absl::string_view what) const {
    return Wrong(error_.empty() ? std::string(what) : absl::StrCat(what, ": ", error_));
  }

  absl::StatusOr<PageForm> FormOfPage() {
    uint32_t width = 0, height = 0;
    uint16_t bits = 1, samples = 1, format = SAMPLEFORMAT_UINT, planar = PLANARCONFIG_CONTIG;
    uint16_t photometric = PHOTOMETRIC_MINISBLACK;
    TIFFGetField(tiff_, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff_, TIFFTAG_IMAGELENGTH, &height);
    TIFFGetFieldDefaulted(tiff_, TIFFTAG_BITSPERSAMPLE, &bits);
    TIFFGetFieldDefaulted(tiff_, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetFieldDefaulted(tiff_, TIFFTAG_SAMPLEFORMAT, &format);
    TIFFGetFieldDefaulted(tiff_, TIFFTAG_PLANARCONFIG, &planar);
    TIFFGetField(tiff_, TIFFTAG_PHOTOMETRIC, &photometric);
    if (samples > 1 && planar != PLANARCONFIG_CONTIG) {
      return Wrong("the channels are in separate planes; they must be interleaved");
    }
    if (photometric == PHOTOMETRIC_PALETTE) return Wrong("colours of a palette, not values");
    if (width == 0 || height == 0 || width > kMostExtent || height > kMostExtent ||
        static_cast<int64_t>(width) * height * samples > kMostSliceValues) {
      return Wrong(absl::StrCat("a page of ", height, " x ", width, " x ", samples, " values"));
    }
    if (format == SAMPLEFORMAT_VOID) format = SAMPLEFORMAT_UINT;
    return PageForm{width, height, samples, bits, format};
  }

  bool ReadStrips() {
    size_t at = 0;
    const uint32_t strips = TIFFNumberOfStrips(tiff_);
    for (uint32_t strip = 0; strip < strips && at < page_.size(); ++strip) {
      const auto wanted = std::min(static_cast<size_t>(TIFFStripSize(tiff_)), page_.size() - at);
      const tmsize_t read =
          TIFFReadEncodedStrip(tiff_, strip, page_.data() + at, static_cast<tmsize_t>(wanted));
      if (read < 0 || static_cast<size_t>(read) != wanted) return false;
      at += wanted;
    }
    return at == page_.size();
  }

  bool ReadTiles() {
    uint32_t tile_width = 0, tile_height = 0;
    TIFFGetField(tiff_, TIFFTAG_TILEWIDTH, &tile_width);
    TIFFGetField(tiff_, TIFFTAG_TILELENGTH, &tile_height);
    const int64_t pixel = form_.channels * form_.bits / 8;
    const tmsize_t size = TIFFTileSize(tiff_);
    if (tile_width == 0 || tile_height == 0 ||
        size != static_cast<int64_t>(tile_width) * tile_height * pixel) {
      return false;
    }
    tile_.resize(static_cast<size_t>(size));
    for (int64_t y = 0; y < form_.height; y += tile_height) {
      for (int64_t x = 0; x < form_.width; x += tile_width) {
        if (TIFFReadTile(tiff_, tile_.data(), static_cast<uint32_t>(x), static_cast<uint32_t>(y), 0,
                         0) != size) {
          return false;
        }
        const int64_t rows = std::min<int64_t>(tile_height, form_.height - y);
        const int64_t row_bytes = std::min<int64_t>(tile_width, form_.width - x) * pixel;
        for (int64_t row = 0; row < rows; ++row) {
          std::memcpy(page_.data() + ((y + row) * form_.width + x) * pixel,
                      tile_.data() + row * tile_width * pixel, static_cast<size_t>(row_bytes));
        }
      }
    }
    return true;
  }

  TIFF* tiff_ = nullptr;
  std::string error_;            // the library's last error
  std::vector<uint64_t> pages_;  // [D]: where they begin
  PageForm form_;
  Converter convert_ = nullptr;
  std::vector<char> page_, tile_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VolumeReader>> OpenTiffVolume(const std::string& path) {
  auto volume = std::make_unique<TiffVolume>(path);
  RETURN_IF_ERROR(volume->Initialize());
  return std::unique_ptr<VolumeReader>(std::move(volume));
}

}  // namespace traind
