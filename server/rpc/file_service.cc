#include "server/rpc/file_service.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/base/status_macros.h"
#include "common/data/media/media_files.h"
#include "common/job_rules/program_folder.h"
#include "common/job_rules/travelling_files.h"
#include "common/plain/plain_json.h"
#include "common/publish/dataset_publisher.h"
#include "common/transfer/folder_pack.h"
#include "common/transfer/incoming_file.h"
#include "common/transfer/program_pack.h"
#include "common/transfer/state_path.h"
#include "common/transfer/whole_copy.h"
#include "common/transfer/zstd_part.h"
#include "common/wire/grpc_status.h"

namespace traind {
namespace {

constexpr size_t kPartBytes = 1 << 20;
constexpr char kProbePrefix[] = "probe-";
constexpr size_t kLongestProbe = 128;

bool IsProbe(absl::string_view name) {
  return absl::ConsumePrefix(&name, kProbePrefix) && !name.empty() &&
         name.size() <= kLongestProbe &&
         std::all_of(name.begin(), name.end(), absl::ascii_isxdigit);
}

// Names of the regular files of a folder, sorted; none where there is no folder.
std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error) && !entry.is_symlink(error)) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// FailedPrecondition: no regular file.
absl::StatusOr<int> OpenToRead(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return ErrnoStatus(errno, path);
  struct stat info = {};
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) return fd;
  close(fd);
  return absl::FailedPreconditionError(absl::StrCat(path, " is not a file"));
}

absl::Status SendRest(int fd, bool zstd, grpc::ServerWriter<v1::FilePart>& parts) {
  v1::FilePart part;
  PartPacker packer;
  std::string& content = *part.mutable_content();
  while (true) {
    content.resize(kPartBytes);
    const ssize_t got = read(fd, content.data(), content.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "cannot read");
    if (got == 0) return absl::OkStatus();
    content.resize(static_cast<size_t>(got));
    if (zstd) part.set_zstd(packer.Pack(content));
    if (!parts.Write(part)) return absl::CancelledError("the Worker takes no more");
  }
}

// A user's module or weights have their digest as their name, by which other Jobs trust them.
absl::Status CheckCachedDigest(const v1::OfferFileRequest& file) {
  const absl::string_view path = file.path();
  if (path != ScriptCachePath(file.sha256()) && path != WeightsCachePath(file.sha256()) &&
      absl::StartsWith(path, CacheDir()) &&
      (absl::EndsWith(path, ".pt") || absl::EndsWith(path, ".safetensors"))) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' has another digest"));
  }
  return absl::OkStatus();
}

absl::Status CheckOffset(int64_t offset, const FileDigest& digest) {
  if (offset >= 0 && offset <= digest.bytes) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("offset ", offset, " of ", digest.bytes));
}

}  // namespace

grpc::Status GrpcFileService::CompareFolder(grpc::ServerContext*,
                                            const v1::CompareFolderRequest* request,
                                            v1::CompareFolderReply* reply) {
  if (!IsProbe(request->name())) {
    return ToGrpc(absl::InvalidArgumentError(absl::StrCat("name: '", request->name(), "'")));
  }
  absl::StatusOr<std::string> content = ReadFile(InState(request->name()));
  if (!content.ok() && !linked_from_.empty()) {
    content = ReadFile(absl::StrCat(linked_from_, "/", request->name()));
  }
  reply->set_shared(content.ok() && *content == request->content());
  return grpc::Status::OK;
}

absl::StatusOr<std::shared_ptr<const Job>> GrpcFileService::Running(const std::string& job) const {
  std::shared_ptr<const Job> found = find_job_(job);
  if (found != nullptr && !IsTerminal(found->state)) return found;
  return absl::FailedPreconditionError(absl::StrCat("job ", job, " is over, or unknown"));
}

absl::Status GrpcFileService::CheckGoes(const std::string& job, const std::string& path) const {
  absl::Status own = CheckStatePath(state_dir_, path, job, Direction::kToWorker);
  if (own.ok()) return own;
  ASSIGN_OR_RETURN(const auto found, Running(job));
  const auto spec = plain::FromJson<plain::JobSpec>(found->spec_json);
  const std::string from = spec.ok() ? ModelsFrom(*spec) : "";
  if (from.empty()) return own;
  return CheckStatePath(state_dir_, path, from, Direction::kToWorker);
}

grpc::Status GrpcFileService::ListFiles(grpc::ServerContext*, const v1::ListFilesRequest* request,
                                        v1::ListFilesReply* reply) {
  if (const absl::Status runs = CheckRuns(request->job()); !runs.ok()) return ToGrpc(runs);
  for (const std::string& name : FilesIn(InState(request->folder()))) {
    const std::string path = absl::StrCat(request->folder(), "/", name);
    if (CheckGoes(request->job(), path).ok()) reply->add_paths(path);
  }
  // The Prediction that stands is reached over a link.
  std::error_code none;
  const auto standing =
      std::filesystem::read_symlink(absl::StrCat(InState(request->folder()), "/current"), none);
  const std::string manifest =
      absl::StrCat(request->folder(), "/", standing.string(), "/", kManifestFile);
  const bool of_another = request->folder() != JobDir(request->job());
  if (!none && of_another && CheckGoes(request->job(), manifest).ok()) reply->add_paths(manifest);
  return grpc::Status::OK;
}

absl::StatusOr<GrpcFileService::DataFile> GrpcFileService::FindData(
    const std::string& job, const std::string& field) const {
  ASSIGN_OR_RETURN(const auto found, Running(job));
  ASSIGN_OR_RETURN(const auto spec, plain::FromJson<plain::JobSpec>(found->spec_json));
  plain::DataSpec learnt = spec.data;
  if (spec.predict) {
    const std::shared_ptr<const Job> source = find_job_(spec.predict->from);
    if (source == nullptr) return absl::NotFoundError(spec.predict->from + " is gone");
    ASSIGN_OR_RETURN(const auto trained, plain::FromJson<plain::JobSpec>(source->spec_json));
    learnt = trained.data;
  }
  for (const NamedFile& file : TravellingFiles(spec)) {
    if (file.field != field) continue;
    // The Submit resolved its links and checked where it leads.
    char* real = realpath(file.path.c_str(), nullptr);
    if (real == nullptr) return ErrnoStatus(errno, absl::StrCat(field, ": ", file.path));
    const bool same = file.path == real;
    free(real);
    if (same) {
      const bool media = file.kind == NamedFile::kMedia;
      return DataFile{file.path, file.kind == NamedFile::kProgram,
                      media ? MediaColumns(learnt) : std::vector<std::string>(),
                      learnt.image.has_value()};
    }
    return absl::PermissionDeniedError(
        absl::StrCat(field, ": ", file.path, " has become a link since it was submitted"));
  }
  return absl::NotFoundError(absl::StrCat("job ", job, " names no file in '", field, "'"));
}

absl::StatusOr<std::string> GrpcFileService::PathOf(const v1::GetFileRequest& request) const {
  RETURN_IF_ERROR(CheckRuns(request.job()));
  RETURN_IF_ERROR(CheckGoes(request.job(), request.path()));
  return InState(request.path());
}

absl::Status GrpcFileService::SendFolder(FolderPack& pack, const std::string& table,
                                         const v1::GetFileRequest& request,
                                         grpc::ServerWriter<v1::FilePart>& parts) {
  ASSIGN_OR_RETURN(const FileDigest digest, pack.Digest());
  int64_t offset = request.offset();
  PartPacker packer;
  v1::FilePart part;
  part.set_size_bytes(digest.bytes);
  part.set_sha256(digest.sha256);
  part.set_folder(true);
  part.set_table(table);
  while (parts.Write(part)) {
    part.Clear();
    RETURN_IF_ERROR(CheckOffset(offset, digest));
    if (offset == digest.bytes) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::string content, pack.Read(offset, kPartBytes));
    offset += static_cast<int64_t>(content.size());
    if (request.zstd()) part.set_zstd(packer.Pack(content));
    part.set_content(std::move(content));
  }
  return absl::CancelledError("the Worker takes no more");
}

absl::Status GrpcFileService::Send(const v1::GetFileRequest& request,
                                   grpc::ServerWriter<v1::FilePart>& parts) const {
  if (request.file_case() != v1::GetFileRequest::kField) {
    ASSIGN_OR_RETURN(const std::string path, PathOf(request));
    return SendFile(path, request, parts);
  }
  ASSIGN_OR_RETURN(const DataFile data, FindData(request.job(), request.field()));
  if (data.program) {
    ASSIGN_OR_RETURN(ProgramFiles found, ListProgramFiles(data.path, state_dir_));
    ASSIGN_OR_RETURN(const auto pack,
                     FolderPack::Open(found.root, found.files, std::move(found.folders)));
    return SendFolder(*pack, "", request, parts);
  }
  if (data.columns.empty()) return SendFile(data.path, request, parts);
  ASSIGN_OR_RETURN(const auto media,
                   ListMediaFiles(data.path, data.columns, data.folders, state_dir_));
  if (!media) return SendFile(data.path, request, parts);
  ASSIGN_OR_RETURN(const auto pack, FolderPack::Open(media->root, media->files, media->names));
  return SendFolder(*pack, media->table, request, parts);
}

absl::Status GrpcFileService::SendFile(const std::string& path, const v1::GetFileRequest& request,
                                       grpc::ServerWriter<v1::FilePart>& parts) {
  ASSIGN_OR_RETURN(const int fd, OpenToRead(path));
  const absl::Cleanup closer = [fd] { close(fd); };
  // Read by descriptor, because another file may have the name by now.
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFile(absl::StrCat("/proc/self/fd/", fd)));
  v1::FilePart first;
  first.set_size_bytes(digest.bytes);
  first.set_sha256(digest.sha256);
  if (!parts.Write(first)) return absl::CancelledError("the Worker takes no more");
  RETURN_IF_ERROR(CheckOffset(request.offset(), digest));
  if (lseek(fd, request.offset(), SEEK_SET) < 0) return ErrnoStatus(errno, path);
  return SendRest(fd, request.zstd(), parts);
}

grpc::Status GrpcFileService::GetFile(grpc::ServerContext*, const v1::GetFileRequest* request,
                                      grpc::ServerWriter<v1::FilePart>* parts) {
  return ToGrpc(Send(*request, *parts));
}

absl::Status GrpcFileService::CheckComes(const v1::OfferFileRequest& file) const {
  RETURN_IF_ERROR(CheckStatePath(state_dir_, file.path(), file.job(), Direction::kToTraind));
  RETURN_IF_ERROR(CheckCachedDigest(file));
  absl::Status runs = CheckRuns(file.job());
  // Nobody sends the rest of a file whose Job is over.
  if (!runs.ok()) IncomingFile::DiscardIdle(InState(file.path()), file.sha256());
  return runs;
}

absl::Status GrpcFileService::CheckWriter(const grpc::ServerContextBase& context,
                                          const std::string& job, const std::string& path) const {
  if (!acts_for_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto found, Running(job));
  const auto pack = ProgramPackAt(path, job);
  const bool of_one = pack || absl::StartsWith(path, absl::StrCat(JobDir(job), "/attempts/"));
  const auto& attempts = found->attempts;
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    const bool its = pack ? pack->attempt == attempt->id
                          : absl::StartsWith(path, absl::StrCat(AttemptDir(job, attempt->id), "/"));
    if (of_one && !its) continue;
    if (acts_for_(context, attempt->worker).ok()) return absl::OkStatus();
    for (const GangPart& part : attempt->others) {
      if (acts_for_(context, part.worker).ok()) return absl::OkStatus();
    }
  }
  return absl::PermissionDeniedError(
      absl::StrCat(path, ": it belongs to Attempts of other Workers"));
}

absl::Status GrpcFileService::Offer(const grpc::ServerContextBase& context,
                                    const v1::OfferFileRequest& request,
                                    v1::OfferFileReply& reply) {
  RETURN_IF_ERROR(CheckComes(request));
  RETURN_IF_ERROR(CheckWriter(context, request.job(), request.path()));
  const std::string path = InState(request.path());
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && info.st_size == request.size_bytes()) {
    const absl::StatusOr<FileDigest> digest = DigestFile(path);
    reply.set_present(digest.ok() && digest->sha256 == request.sha256());
  }
  // traind may have ended, or the disk have been full, before it was taken.
  if (reply.present()) return Take(request.job(), request.path());
  const auto file = IncomingFile::Open(path, {request.sha256(), request.size_bytes()});
  if (absl::IsUnavailable(file.status())) receivers_.EndStalled(request.path());
  RETURN_IF_ERROR(file.status());
  reply.set_offset((*file)->offset());
  reply.set_zstd(true);
  return absl::OkStatus();
}

grpc::Status GrpcFileService::OfferFile(grpc::ServerContext* context,
                                        const v1::OfferFileRequest* request,
                                        v1::OfferFileReply* reply) {
  return ToGrpc(Offer(*context, *request, *reply));
}

absl::Status GrpcFileService::Take(const std::string& job, const std::string& pack) {
  const bool results = absl::EndsWith(pack, absl::StrCat("/", kResultsPack));
  if (!results && !absl::EndsWith(pack, absl::StrCat("/", kPredictionPack))) {
    return absl::OkStatus();
  }
  // A Worker whose call took too long may be back while the call still goes on.
  const std::lock_guard<std::mutex> lock(taking_);
  const std::string folder = absl::StrCat(InState(pack), ".part");
  std::error_code error;
  std::filesystem::remove_all(folder, error);  // of a traind that died
  RETURN_IF_ERROR(UnpackFolder(InState(pack), folder));
  const absl::Status taken =
      results ? TakeResults(job, pack, folder) : AdoptDataset(state_dir_, job, folder);
  std::filesystem::remove_all(folder, error);
  return taken;
}

absl::Status GrpcFileService::TakeResults(const std::string& job, const std::string& pack,
                                          const std::string& folder) const {
  ASSIGN_OR_RETURN(const auto found, Running(job));
  const auto& attempts = found->attempts;
  // One that was given up may have a connection again while another one answers.
  const bool at_work = std::any_of(attempts.begin(), attempts.end(), [&](const Attempt& attempt) {
    return attempt.ended_at == absl::InfiniteFuture() &&
           pack == absl::StrCat(AttemptDir(job, attempt.id), "/", kResultsPack);
  });
  if (!at_work) return absl::FailedPreconditionError(absl::StrCat(pack, ": nobody waits for it"));
  ASSIGN_OR_RETURN(const auto spec, plain::FromJson<plain::JobSpec>(found->spec_json));
  if (!spec.run) return absl::InvalidArgumentError(absl::StrCat("job ", job, " runs no program"));
  return CopyFolderWhole(folder, ProgramResultsDir(state_dir_, job, spec.run->results));
}

absl::Status GrpcFileService::ReceiveFile(grpc::ServerContext* context,
                                          grpc::ServerReader<v1::PutFileRequest>& requests) {
  v1::PutFileRequest part;
  if (!requests.Read(&part)) return absl::CancelledError("no file was named");
  const v1::OfferFileRequest named = part.file();
  RETURN_IF_ERROR(CheckComes(named));
  RETURN_IF_ERROR(CheckWriter(*context, named.job(), named.path()));
  ASSIGN_OR_RETURN(auto file,
                   IncomingFile::Open(InState(named.path()), {named.sha256(), named.size_bytes()}));
  if (part.offset() != file->offset()) {
    return absl::AbortedError(
        absl::StrCat(named.path(), ": ", file->offset(), " bytes are there, not ", part.offset()));
  }
  // Nobody else has the path here, because the file is locked.
  const absl::Cleanup forget = [&] { receivers_.Forget(named.path()); };
  absl::Status received;
  do {
    receivers_.NotePart(named.path(), [context] { context->TryCancel(); });
    received = file->AppendPart(part.content(), part.zstd());
  } while (received.ok() && requests.Read(&part));
  // The Job may have ended, and its folder may be gone, meanwhile. Then nobody sends the rest.
  if (absl::Status runs = CheckRuns(named.job()); !runs.ok()) {
    file->Discard();
    return runs;
  }
  RETURN_IF_ERROR(received);
  RETURN_IF_ERROR(file->Commit());
  file.reset();  // it holds the lock
  // Of what a program's fold resumes from only the newest is needed.
  if (const auto pack = ProgramPackAt(named.path(), named.job())) {
    RemoveOlderProgramPacks(state_dir_, named.job(), *pack);
  }
  return Take(named.job(), named.path());
}

grpc::Status GrpcFileService::PutFile(grpc::ServerContext* context,
                                      grpc::ServerReader<v1::PutFileRequest>* requests,
                                      v1::PutFileReply*) {
  return ToGrpc(ReceiveFile(context, *requests));
}

grpc::Status GrpcFileService::DropCheckpoints(grpc::ServerContext* context,
                                              const v1::DropCheckpointsRequest* request,
                                              v1::DropCheckpointsReply*) {
  if (const absl::Status runs = CheckRuns(request->job()); !runs.ok()) return ToGrpc(runs);
  const std::string attempt = AttemptDir(request->job(), request->attempt());
  const absl::Status own = CheckWriter(*context, request->job(), attempt + "/");
  if (!own.ok()) return ToGrpc(own);
  const std::string folder = InState(attempt);
  const auto& keep = request->keep();
  for (const std::string& name : FilesIn(folder)) {
    if (!absl::StartsWith(name, kCheckpointPrefix)) continue;
    if (absl::StrContains(name, kTemporaryMark)) continue;
    if (std::find(keep.begin(), keep.end(), name) != keep.end()) continue;
    unlink(absl::StrCat(folder, "/", name).c_str());
  }
  return grpc::Status::OK;
}

}  // namespace traind
