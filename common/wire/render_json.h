// Messages as JSON, for scripts.
#pragma once

#include <absl/strings/string_view.h>
#include <google/protobuf/message.h>

#include <string>

#include "common/base/json_text.h"

namespace traind {

// Writes every field with snake_case keys in the order of the fields. Unset messages, unset
// optional fields and UNSPECIFIED enum values are null; enum values are their names ("SUCCEEDED");
// Timestamps are RFC 3339 with milliseconds, in UTC; Durations are seconds ("1.500s"); 64-bit
// integers are numbers; numbers that are not finite are "NaN", "Infinity" and "-Infinity". Strings
// are escaped so that no control character reaches a terminal. Indented by two; no newline at the
// end.
std::string ToJson(const google::protobuf::Message& message);

// Writes the same in one line.
std::string ToJsonLine(const google::protobuf::Message& message);

// Writes a repeated message field of `message` as an array.
std::string ToJsonArray(const google::protobuf::Message& message, absl::string_view field);

}  // namespace traind
