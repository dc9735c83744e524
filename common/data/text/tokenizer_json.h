// Reads members of the objects in a tokenizer.json.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>
#include <string>

namespace traind {

inline absl::Status UnsupportedPart(absl::string_view part, absl::string_view type) {
  return absl::InvalidArgumentError(
      absl::StrCat(part, " of type '", type,
                   "' is not supported; those of BERT and DistilBERT (WordPiece), of RoBERTa and "
                   "ModernBERT (byte-level BPE) and of DeBERTa v3 (Unigram) are"));
}

inline std::string TypeOfPart(const nlohmann::json& part) {
  if (!part.is_object()) return part.is_null() ? "" : "none";
  const auto type = part.find("type");
  return type != part.end() && type->is_string() ? type->get<std::string>() : "";
}

// Returns the member, or null if the object lacks it.
inline const nlohmann::json& MemberOf(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

inline bool FlagOf(const nlohmann::json& object, const char* key, bool missing) {
  const nlohmann::json& value = MemberOf(object, key);
  return value.is_boolean() ? value.get<bool>() : missing;
}

inline std::string TextOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = MemberOf(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace traind
