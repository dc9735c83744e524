// The members of a ZIP archive in memory, such as numpy.savez writes.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

namespace traind {

struct ZipMember {
  std::string name;
  absl::string_view stored;  // its bytes in the archive
  uint64_t size = 0;         // unpacked
  bool deflated = false;
  uint32_t crc32 = 0;
};

// Reads the directory at the archive's end. `name` is what errors call the file.
// InvalidArgument: cut, encrypted, of several volumes, packed otherwise than by
// deflate, or its sizes are not those of the file.
absl::StatusOr<std::vector<ZipMember>> ReadZip(absl::string_view bytes, absl::string_view name);

// The member's bytes: as they lie in the archive, or unpacked into `buffer`.
// InvalidArgument: it unpacks to another size or checksum than the directory says,
// or to more than a thousand times its size.
absl::StatusOr<absl::string_view> ReadMember(const ZipMember& member, absl::string_view name,
                                             std::string& buffer);

}  // namespace traind
