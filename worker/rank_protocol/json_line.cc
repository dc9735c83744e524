#include "worker/rank_protocol/json_line.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace traind::rank_protocol {
namespace {

using Json = nlohmann::json;

// ---- to JSON ----------------------------------------------------------------

Json ToJson(const std::vector<Field>& fields);

Json ToJson(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

Json ToJson(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(ToJson(value));
  return list;
}

Json ValueToJson(const FieldValue& value) {
  return std::visit(
      [](const auto& v) -> Json {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, EnumField>) {
          return v.name();
        } else if constexpr (std::is_same_v<V, std::vector<Field>>) {
          return ToJson(v);
        } else if constexpr (std::is_same_v<V, double*> ||
                             std::is_same_v<V, std::vector<double>*>) {
          return ToJson(*v);
        } else {
          return *v;
        }
      },
      value);
}

Json ToJson(const std::vector<Field>& fields) {
  Json object = Json::object();
  for (const Field& field : fields) object[field.name] = ValueToJson(field.value);
  return object;
}

// ---- from JSON --------------------------------------------------------------

absl::Status WrongType(const std::string& key, const char* expected, const Json& value) {
  return absl::InvalidArgumentError(
      absl::StrCat("key ", key, ": expected ", expected, ", got ", value.type_name()));
}

absl::Status FieldsFromJson(const Json& object, const std::string& prefix,
                            const std::vector<Field>& fields);

absl::Status FromJson(const Json& json, const std::string& key, bool& value) {
  if (!json.is_boolean()) return WrongType(key, "true or false", json);
  value = json.get<bool>();
  return absl::OkStatus();
}

template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
absl::Status FromJson(const Json& json, const std::string& key, T& value) {
  if (!json.is_number_integer()) return WrongType(key, "an integer", json);
  if (json.is_number_unsigned()) {
    const uint64_t wide = json.get<uint64_t>();
    if (wide > static_cast<uint64_t>(std::numeric_limits<T>::max())) {
      return absl::InvalidArgumentError(absl::StrCat("key ", key, ": ", wide, " is too big"));
    }
    value = static_cast<T>(wide);
    return absl::OkStatus();
  }
  const int64_t wide = json.get<int64_t>();
  if (wide < static_cast<int64_t>(std::numeric_limits<T>::min())) {
    return absl::InvalidArgumentError(absl::StrCat("key ", key, ": ", wide, " is too small"));
  }
  value = static_cast<T>(wide);
  return absl::OkStatus();
}

absl::Status FromJson(const Json& json, const std::string& key, double& value) {
  if (json.is_number()) {
    value = json.get<double>();
    return absl::OkStatus();
  }
  const std::string* text = json.get_ptr<const std::string*>();
  if (text != nullptr && *text == "NaN") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (text != nullptr && *text == "Infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (text != nullptr && *text == "-Infinity") {
    value = -std::numeric_limits<double>::infinity();
  } else {
    return WrongType(key, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"", json);
  }
  return absl::OkStatus();
}

absl::Status FromJson(const Json& json, const std::string& key, std::string& value) {
  if (!json.is_string()) return WrongType(key, "a string", json);
  value = json.get<std::string>();
  return absl::OkStatus();
}

template <class T>
absl::Status ListFromJson(const Json& json, const std::string& key, const char* expected,
                          std::vector<T>& value) {
  if (!json.is_array()) return WrongType(key, expected, json);
  value.clear();
  for (const Json& item : json) {
    absl::Status status = FromJson(item, key, value.emplace_back());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status FromJson(const Json& json, const std::string& key, std::vector<std::string>& value) {
  return ListFromJson(json, key, "a list of strings", value);
}

absl::Status FromJson(const Json& json, const std::string& key, std::vector<double>& value) {
  return ListFromJson(json, key, "a list of numbers", value);
}

absl::Status ValueFromJson(const Json& json, const std::string& key, const FieldValue& value) {
  return std::visit(
      [&](const auto& v) -> absl::Status {
        using V = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<V, EnumField>) {
          if (!json.is_string()) return WrongType(key, "a string", json);
          v.set_name(json.get_ref<const std::string&>());
          return absl::OkStatus();
        } else if constexpr (std::is_same_v<V, std::vector<Field>>) {
          if (!json.is_object()) return WrongType(key, "an object", json);
          return FieldsFromJson(json, key + ".", v);
        } else {
          return FromJson(json, key, *v);
        }
      },
      value);
}

absl::Status FieldsFromJson(const Json& object, const std::string& prefix,
                            const std::vector<Field>& fields) {
  for (const Field& field : fields) {
    const auto found = object.find(field.name);
    if (found == object.end()) continue;
    absl::Status status = ValueFromJson(*found, prefix + field.name, field.value);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

struct JsonLine::Object {
  Json json;
};

std::string ToJsonLine(const char* type, const std::vector<Field>& fields) {
  Json object = ToJson(fields);
  object["type"] = type;
  // Bytes that are not UTF-8 (of a file name, say) must not lose the message.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<JsonLine> JsonLine::Parse(absl::string_view line) {
  if (line.size() > kMaxLineBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a line of ", line.size(), " bytes; at most ", kMaxLineBytes, " are allowed"));
  }
  Json json = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("the line is not a JSON object");
  const auto type = json.find("type");
  if (type == json.end()) return absl::InvalidArgumentError("key type: missing");
  if (!type->is_string()) return WrongType("type", "a string", *type);
  JsonLine parsed;
  parsed.type_ = type->get<std::string>();
  parsed.object_ = std::make_shared<const Object>(Object{std::move(json)});
  return parsed;
}

absl::Status JsonLine::Read(const std::vector<Field>& fields) const {
  return FieldsFromJson(object_->json, "", fields);
}

}  // namespace traind::rank_protocol
