// Reads the members of a ZIP archive in memory, such as numpy.savez writes.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct ZipMember {
  std::string name;
  absl::string_view stored;  // its bytes as stored in the archive
  uint64_t size = 0;         // decompressed size
  bool deflated = false;
  uint32_t crc32 = 0;
};

// What precedes a member's bytes. Archives that are written as a stream leave `packed` at 0.
struct LocalZipHeader {
  std::string name;     // empty: the bytes do not begin with a whole header
  uint64_t begin = 0;   // where the member's bytes begin
  uint64_t packed = 0;  // their number
  uint16_t method = 0;  // 0: stored, 8: deflated
  bool encrypted = false;
};
LocalZipHeader ReadLocalZipHeader(absl::string_view bytes);

// Reads the directory at the archive's end. `name` is what errors call the file. InvalidArgument:
// the archive is cut, encrypted, split into volumes, compressed by another method than deflate, or
// its sizes contradict the file.
absl::StatusOr<std::vector<ZipMember>> ReadZip(absl::string_view bytes, absl::string_view name);

// Returns the member's bytes: as stored in the archive, or decompressed into `buffer`.
// InvalidArgument: size or checksum differs from the directory's, or the member expands to more
// than a thousand times its size.
absl::StatusOr<absl::string_view> ReadMember(const ZipMember& member, absl::string_view name,
                                             std::string& buffer);

}  // namespace traind
