// Plain structs (message_info.h) from JSON and to JSON, as Protobuf maps messages to it, with keys
// in snake_case.
//
// Threads: all functions are safe.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "common/plain/message_info.h"

namespace traind::plain {

// Sets the fields that the text has; the others keep their values. Null, the empty text and the
// empty list leave a field as it is, except that an optional text may be empty. 64-bit numbers may
// be texts; Durations are texts such as "60s", times are in the format of RFC 3339, enums are their
// names. unknown: where not null, the paths of keys that no field has are added; they are ignored.
// Errors: InvalidArgument names the path of the first field with a wrong type, a value out of its
// range, a word that may not stand there, or a second member of a oneof.
absl::Status ReadJson(absl::string_view json, const MessageInfo& info, void* message,
                      std::vector<std::string>* unknown = nullptr);

// Every field but empty optionals, in the order of the .proto file; all integers are numbers.
std::string WriteJson(const MessageInfo& info, const void* message);

// InvalidArgument names the first required field that is empty. path: of the message in the error.
absl::Status CheckRequired(const MessageInfo& info, const void* message, absl::string_view path);

template <class T>
absl::StatusOr<T> FromJson(absl::string_view json, std::vector<std::string>* unknown = nullptr) {
  T message;
  const absl::Status status = ReadJson(json, T::Info(), &message, unknown);
  if (!status.ok()) return status;
  return message;
}
template <class T>
std::string ToJson(const T& message) {
  return WriteJson(T::Info(), &message);
}
template <class T>
absl::Status CheckRequired(const T& message, absl::string_view path) {
  return CheckRequired(T::Info(), &message, path);
}

}  // namespace traind::plain
