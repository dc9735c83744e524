// TrainingCalls: files that clients send.
#include <absl/cleanup/cleanup.h>
#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/transfer/folder_pack.h"
#include "common/transfer/incoming_file.h"
#include "server/rpc/training_calls.h"

namespace traind {
namespace {

constexpr size_t kMostName = 128;
constexpr size_t kMostContent = 3 << 20;
constexpr size_t kDigestLetters = 64;
// Stays free besides the files, for the database.
constexpr int64_t kSpareBytes = int64_t{256} << 20;

absl::Status CheckContent(const v1::UploadRequest& request) {
  if (request.content().size() <= kMostContent) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("content: more than ", kMostContent, " bytes; send the file in parts"));
}

absl::Status AppendContent(const v1::UploadRequest& request, IncomingFile& file) {
  RETURN_IF_ERROR(CheckContent(request));
  return file.AppendPart(request.content(), request.zstd());
}

absl::Status Check(const v1::UploadRequest& request) {
  const std::string& name = request.name();
  const auto fits = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  };
  if (name.empty() || name[0] == '.' || name.size() > kMostName ||
      !std::all_of(name.begin(), name.end(), fits)) {
    return absl::InvalidArgumentError(
        "name: a file's name has letters, digits, '.', '_' and '-', no '.' in front, and at most "
        "128 characters");
  }
  if (name == kPackName) {
    return absl::InvalidArgumentError("name: it is that of a folder that is on its way");
  }
  const std::string& sha256 = request.sha256();
  const auto digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (sha256.size() != kDigestLetters || !std::all_of(sha256.begin(), sha256.end(), digit)) {
    return absl::InvalidArgumentError("sha256: it has 64 digits, 0-9 and a-f");
  }
  if (request.size_bytes() < 0) return absl::InvalidArgumentError("size_bytes: less than 0");
  if (request.offset() < 0) return absl::InvalidArgumentError("offset: less than 0");
  return CheckContent(request);
}

// Whether the file is there. It had its digest when it was renamed to its name.
bool IsWhole(const std::string& path, int64_t bytes) {
  struct stat about = {};
  return stat(path.c_str(), &about) == 0 && about.st_size == bytes;
}

absl::Status FinishUpload(bool folder, std::unique_ptr<IncomingFile> file,
                          const v1::UploadReply& reply) {
  RETURN_IF_ERROR(file->Commit());
  const std::string path = file->path();
  file.reset();  // it holds the lock
  return folder ? UnpackFolder(path, reply.path()) : absl::OkStatus();
}

absl::Status CheckRoom(const std::string& folder, int64_t bytes) {
  struct statvfs disk = {};
  if (statvfs(folder.c_str(), &disk) != 0) return ErrnoStatus(errno, folder);
  const int64_t left =
      static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize) - kSpareBytes;
  if (bytes <= left) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("traind's disk has room for ", std::max<int64_t>(left, 0), " bytes, and ", bytes,
                   " are to come; trainctl gc frees what nobody needs"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<IncomingFile>> TrainingCalls::OpenUpload(
    const v1::UploadRequest& request, v1::UploadReply* reply) {
  RETURN_IF_ERROR(Check(request));
  // With --artifacts the folder is a link; the path without it is the same on other machines.
  std::error_code no_folder;
  const std::filesystem::path real =
      std::filesystem::canonical(absl::StrCat(state_dir_, "/", kUploadsDir), no_folder);
  const std::string root = no_folder ? state_dir_ : real.parent_path().string();
  reply->set_zstd(true);
  reply->set_path(absl::StrCat(root, "/", UploadPath(request.sha256(), request.name())));
  const std::string path = request.folder()
                               ? absl::StrCat(root, "/", UploadPath(request.sha256(), kPackName))
                               : reply->path();
  const std::string folder = path.substr(0, path.rfind('/'));
  // traind ended before it had unpacked it.
  if (request.folder() && IsWhole(path, request.size_bytes())) {
    RETURN_IF_ERROR(UnpackFolder(path, reply->path()));
  }
  std::error_code none;
  if (request.folder() ? std::filesystem::is_directory(reply->path(), none)
                       : IsWhole(path, request.size_bytes())) {
    // Retention counts from the last time that somebody asked for it.
    (void)utimensat(AT_FDCWD, folder.c_str(), nullptr, 0);
    reply->set_present(true);
    reply->set_offset(request.size_bytes());
    return nullptr;
  }
  auto file = IncomingFile::Open(path, {request.sha256(), request.size_bytes()});
  if (absl::IsUnavailable(file.status())) uploads_.EndStalled(reply->path());
  RETURN_IF_ERROR(file.status());
  reply->set_offset((*file)->offset());
  // A pack lies beside its folder for a moment.
  const int64_t twice = request.folder() ? request.size_bytes() : 0;
  RETURN_IF_ERROR(CheckRoom(root, twice + request.size_bytes() - (*file)->offset()));
  return file;
}

absl::Status TrainingCalls::Upload(const v1::UploadRequest& request, v1::UploadReply* reply) {
  ASSIGN_OR_RETURN(auto file, OpenUpload(request, reply));
  if (file == nullptr) return absl::OkStatus();
  if (request.offset() == file->offset()) RETURN_IF_ERROR(AppendContent(request, *file));
  reply->set_offset(file->offset());
  if (file->offset() < request.size_bytes()) return absl::OkStatus();
  RETURN_IF_ERROR(FinishUpload(request.folder(), std::move(file), *reply));
  reply->set_present(true);
  return absl::OkStatus();
}

absl::Status TrainingCalls::UploadParts(const UploadSource& source, v1::UploadReply* reply) {
  v1::UploadRequest part;
  if (!source.next(&part)) return absl::CancelledError("no file was named");
  const int64_t bytes = part.size_bytes();
  const bool folder = part.folder();
  ASSIGN_OR_RETURN(auto file, OpenUpload(part, reply));
  if (file == nullptr) return absl::OkStatus();
  if (part.offset() != file->offset()) {
    return absl::AbortedError(
        absl::StrCat(file->offset(), " bytes are there, not ", part.offset()));
  }
  // Nobody else has the path here, because the file is locked.
  const absl::Cleanup forget = [&] { uploads_.Forget(reply->path()); };
  do {
    uploads_.NotePart(reply->path(), source.end);
    RETURN_IF_ERROR(AppendContent(part, *file));
    reply->set_offset(file->offset());
  } while (file->offset() < bytes && source.next(&part));
  if (file->offset() < bytes) return absl::OkStatus();
  RETURN_IF_ERROR(FinishUpload(folder, std::move(file), *reply));
  reply->set_present(true);
  return absl::OkStatus();
}

}  // namespace traind
