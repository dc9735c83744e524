#include "common/base/utf8.h"

#include <absl/strings/str_format.h>

#include <cstdint>
#include <cstring>

namespace traind {
namespace {

// Returns the length of the well-formed sequence at p (Unicode 3.9, table 3-7); 0 if there is none.
size_t SequenceLength(const unsigned char* p, size_t left) {
  const unsigned char first = p[0];
  if (first < 0x80) return 1;
  size_t length = 0;
  unsigned char low = 0x80, high = 0xbf;  // range of the second byte
  if (first >= 0xc2 && first <= 0xdf) {
    length = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    length = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    length = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  }
  if (length == 0 || left < length || p[1] < low || p[1] > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((p[i] & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

size_t FirstNotUtf8(absl::string_view bytes) {
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t at = 0;
  while (at < bytes.size()) {
    // ASCII is checked eight bytes at a time.
    uint64_t word;
    while (at + sizeof word <= bytes.size()) {
      std::memcpy(&word, data + at, sizeof word);
      constexpr uint64_t kOnes = 0x0101010101010101, kHighBits = 0x8080808080808080;
      const bool zero_byte = ((word - kOnes) & ~word & kHighBits) != 0;
      if ((word & kHighBits) != 0 || zero_byte) break;
      at += sizeof word;
    }
    if (at == bytes.size()) break;
    const size_t length = data[at] == 0 ? 0 : SequenceLength(data + at, bytes.size() - at);
    if (length == 0) return at;
    at += length;
  }
  return absl::string_view::npos;
}

size_t Utf8Length(absl::string_view bytes) {
  if (bytes.empty()) return 0;
  return SequenceLength(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

std::string NotUtf8Text(unsigned char byte) {
  return byte == 0 ? "a zero byte: this is not text (or it is UTF-16; save it as UTF-8)"
                   : absl::StrFormat("byte 0x%02x is not UTF-8; save the file as UTF-8", byte);
}

}  // namespace traind
