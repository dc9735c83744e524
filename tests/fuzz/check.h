// What fuzz targets share.
#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace traind {

inline absl::string_view Bytes(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Ends the process if a promise about a parser's result does not hold.
inline void Check(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", promise);
  std::abort();
}

}  // namespace traind
