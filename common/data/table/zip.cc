#include "common/data/table/zip.h"

#include <absl/strings/str_cat.h>
#include <string.h>
#include <zlib.h>

#include <algorithm>
#include <optional>

#include "common/base/status_macros.h"

namespace traind {
namespace {

// Signatures and sizes are from PKWARE's APPNOTE 6.3.
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kDirectoryEnd = 0x06054b50;
constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kDirectoryEntryBytes = 46;
constexpr size_t kDirectoryEndBytes = 22;
constexpr size_t kLongestComment = 0xffff;
constexpr uint16_t kZip64Extra = 1;
constexpr uint32_t kInZip64 = 0xffffffff;
// Deflate compresses at most 1032 to 1.
constexpr uint64_t kMostExpansion = 1100;
constexpr size_t kMostMembers = 10'000;

template <typename T>
T Load(absl::string_view bytes, size_t at) {
  T value;
  memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

absl::Status Damaged(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, " is not a complete ZIP archive: ", what));
}

// Returns where the record that ends the directory begins.
std::optional<size_t> FindDirectoryEnd(absl::string_view bytes) {
  if (bytes.size() < kDirectoryEndBytes) return std::nullopt;
  const size_t last = bytes.size() - kDirectoryEndBytes;
  const size_t first = last > kLongestComment ? last - kLongestComment : 0;
  for (size_t at = last + 1; at-- > first;) {
    if (Load<uint32_t>(bytes, at) == kDirectoryEnd) return at;
  }
  return std::nullopt;
}

// Sizes and offset; those that do not fit into 32 bits come from an extra field.
struct Place {
  uint64_t size = 0, packed = 0, offset = 0;
};

bool ReadZip64(absl::string_view extra, Place& place) {
  while (extra.size() >= 4) {
    const auto id = Load<uint16_t>(extra, 0);
    const auto length = Load<uint16_t>(extra, 2);
    if (extra.size() - 4 < length) return false;
    absl::string_view field = extra.substr(4, length);
    extra.remove_prefix(4 + length);
    if (id != kZip64Extra) continue;
    for (uint64_t* value : {&place.size, &place.packed, &place.offset}) {
      if (*value != kInZip64) continue;
      if (field.size() < 8) return false;
      *value = Load<uint64_t>(field, 0);
      field.remove_prefix(8);
    }
  }
  return true;
}

absl::StatusOr<ZipMember> ReadEntry(absl::string_view bytes, size_t& at, size_t end,
                                    absl::string_view name) {
  if (end - at < kDirectoryEntryBytes || Load<uint32_t>(bytes, at) != kDirectoryEntry) {
    return Damaged(name, "its directory is damaged");
  }
  const auto flags = Load<uint16_t>(bytes, at + 8);
  const auto method = Load<uint16_t>(bytes, at + 10);
  const auto name_size = Load<uint16_t>(bytes, at + 28);
  const auto extra_size = Load<uint16_t>(bytes, at + 30);
  const auto comment_size = Load<uint16_t>(bytes, at + 32);
  if (end - at - kDirectoryEntryBytes < size_t{name_size} + extra_size + comment_size) {
    return Damaged(name, "its directory is damaged");
  }
  ZipMember member;
  member.crc32 = Load<uint32_t>(bytes, at + 16);
  member.name = std::string(bytes.substr(at + kDirectoryEntryBytes, name_size));
  Place place;
  place.packed = Load<uint32_t>(bytes, at + 20);
  place.size = Load<uint32_t>(bytes, at + 24);
  place.offset = Load<uint32_t>(bytes, at + 42);
  const absl::string_view extra = bytes.substr(at + kDirectoryEntryBytes + name_size, extra_size);
  if (!ReadZip64(extra, place)) return Damaged(name, "its directory is damaged");
  at += kDirectoryEntryBytes + name_size + extra_size + comment_size;

  const std::string which = absl::StrCat("member '", member.name, "'");
  if ((flags & 1) != 0) return Damaged(name, absl::StrCat(which, " is encrypted"));
  if (method != 0 && method != 8) {
    return Damaged(name, absl::StrCat(which, " is compressed by method ", method,
                                      "; use numpy.savez or savez_compressed"));
  }
  member.deflated = method == 8;
  member.size = place.size;
  if (bytes.size() < kLocalHeaderBytes || place.offset > bytes.size() - kLocalHeaderBytes ||
      Load<uint32_t>(bytes, place.offset) != kLocalHeader) {
    return Damaged(name, absl::StrCat(which, " lies outside the file"));
  }
  const uint64_t begin = place.offset + kLocalHeaderBytes +
                         Load<uint16_t>(bytes, place.offset + 26) +
                         Load<uint16_t>(bytes, place.offset + 28);
  if (begin > bytes.size() || place.packed > bytes.size() - begin) {
    return Damaged(name, absl::StrCat(which, " lies outside the file"));
  }
  member.stored = bytes.substr(begin, place.packed);
  const bool possible =
      member.deflated ? place.size / kMostExpansion <= place.packed : place.size == place.packed;
  if (!possible) return Damaged(name, absl::StrCat(which, " cannot have the size that it states"));
  return member;
}

// Decompresses into `out`, which has the size that the directory states.
bool Inflate(absl::string_view packed, std::string& out) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  size_t in_done = 0, out_done = 0;
  int result = Z_OK;
  char beyond;  // receives a byte if there is more than stated
  while (result == Z_OK) {
    constexpr size_t kMost = 1 << 30;  // zlib counts in 32 bits
    const size_t in_size = std::min(kMost, packed.size() - in_done);
    const size_t out_size = std::min(kMost, out.size() - out_done);
    stream.next_in = reinterpret_cast<Bytef*>(
        const_cast<char*>(packed.data() + in_done));  // zlib does not write to it
    stream.avail_in = static_cast<uInt>(in_size);
    stream.next_out = reinterpret_cast<Bytef*>(out_size > 0 ? &out[out_done] : &beyond);
    stream.avail_out = static_cast<uInt>(out_size > 0 ? out_size : 1);
    result = inflate(&stream, Z_NO_FLUSH);
    in_done += in_size - stream.avail_in;
    if (out_size == 0 && stream.avail_out == 0) break;
    if (out_size > 0) out_done += out_size - stream.avail_out;
  }
  inflateEnd(&stream);
  return result == Z_STREAM_END && out_done == out.size();
}

}  // namespace

LocalZipHeader ReadLocalZipHeader(absl::string_view bytes) {
  LocalZipHeader header;
  if (bytes.size() < kLocalHeaderBytes || Load<uint32_t>(bytes, 0) != kLocalHeader) return header;
  const auto name_size = Load<uint16_t>(bytes, 26);
  header.begin = kLocalHeaderBytes + uint64_t{name_size} + Load<uint16_t>(bytes, 28);
  if (header.begin > bytes.size()) return header;
  header.name = std::string(bytes.substr(kLocalHeaderBytes, name_size));
  header.encrypted = (Load<uint16_t>(bytes, 6) & 1) != 0;
  header.method = Load<uint16_t>(bytes, 8);
  header.packed = Load<uint32_t>(bytes, 18);
  return header;
}

absl::StatusOr<std::vector<ZipMember>> ReadZip(absl::string_view bytes, absl::string_view name) {
  const std::optional<size_t> end = FindDirectoryEnd(bytes);
  if (!end) return Damaged(name, "it is cut: its directory is missing");
  const auto count = Load<uint16_t>(bytes, *end + 10);
  if (Load<uint16_t>(bytes, *end + 4) != 0) return Damaged(name, "it is one of several volumes");
  size_t at = Load<uint32_t>(bytes, *end + 16);
  if (at > *end || count > kMostMembers) return Damaged(name, "its directory is damaged");
  std::vector<ZipMember> members;
  for (uint16_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(ZipMember member, ReadEntry(bytes, at, *end, name));
    members.push_back(std::move(member));
  }
  return members;
}

absl::StatusOr<absl::string_view> ReadMember(const ZipMember& member, absl::string_view name,
                                             std::string& buffer) {
  absl::string_view bytes = member.stored;
  if (member.deflated) {
    buffer.assign(member.size, '\0');
    if (!Inflate(member.stored, buffer)) {
      return Damaged(
          name, absl::StrCat("member '", member.name, "' does not decompress to the stated size"));
    }
    bytes = buffer;
  }
  uLong crc = crc32(0, nullptr, 0);
  for (size_t at = 0; at < bytes.size();) {
    const size_t some = std::min<size_t>(1 << 30, bytes.size() - at);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(bytes.data() + at), static_cast<uInt>(some));
    at += some;
  }
  if (crc != member.crc32) {
    return Damaged(name, absl::StrCat("member '", member.name, "' has another checksum"));
  }
  return bytes;
}

}  // namespace traind
