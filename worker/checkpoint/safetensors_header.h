// A parser for the JSON header of a safetensors file that is not trusted.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace traind {

// A tensor as the header describes it, not checked against the data and the other tensors.
struct HeaderEntry {
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  // byte range of the data
};

struct SafetensorsEntries {
  std::map<std::string, HeaderEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Parses event by event: memory grows with the entries only, and nesting is not followed.
// Errors: DataLoss says what is wrong and with which tensor: the text is not a JSON object, a
// name or key is duplicate or unknown, values are nested, a number is negative, broken or
// beyond 63 bits, or there are more than 64 extents.
absl::StatusOr<SafetensorsEntries> ParseSafetensorsHeader(absl::string_view text);

// The text in quotes, printable and shortened if it is long.
std::string Quoted(absl::string_view text);
// The word "tensor" and the quoted name.
std::string TensorNamed(absl::string_view name);

}  // namespace traind
