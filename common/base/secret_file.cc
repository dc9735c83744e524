#include "common/base/secret_file.h"

#include <absl/strings/str_cat.h>
#include <sys/stat.h>

#include "common/base/durable_file.h"

namespace traind {

absl::StatusOr<std::string> ReadSecretFile(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) == 0 && (about.st_mode & S_IRWXO) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is open to every user of this machine; run: chmod 600 ", path));
  }
  return ReadFile(path);
}

}  // namespace traind
