#include "client/fetch_results.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "client/fetch_file.h"
#include "common/base/durable_file.h"
#include "common/base/status_macros.h"
#include "common/transfer/folder_pack.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

// A program that is at work may replace its files while they are sent.
constexpr int kMostTries = 4;

absl::Status MakeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  return error ? CannotWrite(folder.string(), error.message()) : absl::OkStatus();
}

// Moves the files to their places.
absl::StatusOr<FetchedResults> MoveAll(const fs::path& from, const fs::path& to) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, FilesBelow(from.string()));
  FetchedResults moved;
  for (const std::string& file : files) {
    const fs::path target = to / file;
    RETURN_IF_ERROR(MakeFolder(target.parent_path()));
    std::error_code error;
    moved.bytes += static_cast<int64_t>(fs::file_size(from / file, error));
    if (!error) fs::rename(from / file, target, error);
    if (error) return CannotWrite(target.string(), error.message());
    ++moved.files;
  }
  return moved;
}

}  // namespace

absl::Status CheckCanFetchTo(const std::string& folder) {
  RETURN_IF_ERROR(MakeFolder(folder));
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  return CannotWrite(folder, std::strerror(errno));
}

absl::StatusOr<FetchedResults> FetchResults(TrainingClient& client, const std::string& id,
                                            const std::string& folder, absl::Duration limit) {
  RETURN_IF_ERROR(CheckCanFetchTo(folder));
  const std::string name = absl::StrReplaceAll(id, {{"/", "_"}});
  const std::string beside = absl::StrCat(folder, "/.trainctl-fetch-", name);
  RETURN_IF_ERROR(MakeFolder(beside));
  const int lock = open(beside.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (lock < 0) return CannotWrite(beside, std::strerror(errno));
  const absl::Cleanup closer = [lock] { close(lock); };
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    return CannotWrite(folder, absl::StrCat("another trainctl copies the files of ", id, " there"));
  }
  std::error_code error;
  const absl::Cleanup cleanup = [&beside] {
    std::error_code ignored;
    fs::remove_all(beside, ignored);
  };
  const std::string pack = absl::StrCat(beside, "/", kResultsPack);
  const std::string unpacked = absl::StrCat(beside, "/files");
  fs::remove_all(unpacked, error);
  absl::StatusOr<FetchedFile> fetched = absl::UnknownError("not tried");
  for (int i = 0; i < kMostTries; ++i) {
    fetched = FetchToFile(client, id, kResultsPack, pack, limit);
    if (!absl::IsAborted(fetched.status()) && !absl::IsDataLoss(fetched.status())) break;
  }
  RETURN_IF_ERROR(fetched.status());
  const absl::Status whole = UnpackFolder(pack, unpacked);
  if (absl::IsInvalidArgument(whole) || absl::IsDataLoss(whole)) return whole;
  if (!whole.ok()) return CannotWrite(folder, whole.message());
  return MoveAll(unpacked, folder);
}

}  // namespace traind
