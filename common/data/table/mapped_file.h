// A file that is mapped for reading.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <sys/stat.h>

#include <memory>
#include <string>

namespace traind {

enum class MapUse {
  kWhole,   // fits into memory, and will be read as a whole
  kStream,  // may be larger than memory
};

// Threads: safe to share. A file that is truncated while it is mapped raises SIGBUS; CheckUnchanged
// detects one that was written to.
class MappedFile {
 public:
  // NotFound; PermissionDenied, also by CheckUserFile; InvalidArgument: not a regular file.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path,
                                                          MapUse use = MapUse::kWhole);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view bytes() const { return bytes_; }
  // A path at which another process opens this very file while this object lives.
  std::string PathForOthers() const;
  // Drops the pages of `part` from this process's memory until they are read again. Use it for
  // parts that are no longer needed, of a file that is larger than memory.
  void Release(absl::string_view part) const;
  // InvalidArgument: the file has changed since it was opened.
  absl::Status CheckUnchanged() const;

 private:
  MappedFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
  struct stat info_ = {};
  absl::string_view bytes_;
};

}  // namespace traind
