// Files for Workers whose state folder is not traind's: proto/file_service.proto.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/transfer/folder_pack.h"
#include "proto/file_service.grpc.pb.h"
#include "server/domain/job.h"
#include "server/rpc/receivers.h"

namespace traind {

// Gives out and takes the files of Jobs that are not over, and gives out models of those that are.
// Threads: safe. A call keeps its thread while it reads or writes a file.
class GrpcFileService final : public v1::FileService::Service {
 public:
  // Returns the Job, which may be over, or null if it is unknown.
  using FindJob = std::function<std::shared_ptr<const Job>(const std::string& id)>;

  // stall: of Receivers.
  GrpcFileService(std::string state_dir, FindJob find_job, absl::Duration stall = Receivers::kStall)
      : state_dir_(std::move(state_dir)), find_job_(std::move(find_job)), receivers_(stall) {}
  // The files of Jobs lie in the artifacts' folder, and the state folder has links to it. A Worker
  // may have either.
  GrpcFileService(std::string artifacts, FindJob find_job, std::string state_dir)
      : GrpcFileService(std::move(artifacts), std::move(find_job)) {
    linked_from_ = std::move(state_dir);
  }

  // Whether the caller may act for that Worker.
  using ActsFor = std::function<absl::Status(const grpc::ServerContextBase& context,
                                             const std::string& worker)>;
  // From now on files come from Workers with Attempts of the Job alone, and those of an Attempt
  // from its own. Call it before the first call.
  void TakeFromOwnWorkers(ActsFor acts_for) { acts_for_ = std::move(acts_for); }

  grpc::Status CompareFolder(grpc::ServerContext* context, const v1::CompareFolderRequest* request,
                             v1::CompareFolderReply* reply) override;
  grpc::Status ListFiles(grpc::ServerContext* context, const v1::ListFilesRequest* request,
                         v1::ListFilesReply* reply) override;
  grpc::Status GetFile(grpc::ServerContext* context, const v1::GetFileRequest* request,
                       grpc::ServerWriter<v1::FilePart>* parts) override;
  grpc::Status OfferFile(grpc::ServerContext* context, const v1::OfferFileRequest* request,
                         v1::OfferFileReply* reply) override;
  grpc::Status PutFile(grpc::ServerContext* context,
                       grpc::ServerReader<v1::PutFileRequest>* requests,
                       v1::PutFileReply* reply) override;
  grpc::Status DropCheckpoints(grpc::ServerContext* context,
                               const v1::DropCheckpointsRequest* request,
                               v1::DropCheckpointsReply* reply) override;

 private:
  // The Job; FailedPrecondition: it is over, or unknown.
  absl::StatusOr<std::shared_ptr<const Job>> Running(const std::string& job) const;
  absl::Status CheckRuns(const std::string& job) const { return Running(job).status(); }
  // Makes what a Worker's Rank has predicted, or its program has left, the Job's answer, if the
  // file is a pack of it; then the file is gone. pack: relative to the state folder.
  absl::Status Take(const std::string& job, const std::string& pack);
  // folder: the files of the pack.
  absl::Status TakeResults(const std::string& job, const std::string& pack,
                           const std::string& folder) const;
  // Whether a Worker may fetch it: it is the Job's, or of the Job whose models that one uses.
  absl::Status CheckGoes(const std::string& job, const std::string& path) const;
  // Whether a Worker may send it. FailedPrecondition: the Job is over; what came of it is removed.
  absl::Status CheckComes(const v1::OfferFileRequest& file) const;
  // PermissionDenied: another Worker's Attempt writes it, or may remove it.
  absl::Status CheckWriter(const grpc::ServerContextBase& context, const std::string& job,
                           const std::string& path) const;
  // Returns the absolute path of a file of the state folder that a Worker asks for.
  absl::StatusOr<std::string> PathOf(const v1::GetFileRequest& request) const;
  // A file that a spec names.
  struct DataFile {
    std::string path;
    bool program = false;              // path is the folder of a program
    std::vector<std::string> columns;  // of media (MediaColumns)
    bool folders = false;              // of ListMediaFiles
  };
  absl::StatusOr<DataFile> FindData(const std::string& job, const std::string& field) const;
  absl::Status Send(const v1::GetFileRequest& request,
                    grpc::ServerWriter<v1::FilePart>& parts) const;
  static absl::Status SendFile(const std::string& path, const v1::GetFileRequest& request,
                               grpc::ServerWriter<v1::FilePart>& parts);
  // table: of RemoteContent.
  static absl::Status SendFolder(FolderPack& pack, const std::string& table,
                                 const v1::GetFileRequest& request,
                                 grpc::ServerWriter<v1::FilePart>& parts);
  absl::Status Offer(const grpc::ServerContextBase& context, const v1::OfferFileRequest& request,
                     v1::OfferFileReply& reply);
  absl::Status ReceiveFile(grpc::ServerContext* context,
                           grpc::ServerReader<v1::PutFileRequest>& requests);
  std::string InState(const std::string& path) const { return state_dir_ + "/" + path; }

  const std::string state_dir_;
  std::string linked_from_;  // empty: no other folder
  const FindJob find_job_;
  ActsFor acts_for_;  // null: anybody may
  Receivers receivers_;
  std::mutex taking_;  // held while an answer is taken
};

}  // namespace traind
