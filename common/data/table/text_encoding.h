// Recognizes how a file of text is encoded, and makes UTF-8 of it.
//
// Threads: all functions are safe.
#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace traind {

enum class TextEncoding {
  kUtf8,
  kDamagedUtf8,  // some characters are UTF-8; the fewer other bytes are Windows-1252
  kWindows1252,  // contains Latin-1
  kUtf16LittleEndian,
  kUtf16BigEndian,
  kUnknown,  // there is a zero byte, or a byte that Windows-1252 does not use
};

struct FoundEncoding {
  TextEncoding encoding = TextEncoding::kUtf8;
  size_t mark = 0;    // bytes of a byte order mark that DecodeText does not want
  size_t first = 0;   // the first byte that is not UTF-8
  int64_t count = 0;  // of such bytes
};

// UTF-16 is recognized by its byte order mark alone.
FoundEncoding FindEncoding(absl::string_view bytes);

// Appends the text as UTF-8. Returns how many bytes were taken: a character that the end of `bytes`
// cuts is left, unless they are the `last` ones. What the encoding does not define becomes U+FFFD.
// REQUIRES: encoding is not kUnknown.
size_t DecodeText(absl::string_view bytes, TextEncoding encoding, bool last, std::string& out);

// Returns `bytes` without a character of UTF-8 that their end cuts.
absl::string_view WithoutCutCharacter(absl::string_view bytes);

// Returns what a warning says of a file whose encoding is neither kUtf8 nor kUnknown, with an
// example: "the file is not UTF-8; it is read as Windows-1252, such as 'Zürich' (line 3)".
std::string EncodingWarning(absl::string_view bytes, const FoundEncoding& found);

}  // namespace traind
