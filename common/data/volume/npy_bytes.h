// Reads the bytes of an array in order, from a file or an archive's member.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>

#include "common/data/table/zip.h"

namespace traind {

// The bytes of one array.
// Threads: confined to one. Errors: InvalidArgument, with the file's name, if it is cut or damaged;
// those of reading files.
class NpyBytes {
 public:
  virtual ~NpyBytes() = default;
  // out: the bytes from `at` on. Going back behind the previous call may cost a second pass.
  // REQUIRES: at + out.size() <= the size.
  virtual absl::Status Read(uint64_t at, absl::Span<char> out) = 0;
};

// A file that is open for reading.
// Threads: safe to share.
class OpenFile {
 public:
  // NotFound, PermissionDenied.
  static absl::StatusOr<std::shared_ptr<const OpenFile>> Open(const std::string& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // Reads fewer bytes than asked for only where the file ends.
  absl::StatusOr<size_t> Read(uint64_t at, absl::Span<char> out) const;
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  OpenFile(std::string path, int fd, uint64_t size)
      : path_(std::move(path)), fd_(fd), size_(size) {}

  const std::string path_;
  const int fd_;
  const uint64_t size_;
};

// Reads from a place in the file on.
std::unique_ptr<NpyBytes> BytesOfFile(std::shared_ptr<const OpenFile> file, uint64_t begin);

// Reads a member of an archive, whose stored bytes begin at `begin`, decompressing as it goes. The
// checksum is compared after the last byte. Only the bytes asked for are in memory.
std::unique_ptr<NpyBytes> BytesOfMember(std::shared_ptr<const OpenFile> file, uint64_t begin,
                                        const ZipMember& member);

}  // namespace traind
