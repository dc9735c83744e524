#include "common/data/table/npy.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>

#include <cstring>
#include <optional>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "NPY files are written as memory lies");

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kPreamble = 10;  // magic, version, u16 header size
constexpr size_t kMaxDims = 8;

template <typename T>
constexpr absl::string_view kDtype = "";
template <>
constexpr absl::string_view kDtype<float> = "<f4";
template <>
constexpr absl::string_view kDtype<int16_t> = "<i2";

std::string HeaderBytes(absl::string_view dtype, absl::Span<const int64_t> shape) {
  std::string header =
      absl::StrCat("{'descr': '", dtype, "', 'fortran_order': False, 'shape': (",
                   absl::StrJoin(shape, ", "), shape.size() == 1 ? ",), }" : "), }");
  // The data begins at a multiple of 64, and the header ends with a newline.
  header.append(63 - (kPreamble + header.size()) % 64, ' ');
  header.push_back('\n');
  std::string bytes(kMagic);
  bytes.push_back(1);
  bytes.push_back(0);
  bytes.push_back(static_cast<char>(header.size() & 0xff));
  bytes.push_back(static_cast<char>(header.size() >> 8));
  bytes += header;
  return bytes;
}

template <typename T>
std::string Encode(absl::Span<const int64_t> shape, absl::Span<const T> values) {
  std::string bytes = HeaderBytes(kDtype<T>, shape);
  bytes.reserve(bytes.size() + values.size() * sizeof(T));
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return bytes;
}

absl::Status Damaged(absl::string_view name, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(name, " is not a complete NPY file: ", what));
}

// Reads the header's Python literal, in the subset that numpy itself writes.
class HeaderText {
 public:
  explicit HeaderText(absl::string_view text) : text_(text) {}

  bool Eat(absl::string_view token) {
    SkipBlanks();
    return absl::ConsumePrefix(&text_, token);
  }
  std::optional<std::string> Quoted() {
    SkipBlanks();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return std::nullopt;
    const size_t close = text_.find(text_[0], 1);
    if (close == absl::string_view::npos) return std::nullopt;
    std::string value(text_.substr(1, close - 1));
    text_.remove_prefix(close + 1);
    return value;
  }
  std::optional<int64_t> Number() {
    SkipBlanks();
    size_t end = 0;
    while (end < text_.size() && absl::ascii_isdigit(text_[end])) ++end;
    int64_t value = 0;
    if (end == 0 || !absl::SimpleAtoi(text_.substr(0, end), &value)) return std::nullopt;
    text_.remove_prefix(end);
    return value;
  }
  bool AtEnd() {
    SkipBlanks();
    return text_.empty();
  }

 private:
  void SkipBlanks() { text_ = absl::StripLeadingAsciiWhitespace(text_); }
  absl::string_view text_;
};

std::optional<std::vector<int64_t>> ParseShape(HeaderText& text) {
  std::vector<int64_t> shape;
  if (!text.Eat("(")) return std::nullopt;
  while (!text.Eat(")")) {
    const std::optional<int64_t> dim = text.Number();
    if (!dim || shape.size() == kMaxDims) return std::nullopt;
    shape.push_back(*dim);
    if (!text.Eat(",")) {
      if (!text.Eat(")")) return std::nullopt;
      break;
    }
  }
  return shape;
}

std::optional<NpyHeader> ParseHeader(HeaderText text) {
  NpyHeader header;
  bool has_dtype = false, has_order = false, has_shape = false;
  if (!text.Eat("{")) return std::nullopt;
  for (bool closed = text.Eat("}"); !closed;) {
    const std::optional<std::string> key = text.Quoted();
    if (!key || !text.Eat(":")) return std::nullopt;
    if (*key == "descr" && !has_dtype) {
      const std::optional<std::string> dtype = text.Quoted();
      if (!dtype) return std::nullopt;
      header.dtype = *dtype;
      has_dtype = true;
    } else if (*key == "fortran_order" && !has_order) {
      header.fortran_order = text.Eat("True");
      if (!header.fortran_order && !text.Eat("False")) return std::nullopt;
      has_order = true;
    } else if (*key == "shape" && !has_shape) {
      std::optional<std::vector<int64_t>> shape = ParseShape(text);
      if (!shape) return std::nullopt;
      header.shape = *std::move(shape);
      has_shape = true;
    } else {
      return std::nullopt;
    }
    const bool comma = text.Eat(",");
    closed = text.Eat("}");
    if (!comma && !closed) return std::nullopt;
  }
  if (!has_dtype || !has_order || !has_shape || !text.AtEnd()) return std::nullopt;
  return header;
}

template <typename T>
absl::StatusOr<Array<T>> Parse(absl::string_view bytes, absl::string_view name) {
  ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(bytes, name));
  if (header.dtype != kDtype<T>) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " holds ", header.dtype, ", but must hold ", kDtype<T>));
  }
  const absl::string_view data = bytes.substr(header.data_begin);
  ASSIGN_OR_RETURN(const uint64_t count, CountNpyValues(header, data.size(), sizeof(T), name));
  if (header.fortran_order && header.shape.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " is in Fortran order, but must be in C order"));
  }
  Array<T> array;
  array.shape = header.shape;
  array.values.resize(count);
  if (count > 0) std::memcpy(array.values.data(), data.data(), data.size());
  return array;
}

}  // namespace

std::string NpyHeaderText(absl::string_view dtype, absl::Span<const int64_t> shape) {
  return HeaderBytes(dtype, shape);
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view bytes, absl::string_view name) {
  if (bytes.substr(0, kMagic.size()) != kMagic || bytes.size() < kPreamble) {
    return Damaged(name, "its first bytes are wrong");
  }
  const char version = bytes[6];
  if (version < 1 || version > 3 || bytes[7] != 0) {
    return Damaged(name, "version is not 1.0, 2.0 or 3.0");
  }
  const size_t size_bytes = version == 1 ? 2 : 4;
  const size_t begin = kPreamble - 2 + size_bytes;
  if (bytes.size() < begin) return Damaged(name, "it is cut within its header");
  size_t header_size = 0;
  for (size_t i = 0; i < size_bytes; ++i) {
    header_size |= static_cast<size_t>(static_cast<unsigned char>(bytes[8 + i])) << (8 * i);
  }
  if (bytes.size() - begin < header_size) return Damaged(name, "it is cut within its header");
  std::optional<NpyHeader> header = ParseHeader(HeaderText(bytes.substr(begin, header_size)));
  if (!header) return Damaged(name, "its header cannot be read");
  header->data_begin = begin + header_size;
  return *std::move(header);
}

absl::StatusOr<uint64_t> CountNpyValues(const NpyHeader& header, uint64_t data_bytes,
                                        uint64_t item_bytes, absl::string_view name) {
  // The available values are divided down, so that no product can overflow.
  uint64_t count = 1;
  const uint64_t available = data_bytes / item_bytes;
  for (const int64_t dim : header.shape) {
    if (dim != 0 && count > available / static_cast<uint64_t>(dim)) {
      return Damaged(name, absl::StrCat("shape (", absl::StrJoin(header.shape, ", "),
                                        ") needs more than its ", data_bytes, " bytes of data"));
    }
    count *= static_cast<uint64_t>(dim);
  }
  if (count * item_bytes != data_bytes) {
    return Damaged(name, "its size is not what its shape says");
  }
  return count;
}

std::string EncodeNpy(absl::Span<const int64_t> shape, absl::Span<const float> values) {
  return Encode(shape, values);
}

std::string EncodeNpy(absl::Span<const int64_t> shape, absl::Span<const int16_t> values) {
  return Encode(shape, values);
}

absl::Status WriteNpy(const std::string& path, absl::Span<const int64_t> shape,
                      absl::Span<const float> values) {
  return WriteFileDurably(path, Encode(shape, values));
}

absl::Status WriteNpy(const std::string& path, absl::Span<const int64_t> shape,
                      absl::Span<const int16_t> values) {
  return WriteFileDurably(path, Encode(shape, values));
}

absl::StatusOr<Array<float>> ParseNpyFloat(absl::string_view bytes, absl::string_view name) {
  return Parse<float>(bytes, name);
}

absl::StatusOr<Array<int16_t>> ParseNpyInt16(absl::string_view bytes, absl::string_view name) {
  return Parse<int16_t>(bytes, name);
}

absl::StatusOr<Array<float>> ReadNpyFloat(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return Parse<float>(bytes, path);
}

absl::StatusOr<Array<int16_t>> ReadNpyInt16(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path));
  return Parse<int16_t>(bytes, path);
}

}  // namespace traind
