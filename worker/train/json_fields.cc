#include "worker/train/json_fields.h"

namespace traind {
namespace {

template <class Number>
absl::Status Outside(const std::string& path, Number number, Number least, Number most) {
  return absl::InvalidArgumentError(
      absl::StrCat("spec field ", path, ": ", number, " is not in ", least, "..", most));
}

absl::Status Integer(const Json& json, const std::string& path, int64_t least, int64_t most,
                     int64_t& value) {
  int64_t number = 0;
  if (json.is_number_integer()) {
    number = json.get<int64_t>();
  } else if (!json.is_string() || !absl::SimpleAtoi(json.get<std::string>(), &number)) {
    return WrongField(path, "an integer");
  }
  if (number < least || number > most) return Outside(path, number, least, most);
  value = number;
  return absl::OkStatus();
}

absl::Status Real(const Json& json, const std::string& path, double least, double most,
                  double& value) {
  if (!json.is_number()) return WrongField(path, "a number");
  const double number = json.get<double>();
  if (!(number >= least && number <= most)) return Outside(path, number, least, most);
  value = number;
  return absl::OkStatus();
}

// Calls take(element, its path) for each of a list.
template <class Take>
absl::Status ForEach(const Json& json, const std::string& path, Take&& take) {
  if (!json.is_array()) return WrongField(path, "a list");
  for (size_t i = 0; i < json.size(); ++i) {
    RETURN_IF_ERROR(take(json[i], absl::StrCat(path, "[", i, "]")));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status JsonObject::Take(const char* key, std::string& value) const {
  const Json& json = (*this)[key];
  if (json.is_null()) return absl::OkStatus();
  if (!json.is_string()) return WrongField(PathOf(key), "text");
  value = json.get<std::string>();
  return absl::OkStatus();
}

absl::Status JsonObject::Take(const char* key, bool& value) const {
  const Json& json = (*this)[key];
  if (json.is_null()) return absl::OkStatus();
  if (!json.is_boolean()) return WrongField(PathOf(key), "true or false");
  value = json.get<bool>();
  return absl::OkStatus();
}

absl::Status JsonObject::Take(const char* key, uint64_t& value) const {
  const Json& json = (*this)[key];
  if (json.is_null()) return absl::OkStatus();
  if (json.is_number_unsigned()) return value = json.get<uint64_t>(), absl::OkStatus();
  if (json.is_string() && absl::SimpleAtoi(json.get<std::string>(), &value)) {
    return absl::OkStatus();
  }
  return WrongField(PathOf(key), "a number from 0 on");
}

absl::Status JsonObject::Take(const char* key, double least, double most, double& value) const {
  const Json& json = (*this)[key];
  return json.is_null() ? absl::OkStatus() : Real(json, PathOf(key), least, most, value);
}

absl::Status JsonObject::Take(const char* key, double least, double most,
                              std::optional<double>& value) const {
  const Json& json = (*this)[key];
  if (json.is_null()) return absl::OkStatus();
  return Real(json, PathOf(key), least, most, value.emplace());
}

absl::Status JsonObject::TakeInteger(const char* key, int64_t least, int64_t most,
                                     int64_t& value) const {
  const Json& json = (*this)[key];
  return json.is_null() ? absl::OkStatus() : Integer(json, PathOf(key), least, most, value);
}

absl::Status JsonObject::TakeList(const char* key, int64_t least, int64_t most,
                                  std::vector<int64_t>& value) const {
  const Json& json = (*this)[key];
  if (json.is_null()) return absl::OkStatus();
  value.clear();
  return ForEach(json, PathOf(key), [&](const Json& item, const std::string& path) {
    return Integer(item, path, least, most, value.emplace_back());
  });
}

absl::Status JsonObject::TakeList(const char* key, double least, double most,
                                  std::vector<float>& value) const {
  const Json& json = (*this)[key];
  if (json.is_null()) return absl::OkStatus();
  value.clear();
  return ForEach(json, PathOf(key), [&](const Json& item, const std::string& path) {
    double number = 0;
    RETURN_IF_ERROR(Real(item, path, least, most, number));
    value.push_back(static_cast<float>(number));
    return absl::OkStatus();
  });
}

absl::Status JsonObject::TakeList(const char* key, std::vector<std::string>& value) const {
  const Json& json = (*this)[key];
  if (json.is_null()) return absl::OkStatus();
  value.clear();
  return ForEach(json, PathOf(key), [&](const Json& item, const std::string& path) {
    if (!item.is_string()) return WrongField(path, "text");
    value.push_back(item.get<std::string>());
    return absl::OkStatus();
  });
}

}  // namespace traind
