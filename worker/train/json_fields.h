// Reading fields of a resolved spec in JSON. Errors: InvalidArgument names the
// field's path.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status_macros.h"

namespace traind {

using Json = nlohmann::json;

inline absl::Status WrongField(const std::string& path, const std::string& expected) {
  return absl::InvalidArgumentError(absl::StrCat("spec field ", path, ": expected ", expected));
}

// An object and where it stands; absent ones are null, and their members too.
// Ownership: the document outlives it.
class JsonObject {
 public:
  JsonObject(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  const Json& json() const { return json_; }
  std::string PathOf(const char* key) const {
    return path_.empty() ? key : absl::StrCat(path_, ".", key);
  }
  const Json& operator[](const char* key) const {
    static const Json absent;
    if (!json_.is_object()) return absent;
    const auto found = json_.find(key);
    return found == json_.end() ? absent : *found;
  }
  JsonObject Child(const char* key) const { return JsonObject((*this)[key], PathOf(key)); }

  // Each leaves `value` as it is where the field is absent.
  absl::Status Take(const char* key, std::string& value) const;
  absl::Status Take(const char* key, bool& value) const;
  absl::Status Take(const char* key, uint64_t& value) const;  // protobuf writes them as strings
  absl::Status Take(const char* key, double least, double most, double& value) const;
  absl::Status Take(const char* key, double least, double most, std::optional<double>& value) const;
  absl::Status TakeInteger(const char* key, int64_t least, int64_t most, int64_t& value) const;
  template <class Integer>
  absl::Status TakeInteger(const char* key, int64_t least, int64_t most, Integer& value) const {
    int64_t wide = static_cast<int64_t>(value);
    RETURN_IF_ERROR(TakeInteger(key, least, most, wide));
    value = static_cast<Integer>(wide);
    return absl::OkStatus();
  }
  // A list of integers, or of numbers.
  absl::Status TakeList(const char* key, int64_t least, int64_t most,
                        std::vector<int64_t>& value) const;
  absl::Status TakeList(const char* key, double least, double most,
                        std::vector<float>& value) const;
  absl::Status TakeList(const char* key, std::vector<std::string>& value) const;

 private:
  const Json& json_;
  const std::string path_;
};

}  // namespace traind
