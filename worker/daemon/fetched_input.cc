#include "worker/daemon/fetched_input.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "common/transfer/folder_pack.h"
#include "worker/daemon/own_folder.h"

namespace traind::worker {

bool HasDigest(const std::string& path, const FileDigest& digest) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0 || info.st_size != digest.bytes) return false;
  const absl::StatusOr<FileDigest> found = DigestFile(path);
  if (!found.ok() || found->sha256 != digest.sha256) return false;
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return true;
}

FetchedInput FetchedInput::Of(const std::string& state_dir, const NamedFile& file,
                              const RemoteContent& content) {
  const auto local = [&](const std::string& name) {
    return absl::StrCat(state_dir, "/", InputPath(content.digest.sha256, name));
  };
  FetchedInput input;
  input.digest = content.digest;
  if (!content.folder) {
    input.path = input.comes_to = local(FileName(file.path));
    return input;
  }
  input.named_folder =
      content.table.empty() ? file.path : file.path.substr(0, file.path.rfind('/'));
  input.folder = local(absl::StrCat("folder-", FileName(input.named_folder)));
  input.path =
      content.table.empty() ? input.folder : absl::StrCat(input.folder, "/", content.table);
  input.comes_to = local(kPackName);
  return input;
}

bool FetchedInput::IsThere() const {
  if (!IsFolder()) return HasDigest(path, digest);
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) return HasDigest(comes_to, digest);
  // Its files may be very many: one beside them tells when they were used.
  const std::string used = absl::StrCat(folder, ".used");
  const int fd = open(used.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd >= 0) futimens(fd, nullptr);
  if (fd >= 0) close(fd);
  return true;
}

absl::Status FetchedInput::Unpack() const {
  return IsFolder() ? UnpackFolder(comes_to, folder) : absl::OkStatus();
}

}  // namespace traind::worker
