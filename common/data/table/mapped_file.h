// A file, mapped for reading.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <sys/stat.h>

#include <memory>
#include <string>

namespace traind {

enum class MapUse {
  kWhole,   // fits into memory, and is about to be read
  kStream,  // may be larger than memory
};

// Threads: safe to share. A file that is cut while it is mapped raises SIGBUS;
// one that is written to shows in CheckUnchanged.
class MappedFile {
 public:
  // NotFound, PermissionDenied; InvalidArgument where it is no regular file.
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path,
                                                          MapUse use = MapUse::kWhole);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  absl::string_view bytes() const { return bytes_; }
  // Its pages leave this process's memory, until they are read again: for parts that one is done
  // with, of a file that is larger than memory.
  void Release(absl::string_view part) const;
  // InvalidArgument: it is not as it was when it was opened.
  absl::Status CheckUnchanged() const;

 private:
  MappedFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
  struct stat info_ = {};
  absl::string_view bytes_;
};

}  // namespace traind
