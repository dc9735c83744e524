#include "worker/checkpoint/safetensors.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "common/base/status_macros.h"
#include "worker/checkpoint/safetensors_header.h"

namespace traind {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kAlignment = 64;

struct Known {
  DType dtype;
  const char* name;
  int64_t bytes;
};
constexpr Known kKnown[] = {
    {DType::kF32, "F32", 4},        {DType::kF16, "F16", 2}, {DType::kBF16, "BF16", 2},
    {DType::kF64, "F64", 8},        {DType::kI64, "I64", 8}, {DType::kI32, "I32", 4},
    {DType::kI16, "I16", 2},        {DType::kI8, "I8", 1},   {DType::kU64, "U64", 8},
    {DType::kU32, "U32", 4},        {DType::kU16, "U16", 2}, {DType::kU8, "U8", 1},
    {DType::kBool, "BOOL", 1},      {DType::kC64, "C64", 8}, {DType::kF8E4M3, "F8_E4M3", 1},
    {DType::kF8E5M2, "F8_E5M2", 1},
};

const Known& Of(DType dtype) {
  return *std::find_if(std::begin(kKnown), std::end(kKnown),
                       [dtype](const Known& known) { return known.dtype == dtype; });
}

std::optional<DType> DTypeByName(const std::string& name) {
  for (const Known& known : kKnown) {
    if (name == known.name) return known.dtype;
  }
  return std::nullopt;
}

absl::Status Bad(const std::string& what) { return absl::DataLossError("safetensors: " + what); }

// Bytes of a tensor; nullopt if they do not fit into 63 bits.
std::optional<int64_t> BytesOf(DType dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = SizeOf(dtype);
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

// Returns the dtype of an entry, after checking that its offsets lie within the
// data and fit its shape.
absl::StatusOr<DType> CheckEntry(const std::string& name, const HeaderEntry& entry,
                                 int64_t data_bytes) {
  const std::string where = TensorNamed(name);
  const auto dtype = DTypeByName(entry.dtype);
  if (!dtype.has_value()) {
    return Bad(absl::StrCat(where, ": unknown dtype ", Quoted(entry.dtype)));
  }
  const std::string offsets = absl::StrCat(where, ": offsets ", entry.begin, "-", entry.end);
  if (entry.begin > entry.end) return Bad(offsets + " run backwards");
  if (entry.end > data_bytes) {
    return Bad(absl::StrCat(offsets, " exceed the file, which has ", data_bytes, " bytes of data"));
  }
  const auto bytes = BytesOf(*dtype, entry.shape);
  if (!bytes.has_value()) return Bad(where + ": its shape has more elements than can be counted");
  if (*bytes != entry.end - entry.begin) {
    return Bad(absl::StrCat(offsets, " do not span the ", *bytes, " bytes of its shape and dtype"));
  }
  return *dtype;
}

// Checks that the tensors fill the data one after the other.
absl::Status CheckContiguous(const std::map<std::string, HeaderEntry>& entries,
                             int64_t data_bytes) {
  struct Range {
    int64_t begin, end;
    const std::string* name;
  };
  std::vector<Range> ranges;
  ranges.reserve(entries.size());
  for (const auto& [name, entry] : entries) ranges.push_back({entry.begin, entry.end, &name});
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  int64_t at = 0;
  const std::string* before = nullptr;
  for (const Range& range : ranges) {
    if (range.begin < at) {
      return Bad(absl::StrCat(TensorNamed(*range.name), " starts at ", range.begin, ", within ",
                              TensorNamed(*before), ", which ends at ", at));
    }
    if (range.begin > at) {
      return Bad(absl::StrCat("bytes ", at, "-", range.begin, " before ", TensorNamed(*range.name),
                              " belong to no tensor"));
    }
    at = range.end;
    before = range.name;
  }
  if (at != data_bytes) {
    return Bad(absl::StrCat("the tensors end at byte ", at, " of ", data_bytes, " bytes of data"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t SizeOf(DType dtype) { return Of(dtype).bytes; }
const char* NameOf(DType dtype) { return Of(dtype).name; }

std::string SafetensorsHeader(absl::Span<const NamedTensorView> tensors,
                              const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const NamedTensorView& named : tensors) {
    const uint64_t end = offset + named.tensor.data.size();
    header[named.name] = {{"dtype", NameOf(named.tensor.dtype)},
                          {"shape", named.tensor.shape},
                          {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  // Padding with blanks is part of the format.
  text.resize((text.size() + 8 + kAlignment - 1) / kAlignment * kAlignment - 8, ' ');
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(text.size() >> (8 * i)));
  bytes += text;
  return bytes;
}

std::string EncodeSafetensors(absl::Span<const NamedTensorView> tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::string bytes = SafetensorsHeader(tensors, metadata);
  for (const NamedTensorView& named : tensors) {
    bytes.append(named.tensor.data.data(), named.tensor.data.size());
  }
  return bytes;
}

absl::StatusOr<SafetensorsFile> ParseSafetensors(absl::string_view bytes) {
  if (bytes.size() < 8) return Bad("the file is shorter than its size field");
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) {
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
  }
  if (header_bytes > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return Bad(absl::StrCat("its header of ", header_bytes, " bytes is too large"));
  }
  if (header_bytes > bytes.size() - 8) {
    return Bad(absl::StrCat("the file ends within its header of ", header_bytes, " bytes"));
  }
  ASSIGN_OR_RETURN(SafetensorsEntries entries,
                   ParseSafetensorsHeader(bytes.substr(8, header_bytes)));
  const absl::string_view data = bytes.substr(8 + header_bytes);
  SafetensorsFile file;
  file.metadata = std::move(entries.metadata);
  for (auto& [name, entry] : entries.tensors) {
    ASSIGN_OR_RETURN(const DType dtype, CheckEntry(name, entry, static_cast<int64_t>(data.size())));
    file.tensors[name] = {dtype, std::move(entry.shape),
                          data.substr(static_cast<size_t>(entry.begin),
                                      static_cast<size_t>(entry.end - entry.begin))};
  }
  RETURN_IF_ERROR(CheckContiguous(entries.tensors, static_cast<int64_t>(data.size())));
  return file;
}

absl::StatusOr<std::vector<float>> FloatsOf(const SafetensorsFile& file, const std::string& name,
                                            int64_t expected) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) {
    return absl::NotFoundError("safetensors: there is no tensor \"" + name + "\"");
  }
  const TensorView& tensor = found->second;
  if (tensor.dtype != DType::kF32 || static_cast<int64_t>(tensor.data.size()) != expected * 4) {
    return Bad(absl::StrCat("tensor \"", name, "\" does not have ", expected, " float32 values"));
  }
  std::vector<float> values(static_cast<size_t>(expected));
  if (expected > 0) std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

}  // namespace traind
