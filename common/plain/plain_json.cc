#include "common/plain/plain_json.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/time/time.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "common/base/field_path.h"
#include "common/base/status_macros.h"

namespace traind::plain {
namespace {

using Json = nlohmann::json;
using Strings = std::map<std::string, std::string>;
using Numbers = std::map<std::string, double>;

template <class T>
T& As(void* value) {
  return *static_cast<T*>(value);
}
template <class T>
const T& As(const void* value) {
  return *static_cast<const T*>(value);
}

absl::Status Expected(absl::string_view path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": expected ", what));
}

std::string Bound(double bound) { return absl::StrFormat("%.12g", bound); }

// ---- Reading ------------------------------------------------------------------

absl::Status CheckRange(const FieldInfo& field, double value, absl::string_view path) {
  if (value >= field.min && value <= field.max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", Bound(value), " is not in ",
                                                 Bound(field.min), "..", Bound(field.max)));
}

// Zero in a field that cannot tell it from unset, and does not become a default.
bool IsUnset(const FieldInfo& field) {
  return !field.optional && !field.list && (field.automatic || !field.has_default);
}

absl::Status ReadInteger(const Json& json, const FieldInfo& field, int64_t& value,
                         absl::string_view path) {
  int64_t number = 0;
  const bool fits = !json.is_number_unsigned() ||
                    json.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()};
  if (json.is_number_integer() && fits) {
    number = json.get<int64_t>();
  } else if (!json.is_string() || !absl::SimpleAtoi(json.get<std::string>(), &number)) {
    return Expected(path, "an integer");
  }
  if (number != 0 || !IsUnset(field)) {
    RETURN_IF_ERROR(CheckRange(field, static_cast<double>(number), path));
  }
  value = number;
  return absl::OkStatus();
}

absl::Status ReadUnsigned(const Json& json, const FieldInfo& field, uint64_t& value,
                          absl::string_view path) {
  uint64_t number = 0;
  if (json.is_number_unsigned()) {
    number = json.get<uint64_t>();
  } else if (!json.is_string() || !absl::SimpleAtoi(json.get<std::string>(), &number)) {
    return Expected(path, "an integer from 0 on");
  }
  if (number != 0 || !IsUnset(field)) {
    RETURN_IF_ERROR(CheckRange(field, static_cast<double>(number), path));
  }
  value = number;
  return absl::OkStatus();
}

// "NaN", "Infinity" and "-Infinity", as Protobuf writes them.
bool ReadNotFinite(const Json& json, double& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json == "NaN") return value = std::nan(""), true;
  if (json == "Infinity") return value = kInfinity, true;
  if (json == "-Infinity") return value = -kInfinity, true;
  return false;
}

absl::Status ReadReal(const Json& json, const FieldInfo& field, double& value,
                      absl::string_view path) {
  double number = 0;
  if (json.is_number()) {
    number = json.get<double>();
  } else if (!ReadNotFinite(json, number)) {
    return Expected(path, "a number");
  }
  const bool any = std::isinf(field.min) && std::isinf(field.max);
  if (!any && (number != 0 || !IsUnset(field))) RETURN_IF_ERROR(CheckRange(field, number, path));
  value = number;
  return absl::OkStatus();
}

absl::Status CheckWord(const FieldInfo& field, const std::string& word, absl::string_view path) {
  if (field.words == nullptr) return absl::OkStatus();
  std::string words;
  for (const char* const* known = field.words; *known != nullptr; ++known) {
    if (word == *known) return absl::OkStatus();
    absl::StrAppend(&words, words.empty() ? "" : ", ", *known);
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": '", word, "' must be one of: ", words,
                                                 field.automatic ? ", auto" : ""));
}

absl::Status ReadText(const Json& json, const FieldInfo& field, std::string& value,
                      absl::string_view path) {
  if (!json.is_string()) return Expected(path, "a text");
  const auto& text = json.get_ref<const std::string&>();
  if (!text.empty()) RETURN_IF_ERROR(CheckWord(field, text, path));
  value = text;
  return absl::OkStatus();
}

absl::Status ReadDuration(const Json& json, const FieldInfo& field, absl::Duration& value,
                          absl::string_view path) {
  absl::Duration duration;
  if (!json.is_string() || !absl::ParseDuration(json.get<std::string>(), &duration)) {
    return Expected(path, "a duration such as 30s");
  }
  RETURN_IF_ERROR(CheckRange(field, absl::ToDoubleSeconds(duration), path));
  value = duration;
  return absl::OkStatus();
}

absl::Status ReadTime(const Json& json, absl::Time& value, absl::string_view path) {
  std::string error;
  if (!json.is_string() ||
      !absl::ParseTime(absl::RFC3339_full, json.get<std::string>(), &value, &error)) {
    return Expected(path, "a time in the format of RFC 3339");
  }
  return absl::OkStatus();
}

absl::Status ReadEnum(const Json& json, const FieldInfo& field, void* value,
                      absl::string_view path) {
  for (const EnumValue* known = field.values; known->name != nullptr; ++known) {
    if (json != known->name) continue;
    std::memcpy(value, &known->number, sizeof known->number);
    return absl::OkStatus();
  }
  return Expected(path, absl::StrCat("a word such as ", field.values->name));
}

template <class Map>
absl::Status ReadMap(const Json& json, Map& map, absl::string_view path) {
  constexpr bool kTexts = std::is_same_v<Map, Strings>;
  if (!json.is_object()) return Expected(path, "a JSON object");
  map.clear();
  for (const auto& [key, item] : json.items()) {
    if (kTexts ? !item.is_string() : !item.is_number()) {
      return Expected(FieldPath(path, key), kTexts ? "a text" : "a number");
    }
    item.get_to(map[key]);
  }
  return absl::OkStatus();
}

class Reader {
 public:
  explicit Reader(std::vector<std::string>* unknown) : unknown_(unknown) {}

  absl::Status ReadMessage(const Json& json, const MessageInfo& info, void* message,
                           const std::string& path) {
    if (!json.is_object()) return Expected(path.empty() ? info.name : path, "a JSON object");
    for (const auto& [key, item] : json.items()) {
      const FieldInfo* const field = info.Find(key);
      const std::string field_path = FieldPath(path, key);
      if (field == nullptr) {
        if (unknown_ != nullptr) unknown_->push_back(field_path);
      } else if (!item.is_null()) {
        RETURN_IF_ERROR(CheckOneof(info, *field, message, field_path));
        RETURN_IF_ERROR(ReadField(item, *field, message, field_path));
      }
    }
    return CheckMultiples(info, message, path);
  }

 private:
  static absl::Status CheckOneof(const MessageInfo& info, const FieldInfo& field,
                                 const void* message, const std::string& path) {
    if (field.oneof == nullptr) return absl::OkStatus();
    const FieldInfo* const other = ChosenField(info, message, field.oneof);
    if (other == nullptr || other == &field) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": excludes ", other->name, ", which is set, too"));
  }

  static absl::Status CheckMultiples(const MessageInfo& info, const void* message,
                                     const std::string& path) {
    for (const FieldInfo& field : info) {
      if (field.multiple_of == nullptr) continue;
      const int64_t value = As<int64_t>(ItemOf(field, message));
      const int64_t divisor = As<int64_t>(ItemOf(*info.Find(field.multiple_of), message));
      if (value % divisor == 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(FieldPath(path, field.name), ": ", value,
                                                     " is no multiple of ", divisor, ", the ",
                                                     field.multiple_of));
    }
    return absl::OkStatus();
  }

  absl::Status ReadField(const Json& json, const FieldInfo& field, void* message,
                         const std::string& path) {
    if (field.list) return ReadList(json, field, message, path);
    const bool automatic = field.automatic && json == "auto";
    const bool empty = json.is_string() && json.get_ref<const std::string&>().empty();
    if (automatic || (empty && !field.optional)) return absl::OkStatus();
    return ReadValue(json, field, field.reach(message, Reach::kAdd, 0), path);
  }

  absl::Status ReadList(const Json& json, const FieldInfo& field, void* message,
                        const std::string& path) {
    if (!json.is_array()) return Expected(path, "a list");
    if (json.empty()) return absl::OkStatus();
    field.reach(message, Reach::kClear, 0);
    for (size_t i = 0; i < json.size(); ++i) {
      RETURN_IF_ERROR(ReadValue(json[i], field, field.reach(message, Reach::kAdd, 0),
                                absl::StrCat(path, "[", i, "]")));
    }
    return absl::OkStatus();
  }

  absl::Status ReadValue(const Json& json, const FieldInfo& field, void* value,
                         const std::string& path) {
    switch (field.kind) {
      case Kind::kBool:
        if (!json.is_boolean()) return Expected(path, "true or false");
        As<bool>(value) = json.get<bool>();
        return absl::OkStatus();
      case Kind::kInteger:
        return ReadInteger(json, field, As<int64_t>(value), path);
      case Kind::kUnsigned:
        return ReadUnsigned(json, field, As<uint64_t>(value), path);
      case Kind::kReal:
        return ReadReal(json, field, As<double>(value), path);
      case Kind::kText:
        return ReadText(json, field, As<std::string>(value), path);
      case Kind::kDuration:
        return ReadDuration(json, field, As<absl::Duration>(value), path);
      case Kind::kTime:
        return ReadTime(json, As<absl::Time>(value), path);
      case Kind::kEnum:
        return ReadEnum(json, field, value, path);
      case Kind::kMessage:
        return ReadMessage(json, *field.message, value, path);
      case Kind::kTextMap:
        return ReadMap(json, As<Strings>(value), path);
      case Kind::kNumberMap:
        return ReadMap(json, As<Numbers>(value), path);
    }
    return absl::InternalError(absl::StrCat(path, ": a field of an unknown kind"));
  }

  std::vector<std::string>* const unknown_;
};

// ---- Writing ------------------------------------------------------------------

void AppendText(absl::string_view text, std::string& out) {
  out += Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

void AppendReal(double value, std::string& out) {
  if (!std::isfinite(value)) {
    return AppendText(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity", out);
  }
  // 1, not 1.0, where an integer says it all.
  if (value == std::trunc(value) && std::abs(value) < 1e15) {
    absl::StrAppend(&out, static_cast<int64_t>(value));
  } else {
    out += Json(value).dump();
  }
}

void AppendEnum(const FieldInfo& field, const void* value, std::string& out) {
  int number = 0;
  std::memcpy(&number, value, sizeof number);
  const EnumValue* known = field.values;
  while (known->name != nullptr && known->number != number) ++known;
  AppendText(known->name == nullptr ? "" : known->name, out);
}

template <class Map, class Append>
void AppendMap(const Map& map, Append&& append, std::string& out) {
  out += '{';
  for (const auto& [key, item] : map) {
    if (out.back() != '{') out += ',';
    AppendText(key, out);
    out += ':';
    append(item, out);
  }
  out += '}';
}

void AppendMessage(const MessageInfo& info, const void* message, std::string& out);

void AppendValue(const FieldInfo& field, const void* value, std::string& out) {
  switch (field.kind) {
    case Kind::kBool:
      out += As<bool>(value) ? "true" : "false";
      return;
    case Kind::kInteger:
      return absl::StrAppend(&out, As<int64_t>(value));
    case Kind::kUnsigned:
      return absl::StrAppend(&out, As<uint64_t>(value));
    case Kind::kReal:
      return AppendReal(As<double>(value), out);
    case Kind::kText:
      return AppendText(As<std::string>(value), out);
    case Kind::kDuration:
      return absl::StrAppend(
          &out, "\"", absl::StrFormat("%.12g", absl::ToDoubleSeconds(As<absl::Duration>(value))),
          "s\"");
    case Kind::kTime:
      return AppendText(
          absl::FormatTime(absl::RFC3339_full, As<absl::Time>(value), absl::UTCTimeZone()), out);
    case Kind::kEnum:
      return AppendEnum(field, value, out);
    case Kind::kMessage:
      return AppendMessage(*field.message, value, out);
    case Kind::kTextMap:
      return AppendMap(As<Strings>(value), AppendText, out);
    case Kind::kNumberMap:
      return AppendMap(As<Numbers>(value), AppendReal, out);
  }
}

void AppendField(const FieldInfo& field, const void* message, std::string& out) {
  if (!field.list) return AppendValue(field, ItemOf(field, message), out);
  out += '[';
  for (size_t i = 0; const void* item = ItemOf(field, message, i); ++i) {
    if (i > 0) out += ',';
    AppendValue(field, item, out);
  }
  out += ']';
}

void AppendMessage(const MessageInfo& info, const void* message, std::string& out) {
  out += '{';
  for (const FieldInfo& field : info) {
    if (!field.list && ItemOf(field, message) == nullptr) continue;
    if (out.back() != '{') out += ',';
    absl::StrAppend(&out, "\"", field.name, "\":");
    AppendField(field, message, out);
  }
  out += '}';
}

// ---- What must be there ---------------------------------------------------------

bool IsEmpty(const FieldInfo& field, const void* message) {
  const void* const value = ItemOf(field, message);
  return value == nullptr || (field.kind == Kind::kText && As<std::string>(value).empty());
}

bool IsExcused(const MessageInfo& info, const FieldInfo& field, const void* message) {
  for (const char* const* other = field.unless; other != nullptr && *other != nullptr; ++other) {
    if (!IsEmpty(*info.Find(*other), message)) return true;
  }
  return false;
}

}  // namespace

absl::Status ReadJson(absl::string_view json, const MessageInfo& info, void* message,
                      std::vector<std::string>* unknown) {
  const Json read = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  return Reader(unknown).ReadMessage(read, info, message, "");
}

std::string WriteJson(const MessageInfo& info, const void* message) {
  std::string json;
  AppendMessage(info, message, json);
  return json;
}

absl::Status CheckRequired(const MessageInfo& info, const void* message, absl::string_view path) {
  for (const FieldInfo& field : info) {
    if (IsExcused(info, field, message)) continue;
    const std::string field_path = FieldPath(path, field.name);
    if (field.required && IsEmpty(field, message)) {
      return absl::InvalidArgumentError(absl::StrCat(field_path, ": is missing"));
    }
    if (field.kind != Kind::kMessage) continue;
    for (size_t i = 0; const void* item = ItemOf(field, message, i); ++i) {
      RETURN_IF_ERROR(CheckRequired(*field.message, item, field_path));
    }
  }
  return absl::OkStatus();
}

}  // namespace traind::plain
