#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>

namespace traind {

// "512 bytes", "1.5 KiB", "3.0 GiB", for people.
std::string BytesText(int64_t bytes);

// Reads a size with its unit: "40GiB", "80 GB", "1.5TiB". Nothing: it is none, or not above 0.
std::optional<int64_t> ParseBytes(absl::string_view text);

}  // namespace traind
