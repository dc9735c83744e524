// The JSON header of a safetensors file, read without trust.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace traind {

// A tensor as the header tells it: unchecked against the data and the other tensors.
struct HeaderEntry {
  std::string dtype;
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  // bytes of the data
};

struct SafetensorsEntries {
  std::map<std::string, HeaderEntry> tensors;
  std::map<std::string, std::string> metadata;
};

// Reads event by event: memory grows with the entries and not with what the text could
// mean, and no depth is followed. DataLoss says what is wrong, and of which tensor: no JSON
// object, a name or a key that is there twice or is none of the format's, nesting, a count
// that is none or does not fit into 63 bits, more than 64 extents.
absl::StatusOr<SafetensorsEntries> ParseSafetensorsHeader(absl::string_view text);

// In quotes, printable and not too long.
std::string Quoted(absl::string_view text);
// The word "tensor" and its name.
std::string TensorNamed(absl::string_view name);

}  // namespace traind
