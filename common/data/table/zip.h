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
