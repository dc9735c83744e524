// Structs that list their fields (common/facts/field.h) as lines of JSON: one object, its keys
// are the fields' names and "type". Non-finite numbers are the strings "NaN", "Infinity",
// "-Infinity"; enums are their names.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <string>
#include <vector>

#include "common/facts/field.h"

namespace traind::rank_protocol {

// Longer lines are an error of the sender.
inline constexpr size_t kMaxLineBytes = 4 << 20;

// Without the newline. Bytes that are not UTF-8 are replaced.
std::string ToJsonLine(const char* type, const std::vector<Field>& fields);

// A line that was parsed. Threads: immutable.
class JsonLine {
 public:
  // InvalidArgument says why the line is no message.
  static absl::StatusOr<JsonLine> Parse(absl::string_view line);

  const std::string& type() const { return type_; }
  // Fields whose keys the line lacks keep their values. InvalidArgument names the key.
  absl::Status Read(const std::vector<Field>& fields) const;

 private:
  struct Object;
  std::string type_;
  std::shared_ptr<const Object> object_;
};

}  // namespace traind::rank_protocol
