#include "common/data/table/array_file.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/strip.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <set>

#include "common/base/status_macros.h"
#include "common/data/table/npy.h"
#include "common/data/table/zip.h"

namespace traind {
namespace {

constexpr absl::string_view kNpyMagic("\x93NUMPY", 6);
constexpr absl::string_view kZipMagic("PK", 2);
constexpr int64_t kMostColumns = 100'000;

absl::Status Wrong(const std::string& name, const std::string& array, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": array '", array, "' ", what));
}

absl::Status CheckDtype(const std::string& dtype, const std::string& name,
                        const std::string& array) {
  if (dtype.size() < 2) return Wrong(name, array, absl::StrCat("has dtype '", dtype, "'"));
  const char kind = dtype[1];
  if (kind == 'O') {
    return Wrong(name, array, "holds Python objects; save numbers: x.astype('<f4')");
  }
  if (kind == 'U' || kind == 'S') {
    return Wrong(name, array, "holds texts; save their codes, or use a CSV file");
  }
  if (dtype[0] == '>') {
    return Wrong(name, array,
                 absl::StrCat("is big-endian (", dtype, "); save it as '<", dtype.substr(1), "'"));
  }
  for (const char* known : {"f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"}) {
    if (dtype.substr(1) == known) return absl::OkStatus();
  }
  return Wrong(name, array,
               absl::StrCat("has dtype '", dtype,
                            "'; it must be float32, float64, bool or an integer type"));
}

template <typename T>
T Load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Appends the shortest text that reads back as the same number; nothing for NaN.
template <typename T>
void AppendFloat(T value, std::string& text) {
  if (std::isnan(value)) return;
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end.ptr);
}

template <typename T>
void AppendInteger(T value, std::string& text) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, end.ptr);
}

}  // namespace

bool IsArrayFile(absl::string_view bytes) {
  return absl::StartsWith(bytes, kNpyMagic) || absl::StartsWith(bytes, kZipMagic);
}

absl::StatusOr<std::unique_ptr<ArrayFile>> ArrayFile::Open(absl::string_view bytes,
                                                           const std::string& name) {
  std::unique_ptr<ArrayFile> file(new ArrayFile());
  if (absl::StartsWith(bytes, kNpyMagic)) {
    RETURN_IF_ERROR(file->AddArray(bytes, "x", name));
  } else {
    ASSIGN_OR_RETURN(const std::vector<ZipMember> members, ReadZip(bytes, name));
    for (const ZipMember& member : members) {
      absl::string_view array = member.name;
      if (!absl::ConsumeSuffix(&array, ".npy")) {
        return absl::InvalidArgumentError(
            absl::StrCat(name, ": member '", member.name, "' is not an array (.npy)"));
      }
      std::string buffer;
      ASSIGN_OR_RETURN(absl::string_view values, ReadMember(member, name, buffer));
      if (member.deflated) {
        file->unpacked_.push_back(std::move(buffer));
        values = file->unpacked_.back();
      }
      RETURN_IF_ERROR(file->AddArray(values, std::string(array), name));
    }
  }
  if (file->rows_ <= 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": its arrays have no rows"));
  }
  const std::set<std::string> names(file->columns_.begin(), file->columns_.end());
  if (names.size() < file->columns_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": two of its columns have the same name, such as '", *names.begin(),
                     "'; rename the arrays"));
  }
  return file;
}

absl::Status ArrayFile::AddArray(absl::string_view bytes, const std::string& array,
                                 const std::string& name) {
  const auto header = ParseNpyHeader(bytes, absl::StrCat(name, ": array '", array, "'"));
  if (!header.ok()) return absl::InvalidArgumentError(header.status().message());
  RETURN_IF_ERROR(CheckDtype(header->dtype, name, array));
  const std::vector<int64_t>& shape = header->shape;
  if (shape.size() != 1 && shape.size() != 2) {
    return Wrong(name, array,
                 absl::StrCat("has shape (", absl::StrJoin(shape, ", "),
                              "); it must have one or two dimensions"));
  }
  Values values;
  values.kind = header->dtype[1];
  values.size = header->dtype[2] - '0';
  const auto count =
      CountNpyValues(*header, bytes.size() - header->data_begin, static_cast<uint64_t>(values.size),
                     absl::StrCat(name, ": array '", array, "'"));
  if (!count.ok()) return absl::InvalidArgumentError(count.status().message());
  if (rows_ >= 0 && shape[0] != rows_) {
    return Wrong(name, array,
                 absl::StrCat("has ", shape[0], " rows, array '", first_array_, "' has ", rows_));
  }
  if (rows_ < 0) first_array_ = array;
  rows_ = shape[0];
  const int64_t width = shape.size() == 2 ? shape[1] : 1;
  if (width > kMostColumns) {
    return Wrong(name, array,
                 absl::StrCat("has ", width, " columns; at most ", kMostColumns, " are allowed"));
  }
  const char* const data = bytes.data() + header->data_begin;
  const bool by_column = header->fortran_order;
  values.stride = values.size * (by_column ? 1 : width);
  for (int64_t column = 0; column < width; ++column) {
    values.first = data + column * values.size * (by_column ? rows_ : 1);
    values_.push_back(values);
    columns_.push_back(shape.size() == 2 ? absl::StrCat(array, column) : array);
  }
  return absl::OkStatus();
}

void ArrayFile::AppendValue(const Values& values, int64_t row, std::string& text) {
  const char* const from = values.first + row * values.stride;
  if (values.kind == 'f') {
    return values.size == 4 ? AppendFloat(Load<float>(from), text)
                            : AppendFloat(Load<double>(from), text);
  }
  if (values.kind == 'b') return AppendInteger(Load<uint8_t>(from) != 0 ? 1 : 0, text);
  const bool is_signed = values.kind == 'i';
  switch (values.size) {
    case 1:
      return is_signed ? AppendInteger(int{Load<int8_t>(from)}, text)
                       : AppendInteger(int{Load<uint8_t>(from)}, text);
    case 2:
      return is_signed ? AppendInteger(Load<int16_t>(from), text)
                       : AppendInteger(Load<uint16_t>(from), text);
    case 4:
      return is_signed ? AppendInteger(Load<int32_t>(from), text)
                       : AppendInteger(Load<uint32_t>(from), text);
    default:
      return is_signed ? AppendInteger(Load<int64_t>(from), text)
                       : AppendInteger(Load<uint64_t>(from), text);
  }
}

void ArrayFile::Append(int64_t begin, int64_t end, CsvRows& rows) const {
  std::string text;
  std::vector<size_t> ends;
  for (int64_t row = begin; row < end; ++row) {
    for (const Values& values : values_) {
      AppendValue(values, row, text);
      ends.push_back(text.size());
    }
  }
  rows.Append(std::move(text), ends, columns_.size(), begin + 1);
}

}  // namespace traind
