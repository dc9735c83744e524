#include "worker/prepare/kept_file.h"

#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <limits.h>
#include <unistd.h>

#include <memory>

#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/data/table/mapped_file.h"
#include "worker/task/failure.h"

namespace traind {

absl::Status KeepFile(absl::string_view field, const std::string& path, const std::string& sha256,
                      const std::string& kept) {
  const absl::StatusOr<FileDigest> there = DigestFile(kept);
  if (there.ok() && there->sha256 == sha256) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  if (Sha256Hex(file->bytes()) != sha256) {
    return UserError(absl::StrCat(field, ": ", path, " was changed after the Job was submitted"));
  }
  return WriteFileDurably(kept, file->bytes());
}

std::string RankProgram() {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length <= 0) return "trainrank";
  std::string path(self, static_cast<size_t>(length));
  return absl::StrCat(path.substr(0, path.rfind('/') + 1), "trainrank");
}

}  // namespace traind
