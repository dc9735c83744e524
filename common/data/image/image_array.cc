#include "common/data/image/image_array.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/base/status_macros.h"

namespace traind {

struct ImageArray::Type {
  absl::string_view dtype;  // numpy's
  int64_t bytes;
  ValueRange range;
  bool coarse;
  Reader reader;
};

namespace {

absl::Status Wrong(const std::string& name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, " ", what));
}

bool IsChannels(int64_t extent) { return extent == 1 || extent == 3; }

absl::StatusOr<bool> ChannelsFirst(const std::vector<int64_t>& shape, ImageLayout layout,
                                   const std::string& name) {
  const bool first = IsChannels(shape[1]), last = IsChannels(shape[3]);
  const std::string has = absl::StrCat("has shape (", absl::StrJoin(shape, ", "), ")");
  if (layout != ImageLayout::kAuto) {
    const bool channels_first = layout == ImageLayout::kChannelsFirst;
    if (channels_first ? first : last) return channels_first;
    return Wrong(name, absl::StrCat(has, ", whose ", channels_first ? "second" : "last",
                                    " axis is not 1 or 3 channels (data.image.layout)"));
  }
  if (first != last) return first;
  if (first) {
    return Wrong(name, absl::StrCat(has,
                                    ": either its second or its last axis may be the "
                                    "channels; data.image.layout says which"));
  }
  return Wrong(name,
               absl::StrCat(has, ": neither its second nor its last axis is 1 or 3 channels"));
}

absl::Status WrongType(const std::string& name, const std::string& dtype) {
  if (dtype.size() > 1 && dtype[1] == 'O') {
    return Wrong(name, "holds Python objects; save numbers: numpy.stack(images)");
  }
  if (dtype.size() > 1 && dtype[0] == '>') {
    return Wrong(name,
                 absl::StrCat("is big-endian (", dtype, "); save it as '<", dtype.substr(1), "'"));
  }
  return Wrong(name, absl::StrCat("has dtype '", dtype,
                                  "'; pixels must be integers, bool, float32 or float64"));
}

}  // namespace

const ImageArray::Type* ImageArray::TypeOf(absl::string_view dtype) {
  static constexpr ValueRange kByte = {0, 255}, kUnit = {0, 1}, kWord = {0, 65535};
  static const Type kTypes[] = {
      {"|u1", 1, kByte, false, ReadAs<uint8_t>},  {"<f4", 4, kUnit, true, ReadAs<float>},
      {"<f8", 8, kUnit, true, ReadAs<double>},    {"<u2", 2, kWord, true, ReadAs<uint16_t>},
      {"<i8", 8, kByte, false, ReadAs<int64_t>},  {"<i4", 4, kByte, false, ReadAs<int32_t>},
      {"|b1", 1, kUnit, false, ReadAs<uint8_t>},  {"|i1", 1, kByte, false, ReadAs<int8_t>},
      {"<i2", 2, kByte, false, ReadAs<int16_t>},  {"<u4", 4, kByte, false, ReadAs<uint32_t>},
      {"<u8", 8, kByte, false, ReadAs<uint64_t>},
  };
  for (const Type& type : kTypes) {
    if (type.dtype == dtype) return &type;
  }
  return nullptr;
}

absl::StatusOr<ImageArrayShape> ImageArrayShapeOf(const NpyHeader& header, ImageLayout layout,
                                                  const std::string& name) {
  if (ImageArray::TypeOf(header.dtype) == nullptr) return WrongType(name, header.dtype);
  const std::vector<int64_t>& from = header.shape;
  if (from.size() != 3 && from.size() != 4) {
    return Wrong(name, absl::StrCat("has shape (", absl::StrJoin(from, ", "),
                                    "); images are [N, H, W], [N, H, W, C] or [N, C, H, W]"));
  }
  ImageArrayShape shape;
  shape.images = from[0];
  if (from.size() == 4) {
    ASSIGN_OR_RETURN(shape.channels_first, ChannelsFirst(from, layout, name));
    shape.channels = shape.channels_first ? from[1] : from[3];
  }
  const size_t at = shape.channels_first ? 2 : 1;
  shape.height = from[at];
  shape.width = from[at + 1];
  if (shape.images == 0) return Wrong(name, "has no image");
  if (const absl::Status size = CheckImageSize(shape.height, shape.width); !size.ok()) {
    return Wrong(name, size.message());
  }
  return shape;
}

absl::StatusOr<ImageArray> ImageArray::Open(absl::string_view bytes, ImageLayout layout,
                                            std::optional<ValueRange> range,
                                            const std::string& name) {
  const absl::StatusOr<NpyHeader> header = ParseNpyHeader(bytes, name);
  if (!header.ok()) return absl::InvalidArgumentError(header.status().message());
  ImageArray array;
  ASSIGN_OR_RETURN(array.shape_, ImageArrayShapeOf(*header, layout, name));
  const Type& type = *TypeOf(header->dtype);
  const absl::string_view data = bytes.substr(header->data_begin);
  const auto count = CountNpyValues(*header, data.size(), static_cast<uint64_t>(type.bytes), name);
  if (!count.ok()) return absl::InvalidArgumentError(count.status().message());
  array.given_ = range.has_value();
  array.range_ = range.value_or(type.range);
  array.coarse_ = type.coarse;
  array.data_ = data.data();
  array.reader_ = type.reader;
  std::vector<int64_t> steps(header->shape.size());
  int64_t step = type.bytes;
  for (size_t i = 0; i < steps.size(); ++i) {
    const size_t axis = header->fortran_order ? i : steps.size() - 1 - i;
    steps[axis] = step;
    step *= header->shape[axis];
  }
  const size_t rows = array.shape_.channels_first ? 2 : 1;
  array.image_step_ = steps[0];
  array.row_step_ = steps[rows];
  array.column_step_ = steps[rows + 1];
  if (steps.size() == 4) array.channel_step_ = steps[array.shape_.channels_first ? 1 : 3];
  return array;
}

absl::Status ImageArray::WrongValue(double value, int64_t pixel) const {
  const int64_t at = pixel / shape_.channels;
  const std::string place = absl::StrCat("at y ", at / shape_.width, ", x ", at % shape_.width);
  if (!std::isfinite(value)) {
    return absl::InvalidArgumentError(absl::StrCat("has no finite value ", place));
  }
  return absl::InvalidArgumentError(absl::StrCat("has ", value, " ", place, ", beyond ",
                                                 range_.black, " to ", range_.white,
                                                 " (data.image.black, data.image.white)"));
}

template <class T>
absl::Status ImageArray::ReadAs(const ImageArray& array, const char* first, uint8_t* out,
                                ValueRange& extent) {
  const ValueRange range = array.range_;
  const double scale = 255 / (range.white - range.black);
  // Computed floats may lie slightly beyond the range; they still round to its ends.
  const double slack = array.given_ ? HUGE_VAL : 0.5 / scale;
  double least = extent.black, most = extent.white;
  int64_t pixel = 0;
  for (int64_t y = 0; y < array.shape_.height; ++y) {
    const char* row = first + y * array.row_step_;
    for (int64_t x = 0; x < array.shape_.width; ++x, row += array.column_step_) {
      const char* at = row;
      for (int64_t c = 0; c < array.shape_.channels; ++c, at += array.channel_step_, ++pixel) {
        T item;
        std::memcpy(&item, at, sizeof item);
        const auto value = static_cast<double>(item);
        const bool inside = value >= range.black - slack && value <= range.white + slack;
        if (!inside || !std::isfinite(value)) return array.WrongValue(value, pixel);
        least = std::min(least, value);
        most = std::max(most, value);
        const double byte = std::clamp((value - range.black) * scale, 0.0, 255.0);
        out[pixel] = static_cast<uint8_t>(byte + 0.5);
      }
    }
  }
  extent = {least, most};
  return absl::OkStatus();
}

absl::StatusOr<Image> ImageArray::Read(int64_t at, ValueRange& extent) const {
  Image image{shape_.height, shape_.width, shape_.channels, {}};
  image.pixels.resize(static_cast<size_t>(shape_.height * shape_.width * shape_.channels));
  RETURN_IF_ERROR(reader_(*this, data_ + at * image_step_, image.pixels.data(), extent));
  return image;
}

}  // namespace traind
