#include "worker/daemon/file_client.h"

#include <absl/cleanup/cleanup.h>
#include <absl/time/time.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/transfer/incoming_file.h"
#include "common/transfer/zstd_part.h"
#include "common/wire/grpc_status.h"
#include "proto/file_service.grpc.pb.h"
#include "worker/daemon/coordinator_client.h"

namespace traind::worker {
namespace {

constexpr size_t kPartBytes = 1 << 20;
constexpr absl::Duration kCallTime = absl::Seconds(30);
// traind reads a file once before it sends it.
constexpr absl::Duration kFetchTime = absl::Minutes(10);
// A slower link counts as broken; what came stays.
constexpr double kLeastBytesPerSecond = 256 << 10;

// The context of one call, which `stop` ends.
class Call {
 public:
  Call(absl::Duration limit, TransferStop& stop) : stop_(stop) {
    context_.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(limit));
    stop_.OnStop([this] { context_.TryCancel(); });
  }
  ~Call() { stop_.OnStop(nullptr); }
  grpc::ClientContext* context() { return &context_; }

 private:
  TransferStop& stop_;
  grpc::ClientContext context_;
};

// A call that took too long may be tried again.
absl::Status StatusOf(const grpc::Status& status) {
  const absl::Status result = FromGrpc(status);
  if (!absl::IsDeadlineExceeded(result)) return result;
  return absl::UnavailableError("traind took too long");
}

absl::Duration SendTime(int64_t bytes) {
  return kCallTime + absl::Seconds(static_cast<double>(bytes) / kLeastBytesPerSecond);
}

class FileClient final : public RemoteFiles {
 public:
  FileClient(const std::vector<std::shared_ptr<grpc::Channel>>& channels,
             std::function<size_t()> current)
      : current_(std::move(current)) {
    for (const auto& channel : channels) stubs_.push_back(v1::FileService::NewStub(channel));
  }

  absl::StatusOr<bool> HasFile(const std::string& name, const std::string& content,
                               TransferStop& stop) override {
    v1::CompareFolderRequest request;
    request.set_name(name);
    request.set_content(content);
    v1::CompareFolderReply reply;
    Call call(kCallTime, stop);
    RETURN_IF_ERROR(StatusOf(stub().CompareFolder(call.context(), request, &reply)));
    return reply.shared();
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& job, const std::string& folder,
                                                TransferStop& stop) override {
    v1::ListFilesRequest request;
    request.set_job(job);
    request.set_folder(folder);
    v1::ListFilesReply reply;
    Call call(kCallTime, stop);
    RETURN_IF_ERROR(StatusOf(stub().ListFiles(call.context(), request, &reply)));
    return std::vector<std::string>(reply.paths().begin(), reply.paths().end());
  }

  absl::Status Fetch(const RemoteFile& file, const Destination& destination,
                     TransferStop& stop) override {
    v1::GetFileRequest request;
    request.set_zstd(true);
    request.set_job(file.job);
    if (file.path.empty()) {
      request.set_field(file.field);
    } else {
      request.set_path(file.path);
    }
    // The first message tells the digest, by which what an earlier call has brought is found.
    ASSIGN_OR_RETURN(const int64_t there, Receive(request, destination, stop));
    if (there == 0) return absl::OkStatus();
    request.set_offset(there);
    ASSIGN_OR_RETURN(const int64_t still, Receive(request, destination, stop));
    if (still == 0) return absl::OkStatus();
    return absl::UnavailableError("the file has changed while it was fetched");
  }

  absl::StatusOr<int64_t> Send(const std::string& job, const std::string& path,
                               const std::string& local, TransferStop& stop) override;
  absl::Status DropCheckpoints(const std::string& job, int64_t attempt,
                               const std::vector<std::string>& keep, TransferStop& stop) override {
    v1::DropCheckpointsRequest request;
    request.set_job(job);
    request.set_attempt(attempt);
    request.mutable_keep()->Add(keep.begin(), keep.end());
    v1::DropCheckpointsReply reply;
    Call call(kCallTime, stop);
    return StatusOf(stub().DropCheckpoints(call.context(), request, &reply));
  }

 private:
  // Returns 0 when the file is there, or the offset at which it has to be asked for again.
  absl::StatusOr<int64_t> Receive(const v1::GetFileRequest& request, const Destination& destination,
                                  TransferStop& stop);

  v1::FileService::Stub& stub() { return *stubs_[current_()]; }

  std::vector<std::unique_ptr<v1::FileService::Stub>> stubs_;
  const std::function<size_t()> current_;
};

absl::StatusOr<int64_t> FileClient::Receive(const v1::GetFileRequest& request,
                                            const Destination& destination, TransferStop& stop) {
  Call call(kFetchTime, stop);
  const auto parts = stub().GetFile(call.context(), request);
  v1::FilePart part;
  if (!parts->Read(&part)) {
    const absl::Status failed = StatusOf(parts->Finish());
    return failed.ok() ? absl::UnavailableError("traind sent nothing") : failed;
  }
  const FileDigest digest = {part.sha256(), part.size_bytes()};
  const auto give_up = [&] {
    call.context()->TryCancel();
    (void)parts->Finish();
  };
  const std::string path = destination({digest, part.folder(), part.table()});
  if (path.empty()) {
    give_up();
    return 0;
  }
  auto file = IncomingFile::Open(path, digest);
  if (!file.ok() || (*file)->offset() != request.offset()) {
    give_up();
    if (!file.ok()) return file.status();
    return (*file)->offset();
  }
  absl::Status taken;
  while (taken.ok() && parts->Read(&part)) {
    taken = (*file)->AppendPart(part.content(), part.zstd());
  }
  if (!taken.ok()) {
    give_up();
    return taken;
  }
  RETURN_IF_ERROR(StatusOf(parts->Finish()));
  RETURN_IF_ERROR((*file)->Commit());
  return 0;
}

absl::StatusOr<int64_t> FileClient::Send(const std::string& job, const std::string& path,
                                         const std::string& local, TransferStop& stop) {
  const int fd = open(local.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return ErrnoStatus(errno, local);
  const absl::Cleanup closer = [fd] { close(fd); };
  // Read by descriptor, because another file may have the name by now.
  ASSIGN_OR_RETURN(const FileDigest digest, DigestFile("/proc/self/fd/" + std::to_string(fd)));
  v1::PutFileRequest part;
  v1::OfferFileRequest& offer = *part.mutable_file();
  offer.set_job(job);
  offer.set_path(path);
  offer.set_size_bytes(digest.bytes);
  offer.set_sha256(digest.sha256);
  v1::OfferFileReply there;
  {
    Call call(SendTime(digest.bytes), stop);
    RETURN_IF_ERROR(StatusOf(stub().OfferFile(call.context(), offer, &there)));
  }
  if (there.present()) return 0;
  part.set_offset(there.offset());
  if (lseek(fd, there.offset(), SEEK_SET) < 0) return ErrnoStatus(errno, local);
  Call call(SendTime(digest.bytes), stop);
  v1::PutFileReply reply;
  const auto parts = stub().PutFile(call.context(), &reply);
  bool more = parts->Write(part);
  part.clear_file();
  std::string& content = *part.mutable_content();
  PartPacker packer;
  while (more) {
    content.resize(kPartBytes);
    const ssize_t got = read(fd, content.data(), content.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // a read that fails shows as missing bytes
    content.resize(static_cast<size_t>(got));
    if (there.zstd()) part.set_zstd(packer.Pack(content));
    more = parts->Write(part);
  }
  parts->WritesDone();
  RETURN_IF_ERROR(StatusOf(parts->Finish()));
  return digest.bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteFiles>> ConnectFiles(const std::string& addresses,
                                                          const ChannelSecurity& security,
                                                          std::function<size_t()> current) {
  ASSIGN_OR_RETURN(const auto channels, MakeCoordinatorChannels(addresses, security));
  return std::make_unique<FileClient>(channels, std::move(current));
}

}  // namespace traind::worker
