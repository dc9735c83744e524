#include "server/rpc/artifact_reader.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"

namespace traind {
namespace {

constexpr size_t kPartBytes = 1 << 20;

bool IsPlainName(const std::string& name) {
  return !name.empty() && name.size() <= 128 && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

}  // namespace

absl::StatusOr<ArtifactReader> ArtifactReader::Open(const std::string& state_dir,
                                                    const std::string& job,
                                                    const std::string& wanted) {
  const std::string name = wanted.empty() ? kPredictionsFile : wanted;
  if (!IsPlainName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("name: '", name, "' is not a file name (letters, digits, '.', '_', '-')"));
  }
  if (name != kPredictionsFile && name != kPredictionsNpy && name != kPredictionsZip &&
      name != kManifestFile) {
    return absl::NotFoundError(absl::StrCat("name: a job has ", kPredictionsFile, ", as asked ",
                                            kPredictionsNpy, " or ", kPredictionsZip, ", and ",
                                            kManifestFile, ", not '", name, "'"));
  }
  const std::string path = absl::StrCat(state_dir, "/", CurrentLink(job), "/", name);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno == ENOENT) {
    return absl::NotFoundError(absl::StrCat("job ", job, " has no ", name, " (yet)"));
  }
  if (fd < 0) return ErrnoStatus(errno, path);
  // The digest is read by descriptor, because `current` may point elsewhere by now.
  auto digest = DigestFile(absl::StrCat("/proc/self/fd/", fd));
  if (!digest.ok()) {
    close(fd);
    return digest.status();
  }
  return ArtifactReader(fd, *std::move(digest));
}

ArtifactReader::ArtifactReader(ArtifactReader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), digest_(std::move(other.digest_)) {}

ArtifactReader::~ArtifactReader() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::string> ArtifactReader::Next() {
  std::string part(kPartBytes, '\0');
  ssize_t got = 0;
  do {
    got = read(fd_, part.data(), part.size());
  } while (got < 0 && errno == EINTR);
  if (got < 0) return ErrnoStatus(errno, "cannot read the artifact");
  part.resize(static_cast<size_t>(got));
  return part;
}

}  // namespace traind
