#include "common/data/volume/nifti_header.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace traind {
namespace {

// Where a version's header has its fields, in bytes. Version 2 has wider numbers.
struct Layout {
  int64_t size;
  bool wide;
  size_t magic, datatype, bitpix, dim, pixdim, data_begin, slope, inter, units, qform, sform,
      quatern, srow;
};
constexpr Layout kVersion1 = {348, false, 344, 70,  72,  40,  76, 108,
                              112, 116,   123, 252, 254, 256, 280};
constexpr Layout kVersion2 = {540, true, 4,   12,  14,  16,  104, 168,
                              176, 184,  500, 344, 348, 352, 400};

constexpr int64_t kUint8 = 2;         // datatype
constexpr size_t kExtensionFlag = 4;  // bytes behind the header; zeros: there is no extension
constexpr int64_t kMostOfVersion1 = 32767;

// Reads fields of a header.
class Fields {
 public:
  Fields(absl::string_view bytes, const Layout& layout, bool swapped)
      : bytes_(bytes), layout_(layout), swapped_(swapped) {}

  template <class T>
  T Raw(size_t at) const {
    char raw[sizeof(T)];
    std::memcpy(raw, bytes_.data() + at, sizeof raw);
    if (swapped_) std::reverse(raw, raw + sizeof raw);
    T value;
    std::memcpy(&value, raw, sizeof value);
    return value;
  }
  // The i-th number of a field; not finite: 0.
  double Real(size_t at, size_t i = 0) const {
    const double value = layout_.wide ? Raw<double>(at + 8 * i) : Raw<float>(at + 4 * i);
    return std::isfinite(value) ? value : 0;
  }
  int64_t Dim(size_t i) const {
    return layout_.wide ? Raw<int64_t>(layout_.dim + 8 * i) : Raw<int16_t>(layout_.dim + 2 * i);
  }
  int64_t Code(size_t at) const { return layout_.wide ? Raw<int32_t>(at) : Raw<int16_t>(at); }

 private:
  const absl::string_view bytes_;
  const Layout& layout_;
  const bool swapped_;
};

template <class T>
void Put(T value, size_t at, std::string& header) {
  std::memcpy(header.data() + at, &value, sizeof value);
}

int32_t SizeOf(absl::string_view bytes, bool swapped) {
  return Fields(bytes, kVersion1, swapped).Raw<int32_t>(0);
}

// The layout whose size the first bytes name, in this byte order or the other; null: neither.
const Layout* LayoutOf(absl::string_view bytes, bool& swapped) {
  for (const Layout* const layout : {&kVersion1, &kVersion2}) {
    for (const bool other : {false, true}) {
      swapped = other;
      if (bytes.size() >= 4 && SizeOf(bytes, other) == layout->size) return layout;
    }
  }
  return nullptr;
}

NiftiGeometry GeometryOf(const Fields& fields, const Layout& layout) {
  NiftiGeometry geometry;
  const auto read = [&fields](size_t at, auto& values) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = fields.Real(at, i);
  };
  read(layout.pixdim, geometry.pixdim);
  read(layout.quatern, geometry.quatern);
  read(layout.srow, geometry.srow);
  geometry.xyzt_units =
      layout.wide ? fields.Raw<int32_t>(layout.units) : fields.Raw<uint8_t>(layout.units);
  geometry.qform_code = fields.Code(layout.qform);
  geometry.sform_code = fields.Code(layout.sform);
  return geometry;
}

absl::StatusOr<VolumeShape> ShapeOf(const Fields& fields) {
  const int64_t dims = fields.Dim(0);
  if (dims < 1 || dims > 7) return absl::InvalidArgumentError(absl::StrCat(dims, " dimensions"));
  const auto extent = [&](size_t i) {
    return static_cast<int64_t>(i) <= dims ? fields.Dim(i) : int64_t{1};
  };
  VolumeShape shape = {extent(3), extent(2), extent(1), 1};
  for (size_t i = 4; i <= 7; ++i) {
    const int64_t further = extent(i);
    if (further == 1) continue;
    if (shape.channels != 1) {
      return absl::InvalidArgumentError("more than one dimension behind x, y and z");
    }
    shape.channels = further;
  }
  if (std::min({shape.depth, shape.height, shape.width, shape.channels}) < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a volume of ", ToString(shape), " voxels"));
  }
  return shape;
}

}  // namespace

bool IsNifti(absl::string_view bytes) {
  bool swapped = false;
  return LayoutOf(bytes, swapped) != nullptr;
}

absl::StatusOr<NiftiHeader> ParseNiftiHeader(absl::string_view bytes) {
  NiftiHeader header;
  const Layout* const layout = LayoutOf(bytes, header.swapped);
  if (layout == nullptr || bytes.size() < static_cast<size_t>(layout->size)) {
    return absl::InvalidArgumentError("not a complete NIfTI file");
  }
  const Fields fields(bytes, *layout, header.swapped);
  const absl::string_view magic = bytes.substr(layout->magic, 3);
  header.pair = magic == (layout->wide ? "ni2" : "ni1");
  if (!header.pair && magic != (layout->wide ? "n+2" : "n+1")) {
    return absl::InvalidArgumentError(
        layout->wide ? "not a NIfTI file"
                     : "a header of ANALYZE 7.5, which does not tell left from right; convert it "
                       "to NIfTI with the orientation that you know it has");
  }
  const auto shape = ShapeOf(fields);
  if (!shape.ok()) return shape.status();
  header.shape = *shape;
  header.datatype = fields.Raw<int16_t>(layout->datatype);
  const double begin = layout->wide ? static_cast<double>(fields.Raw<int64_t>(layout->data_begin))
                                    : fields.Real(layout->data_begin);
  const double least = header.pair ? 0 : static_cast<double>(layout->size);
  if (!(begin >= least && begin < 1e9)) {
    return absl::InvalidArgumentError(absl::StrCat("voxels that begin at byte ", begin));
  }
  header.data_begin = static_cast<uint64_t>(begin);
  header.scl_slope = fields.Real(layout->slope);
  header.scl_inter = fields.Real(layout->inter);
  header.geometry = GeometryOf(fields, *layout);
  return header;
}

std::string NiftiMaskHeader(const VolumeShape& shape, const NiftiGeometry& geometry) {
  const bool wide = std::max({shape.depth, shape.height, shape.width}) > kMostOfVersion1;
  const Layout& layout = wide ? kVersion2 : kVersion1;
  std::string header(static_cast<size_t>(layout.size) + kExtensionFlag, '\0');
  const auto real = [&](size_t at, size_t i, double value) {
    if (wide) return Put(value, at + 8 * i, header);
    Put(static_cast<float>(value), at + 4 * i, header);
  };
  const auto code = [&](size_t at, int64_t value) {
    if (wide) return Put(static_cast<int32_t>(value), at, header);
    Put(static_cast<int16_t>(value), at, header);
  };
  Put(static_cast<int32_t>(layout.size), 0, header);
  const absl::string_view magic =
      wide ? absl::string_view("n+2\0\r\n\x1a\n", 8) : absl::string_view("n+1\0", 4);
  std::copy(magic.begin(), magic.end(), header.begin() + static_cast<ptrdiff_t>(layout.magic));
  Put(static_cast<int16_t>(kUint8), layout.datatype, header);
  Put(int16_t{8}, layout.bitpix, header);
  const int64_t dim[] = {3, shape.width, shape.height, shape.depth, 1, 1, 1, 1};
  for (size_t i = 0; i < 8; ++i) {
    if (wide) {
      Put(dim[i], layout.dim + 8 * i, header);
    } else {
      Put(static_cast<int16_t>(dim[i]), layout.dim + 2 * i, header);
    }
    real(layout.pixdim, i, i < 4 ? geometry.pixdim[i] : 1);
  }
  if (wide) {
    Put(static_cast<int64_t>(header.size()), layout.data_begin, header);
    Put(static_cast<int32_t>(geometry.xyzt_units), layout.units, header);
  } else {
    real(layout.data_begin, 0, static_cast<double>(header.size()));
    Put(static_cast<uint8_t>(geometry.xyzt_units), layout.units, header);
  }
  real(layout.slope, 0, 1);
  code(layout.qform, geometry.qform_code);
  code(layout.sform, geometry.sform_code);
  for (size_t i = 0; i < geometry.quatern.size(); ++i) real(layout.quatern, i, geometry.quatern[i]);
  for (size_t i = 0; i < geometry.srow.size(); ++i) real(layout.srow, i, geometry.srow[i]);
  return header;
}

}  // namespace traind
