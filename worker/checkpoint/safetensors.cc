#include "worker/checkpoint/safetensors.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "common/status_macros.h"

namespace traind {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kMetadata[] = "__metadata__";
constexpr size_t kAlignment = 64;
constexpr int kMaxDepth = 4;  // {"name": {"shape": [1]}} needs 3
constexpr size_t kMaxRank = 64;

const char* NameOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kBF16:
      return "BF16";
    case DType::kI64:
      return "I64";
  }
  return "";
}

std::optional<DType> DTypeByName(const std::string& name) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kI64}) {
    if (name == NameOf(dtype)) return dtype;
  }
  return std::nullopt;
}

absl::Status Bad(const std::string& what) { return absl::DataLossError("safetensors: " + what); }

// The parser keeps the last of two equal keys and takes any depth: both must be
// refused while reading.
class HeaderChecks {
 public:
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start) {
      if (depth >= kMaxDepth) too_deep = true;
      keys_.emplace_back();
    } else if (event == Event::array_start) {
      if (depth >= kMaxDepth) too_deep = true;
    } else if (event == Event::object_end) {
      keys_.pop_back();
    } else if (event == Event::key) {
      if (!keys_.back().insert(parsed.get<std::string>()).second && duplicate.empty()) {
        duplicate = parsed.get<std::string>();
      }
    }
    return !too_deep;
  }

  bool too_deep = false;
  std::string duplicate;

 private:
  std::vector<std::set<std::string>> keys_;
};

absl::StatusOr<Json> ParseHeader(absl::string_view text) {
  if (text.empty() || text[0] != '{') return Bad("the header does not start with '{'");
  HeaderChecks checks;
  const Json header = Json::parse(
      text.begin(), text.end(),
      [&checks](int depth, Json::parse_event_t event, Json& parsed) {
        return checks(depth, event, parsed);
      },
      /*allow_exceptions=*/false);
  if (checks.too_deep) return Bad("the header is nested too deep");
  if (header.is_discarded() || !header.is_object()) return Bad("the header is no JSON object");
  if (!checks.duplicate.empty()) return Bad("duplicate key \"" + checks.duplicate + "\"");
  return header;
}

absl::StatusOr<int64_t> NonNegative(const Json& value, const std::string& where) {
  if (!value.is_number_unsigned() ||
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return Bad(where + " is no count");
  }
  return value.get<int64_t>();
}

// Bytes of a tensor; nullopt where they do not fit into 63 bits.
std::optional<int64_t> BytesOf(DType dtype, const std::vector<int64_t>& shape) {
  int64_t bytes = SizeOf(dtype);
  for (const int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  }
  return bytes;
}

struct Entry {
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;
  int64_t begin = 0;
  int64_t end = 0;
};

absl::StatusOr<Entry> ParseEntry(const std::string& name, const Json& json, int64_t data_bytes) {
  const std::string where = "tensor \"" + name + "\"";
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    return Bad(where + ": expected dtype, shape and data_offsets");
  }
  Entry entry;
  const Json& dtype = json["dtype"];
  const auto known = dtype.is_string() ? DTypeByName(dtype.get<std::string>()) : std::nullopt;
  if (!known.has_value()) return Bad(where + ": dtype is not F32, BF16 or I64");
  entry.dtype = *known;
  const Json& shape = json["shape"];
  if (!shape.is_array() || shape.size() > kMaxRank) return Bad(where + ": shape is no short array");
  for (const Json& extent : shape) {
    ASSIGN_OR_RETURN(const int64_t value, NonNegative(extent, where + ": an extent of its shape"));
    entry.shape.push_back(value);
  }
  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2) {
    return Bad(where + ": data_offsets are not two numbers");
  }
  ASSIGN_OR_RETURN(entry.begin, NonNegative(offsets[0], where + ": its first offset"));
  ASSIGN_OR_RETURN(entry.end, NonNegative(offsets[1], where + ": its last offset"));
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return Bad(absl::StrCat(where, ": offsets ", entry.begin, "-", entry.end, " are outside the ",
                            data_bytes, " bytes of data"));
  }
  const auto bytes = BytesOf(entry.dtype, entry.shape);
  if (!bytes.has_value() || *bytes != entry.end - entry.begin) {
    return Bad(where + ": shape and dtype do not make the size that the offsets have");
  }
  return entry;
}

absl::Status CheckContiguous(const std::map<std::string, Entry>& entries, int64_t data_bytes) {
  std::vector<std::pair<std::pair<int64_t, int64_t>, const std::string*>> ranges;
  ranges.reserve(entries.size());
  for (const auto& [name, entry] : entries) ranges.push_back({{entry.begin, entry.end}, &name});
  std::sort(ranges.begin(), ranges.end());
  int64_t at = 0;
  for (const auto& [range, name] : ranges) {
    if (range.first != at) {
      return Bad(absl::StrCat("tensor \"", *name, "\" starts at ", range.first,
                              ", the one before it ends at ", at));
    }
    at = range.second;
  }
  if (at != data_bytes) {
    return Bad(absl::StrCat("the tensors end at ", at, ", the data has ", data_bytes, " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 4;
    case DType::kBF16:
      return 2;
    case DType::kI64:
      return 8;
  }
  return 0;
}

std::string SafetensorsHeader(absl::Span<const NamedTensorView> tensors,
                              const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
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
  if (bytes.size() < 8) return Bad("shorter than its header's size field");
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) {
    header_bytes = header_bytes << 8 | static_cast<unsigned char>(bytes[static_cast<size_t>(i)]);
  }
  if (header_bytes > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return Bad(absl::StrCat("a header of ", header_bytes, " bytes is too large"));
  }
  if (header_bytes > bytes.size() - 8) return Bad("the file ends within its header");
  ASSIGN_OR_RETURN(const Json header, ParseHeader(bytes.substr(8, header_bytes)));
  const absl::string_view data = bytes.substr(8 + header_bytes);
  SafetensorsFile file;
  std::map<std::string, Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) {
      if (!json.is_object()) return Bad("__metadata__ is no object");
      for (const auto& [key, value] : json.items()) {
        if (!value.is_string()) return Bad("__metadata__ has a value that is no string");
        file.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    ASSIGN_OR_RETURN(Entry entry, ParseEntry(name, json, static_cast<int64_t>(data.size())));
    entries.emplace(name, std::move(entry));
  }
  RETURN_IF_ERROR(CheckContiguous(entries, static_cast<int64_t>(data.size())));
  for (auto& [name, entry] : entries) {
    file.tensors[name] = {entry.dtype, std::move(entry.shape),
                          data.substr(static_cast<size_t>(entry.begin),
                                      static_cast<size_t>(entry.end - entry.begin))};
  }
  return file;
}

absl::StatusOr<std::vector<float>> FloatsOf(const SafetensorsFile& file, const std::string& name,
                                            int64_t expected) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) {
    return absl::NotFoundError("safetensors: no tensor \"" + name + "\"");
  }
  const TensorView& tensor = found->second;
  if (tensor.dtype != DType::kF32 || static_cast<int64_t>(tensor.data.size()) != expected * 4) {
    return Bad(absl::StrCat("tensor \"", name, "\" is not ", expected, " float32 values"));
  }
  std::vector<float> values(static_cast<size_t>(expected));
  if (expected > 0) std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

}  // namespace traind
