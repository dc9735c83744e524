#include "server/rpc/artifact_reader.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

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

absl::StatusOr<ArtifactReader> ArtifactReader::OpenResults(const std::string& state_dir,
                                                           const std::string& job) {
  namespace fs = std::filesystem;
  const absl::Status nothing =
      absl::NotFoundError(absl::StrCat("the program of job ", job, " has left no files (yet)"));
  // With --artifacts a folder above that of the Job is a link; its own must be none, because
  // programs may write there.
  std::error_code error;
  const fs::path own = fs::canonical(absl::StrCat(state_dir, "/", JobDir(job)), error);
  if (error) return nothing;
  const std::string folder = ProgramResultsDir(state_dir, job, "");
  const fs::path real = fs::canonical(folder, error);
  if (error) return nothing;
  if (real != own / kResultsFolder) {
    return absl::PermissionDeniedError(absl::StrCat(folder, " is a link, which nobody follows"));
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesBelow(real.string()));
  if (files.empty()) return nothing;
  ASSIGN_OR_RETURN(auto pack, FolderPack::Open(real.string(), files, {}));
  ASSIGN_OR_RETURN(FileDigest digest, pack->Digest());
  return ArtifactReader(std::move(pack), std::move(digest));
}

ArtifactReader::ArtifactReader(ArtifactReader&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      pack_(std::move(other.pack_)),
      offset_(other.offset_),
      digest_(std::move(other.digest_)) {}

ArtifactReader::~ArtifactReader() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::string> ArtifactReader::Next() {
  if (pack_ != nullptr) {
    ASSIGN_OR_RETURN(std::string bytes, pack_->Read(offset_, kPartBytes));
    offset_ += static_cast<int64_t>(bytes.size());
    return bytes;
  }
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
