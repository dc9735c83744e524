#include "common/data/table/text_encoding.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>

#include "common/base/utf8.h"

namespace traind {
namespace {

constexpr absl::string_view kUtf16Little = "\xff\xfe", kUtf16Big = "\xfe\xff";
constexpr absl::string_view kUtf8Mark = "\xef\xbb\xbf";
constexpr uint32_t kReplacement = 0xfffd;

// The characters of the bytes 0x80 to 0x9f; 0: there is none. The other bytes are those of Latin-1.
constexpr uint16_t kWindows1252[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178};

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// 0: there is no such character.
uint32_t OfWindows1252(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 && byte < 0xa0 ? kWindows1252[byte - 0x80] : byte;
}

void AppendUtf8(uint32_t character, std::string& out) {
  const auto tail = [&](int shift) {
    return static_cast<char>(0x80 | (character >> shift & 0x3f));
  };
  if (character < 0x80) {
    out.push_back(static_cast<char>(character));
  } else if (character < 0x800) {
    out.push_back(static_cast<char>(0xc0 | character >> 6));
    out.push_back(tail(0));
  } else if (character < 0x10000) {
    out.push_back(static_cast<char>(0xe0 | character >> 12));
    out.push_back(tail(6));
    out.push_back(tail(0));
  } else {
    out.push_back(static_cast<char>(0xf0 | character >> 18));
    out.push_back(tail(12));
    out.push_back(tail(6));
    out.push_back(tail(0));
  }
}

size_t SkipAscii(absl::string_view bytes, size_t at) {
  uint64_t word;
  for (; at + sizeof word <= bytes.size(); at += sizeof word) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
    if ((word & 0x8080808080808080) != 0) break;
  }
  while (at < bytes.size() && IsAscii(bytes[at])) ++at;
  return at;
}

size_t DecodeUtf16(absl::string_view bytes, bool big, bool last, std::string& out) {
  const auto unit = [&](size_t i) {
    const auto a = static_cast<unsigned char>(bytes[i]);
    const auto b = static_cast<unsigned char>(bytes[i + 1]);
    return static_cast<uint32_t>(big ? a << 8 | b : b << 8 | a);
  };
  size_t at = 0;
  while (at + 2 <= bytes.size()) {
    uint32_t character = unit(at);
    size_t taken = 2;
    if (character >= 0xd800 && character < 0xdc00) {
      if (at + 4 > bytes.size() && !last) return at;
      const uint32_t low = at + 4 <= bytes.size() ? unit(at + 2) : 0;
      const bool pair = low >= 0xdc00 && low < 0xe000;
      character = pair ? 0x10000 + ((character - 0xd800) << 10) + (low - 0xdc00) : kReplacement;
      taken = pair ? 4 : 2;
    } else if (character >= 0xdc00 && character < 0xe000) {
      character = kReplacement;
    }
    AppendUtf8(character, out);
    at += taken;
  }
  if (!last || at == bytes.size()) return at;
  AppendUtf8(kReplacement, out);
  return bytes.size();
}

size_t DecodeBytes(absl::string_view bytes, bool damaged, bool last, std::string& out) {
  if (damaged && !last) bytes = WithoutCutCharacter(bytes);
  for (size_t at = 0; at < bytes.size();) {
    const size_t odd = SkipAscii(bytes, at);
    out.append(bytes.data() + at, odd - at);
    if (odd == bytes.size()) break;
    const size_t length = damaged ? Utf8Length(bytes.substr(odd)) : 0;
    if (length > 0) {
      out.append(bytes.data() + odd, length);
    } else {
      const uint32_t character = OfWindows1252(bytes[odd]);
      AppendUtf8(character == 0 ? kReplacement : character, out);
    }
    at = odd + std::max<size_t>(length, 1);
  }
  return bytes.size();
}

}  // namespace

FoundEncoding FindEncoding(absl::string_view bytes) {
  FoundEncoding found;
  if (absl::StartsWith(bytes, kUtf16Little)) {
    found.encoding = TextEncoding::kUtf16LittleEndian;
    found.mark = kUtf16Little.size();
    return found;
  }
  if (absl::StartsWith(bytes, kUtf16Big)) {
    found.encoding = TextEncoding::kUtf16BigEndian;
    found.mark = kUtf16Big.size();
    return found;
  }
  const size_t first = FirstNotUtf8(bytes);
  if (first == bytes.npos) return found;
  found.first = first;
  int64_t whole = 0;  // characters of UTF-8 beyond ASCII
  bool unused = std::memchr(bytes.data(), '\0', bytes.size()) != nullptr;
  for (size_t at = SkipAscii(bytes, 0); at < bytes.size() && !unused; at = SkipAscii(bytes, at)) {
    if (const size_t length = Utf8Length(bytes.substr(at)); length > 0) {
      ++whole;
      at += length;
    } else {
      ++found.count;
      unused = OfWindows1252(bytes[at++]) == 0;
    }
  }
  const bool damaged = absl::StartsWith(bytes, kUtf8Mark) || whole > found.count;
  found.encoding = unused    ? TextEncoding::kUnknown
                   : damaged ? TextEncoding::kDamagedUtf8
                             : TextEncoding::kWindows1252;
  return found;
}

size_t DecodeText(absl::string_view bytes, TextEncoding encoding, bool last, std::string& out) {
  switch (encoding) {
    case TextEncoding::kUtf16LittleEndian:
    case TextEncoding::kUtf16BigEndian:
      return DecodeUtf16(bytes, encoding == TextEncoding::kUtf16BigEndian, last, out);
    case TextEncoding::kDamagedUtf8:
    case TextEncoding::kWindows1252:
      return DecodeBytes(bytes, encoding == TextEncoding::kDamagedUtf8, last, out);
    case TextEncoding::kUtf8:
    case TextEncoding::kUnknown:
      break;
  }
  out.append(bytes.data(), bytes.size());
  return bytes.size();
}

absl::string_view WithoutCutCharacter(absl::string_view bytes) {
  constexpr size_t kLongest = 4;
  for (size_t cut = 1; cut < kLongest && cut <= bytes.size(); ++cut) {
    const auto byte = static_cast<unsigned char>(bytes[bytes.size() - cut]);
    if ((byte & 0xc0) == 0x80) continue;  // inside a character
    const size_t length = byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : kLongest;
    if (length > cut) bytes.remove_suffix(cut);
    break;
  }
  return bytes;
}

std::string EncodingWarning(absl::string_view bytes, const FoundEncoding& found) {
  if (found.encoding == TextEncoding::kUtf16LittleEndian ||
      found.encoding == TextEncoding::kUtf16BigEndian) {
    return "the file is read as UTF-16";
  }
  constexpr size_t kMostAround = 20;  // bytes on each side
  constexpr absl::string_view kEnds = ",;|\t\r\n\"";
  size_t begin = found.first, end = found.first;
  while (begin > 0 && found.first - begin < kMostAround &&
         !absl::StrContains(kEnds, bytes[begin - 1])) {
    --begin;
  }
  while (end < bytes.size() && end - found.first < kMostAround &&
         !absl::StrContains(kEnds, bytes[end])) {
    ++end;
  }
  // Characters are not cut.
  while (found.encoding == TextEncoding::kDamagedUtf8 && begin < found.first &&
         (static_cast<unsigned char>(bytes[begin]) & 0xc0) == 0x80) {
    ++begin;
  }
  std::string example;
  DecodeText(bytes.substr(begin, end - begin), found.encoding, /*last=*/false, example);
  const auto line =
      1 + std::count(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(end), '\n');
  const std::string what =
      found.encoding == TextEncoding::kWindows1252
          ? "the file is not UTF-8; it is read as Windows-1252"
          : absl::StrCat(found.count, found.count == 1 ? " byte is" : " bytes are",
                         " not UTF-8 and read as Windows-1252");
  return absl::StrCat(what, ", such as '", example, "' (line ", line, ")");
}

}  // namespace traind
