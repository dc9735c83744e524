// Encodes image files.
#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <string>

namespace traind {

// Returns a grey PNG of 8 bits. pixels: [height, width]. ResourceExhausted: libpng has no memory.
// Threads: any.
absl::StatusOr<std::string> EncodePng(absl::Span<const uint8_t> pixels, int64_t height,
                                      int64_t width);

}  // namespace traind
