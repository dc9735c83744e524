// A folder as one run of bytes, so that it travels as a file does: by its digest, and from where a
// broken connection stopped.
//
//   traind-pack 1\n
//   BYTES PATH\n      for each file, sorted by path; of a folder BYTES is 0 and PATH ends in '/';
//                     an x behind BYTES says that its owner may execute it
//   \n
//   the bytes of the files, one after the other
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/durable_file.h"

namespace traind {

// A pack's name while it is on its way.
inline constexpr char kPackName[] = "folder.pack";

// The pack of the Prediction of an Attempt that predicts a file, in the Attempt's folder.
inline constexpr char kPredictionPack[] = "prediction.pack";
// That of the files that a program has left as its answer.
inline constexpr char kResultsPack[] = "results.pack";

// Returns the regular files of a folder and of those in it, relative to it, sorted. Links and
// temporary files are left out. Aborted: the folder has changed meanwhile.
absl::StatusOr<std::vector<std::string>> FilesBelow(const std::string& folder);

// Reads the pack of a folder. Nothing is copied: the files are read when their bytes are asked for.
// Threads: confined to one.
class FolderPack {
 public:
  // root: absolute, links resolved. files: paths relative to it. A file that is not there, or not
  // below the root once its links are resolved, is left out, so that whoever reads the folder
  // misses it. names: files of which only the name travels, and folders, whose paths end in '/'.
  // InvalidArgument: a path that a pack cannot have.
  static absl::StatusOr<std::unique_ptr<FolderPack>> Open(const std::string& root,
                                                          const std::vector<std::string>& files,
                                                          std::vector<std::string> names);
  ~FolderPack();
  FolderPack(const FolderPack&) = delete;
  FolderPack& operator=(const FolderPack&) = delete;

  int64_t bytes() const { return bytes_; }
  // Returns `most` bytes from an offset on; fewer at the end. Aborted: a file has
  // changed.
  absl::StatusOr<std::string> Read(int64_t offset, size_t most);
  // Reads all files.
  absl::StatusOr<FileDigest> Digest();
  // Writes it to a file, durably.
  absl::Status WriteTo(const std::string& path);

 private:
  struct File {
    std::string path;
    int64_t bytes = 0;
    int64_t begin = 0;  // in the pack
    bool executable = false;
  };

  explicit FolderPack(std::string root) : root_(std::move(root)) {}
  absl::Status OpenFile(size_t index);
  absl::Status ReadFrom(const File& file, int64_t offset, char* out, size_t bytes);

  const std::string root_;
  std::string list_;  // the lines before the bytes of the files
  std::vector<File> files_;
  int64_t bytes_ = 0;
  int fd_ = -1;  // of files_[open_]
  size_t open_ = 0;
};

// Makes the folder of a pack, and removes the pack. The folder appears whole and durable, or not at
// all; one that is there already stays. Who may read its files is as the umask says.
// InvalidArgument: the bytes are no pack; errors of the system. Threads: safe, also beside other
// processes that unpack the same.
absl::Status UnpackFolder(const std::string& pack, const std::string& folder);

}  // namespace traind
