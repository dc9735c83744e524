#include "server/rpc/file_service.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "common/base/durable_file.h"
#include "common/publish/prediction_manifest.h"
#include "common/transfer/folder_pack.h"
#include "common/transfer/zstd_part.h"
#include "server/rpc/grpc_server.h"

namespace traind {
namespace {

constexpr char kTrain[] = "a,b\n1,2\n";

class FileServiceTest : public ::testing::Test {
 protected:
  FileServiceTest() {
    folder_ = testing::TempDir() + "/files.XXXXXX";
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    char* real = realpath(folder_.c_str(), nullptr);
    folder_ = real;
    free(real);
    Write("train.csv", kTrain);
    Write("state/tokens", "secret");
    auto job = std::make_shared<Job>();
    job->id = "j";
    job->spec_json = absl::StrCat(R"({"name": "j", "data": {"train": ")", folder_,
                                  R"(/train.csv", "target": "b"}})");
    jobs_["j"] = job;
    service_ = std::make_unique<GrpcFileService>(
        folder_ + "/state",
        [this](const std::string& id) {
          return jobs_.count(id) > 0 && !over_ ? jobs_[id] : nullptr;
        },
        absl::Milliseconds(200));
    server_ = GrpcServer::Listen("127.0.0.1:0", {service_.get()}).value();
    stub_ = v1::FileService::NewStub(grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials()));
  }

  void Write(const std::string& path, const std::string& bytes) {
    const std::string whole = folder_ + "/" + path;
    ASSERT_TRUE(MakeDirs(whole.substr(0, whole.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileDurably(whole, bytes).ok());
  }
  // Whether the Attempt's folder has a file of that size; 0: any file.
  bool HasFileOf(uintmax_t bytes) const {
    std::error_code error;
    for (const auto& file :
         std::filesystem::directory_iterator(folder_ + "/state/jobs/j/attempts/3", error)) {
      if (bytes == 0 || file.file_size(error) == bytes) return true;
    }
    return false;
  }
  void AwaitFileOf(uintmax_t bytes) const {
    const absl::Time end = absl::Now() + absl::Seconds(20);
    while (!HasFileOf(bytes) && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
    ASSERT_TRUE(HasFileOf(bytes));
  }
  bool There(const std::string& path) const {
    return access((folder_ + "/state/" + path).c_str(), F_OK) == 0;
  }

  grpc::StatusCode Get(const v1::GetFileRequest& request) {
    got_.clear();
    grpc::ClientContext context;
    const auto parts = stub_->GetFile(&context, request);
    packed_ = 0;
    for (v1::FilePart part; parts->Read(&part);) {
      if (!part.sha256().empty()) sha256_ = part.sha256();
      got_ += part.zstd() ? UnpackPart(part.content()).value() : part.content();
      packed_ += part.zstd() ? part.content().size() : 0;
    }
    return parts->Finish().error_code();
  }
  grpc::StatusCode GetField(const std::string& field, const std::string& job = "j",
                            int64_t offset = 0) {
    v1::GetFileRequest request;
    request.set_job(job);
    request.set_field(field);
    request.set_offset(offset);
    return Get(request);
  }
  grpc::StatusCode GetPath(const std::string& path) {
    v1::GetFileRequest request;
    request.set_job("j");
    request.set_path(path);
    return Get(request);
  }

  v1::OfferFileRequest Offer(const std::string& path, const std::string& bytes) {
    v1::OfferFileRequest offer;
    offer.set_job("j");
    offer.set_path(path);
    offer.set_size_bytes(static_cast<int64_t>(bytes.size()));
    offer.set_sha256(Sha256Hex(bytes));
    return offer;
  }
  // Returns what traind has of it, or -1 for all.
  int64_t OffsetOf(const v1::OfferFileRequest& offer) {
    grpc::ClientContext context;
    v1::OfferFileReply reply;
    const grpc::Status status = stub_->OfferFile(&context, offer, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply.present() ? -1 : reply.offset();
  }
  grpc::StatusCode Put(const v1::OfferFileRequest& offer, int64_t offset,
                       const std::string& content) {
    grpc::ClientContext context;
    v1::PutFileReply reply;
    const auto parts = stub_->PutFile(&context, &reply);
    v1::PutFileRequest part;
    *part.mutable_file() = offer;
    part.set_offset(offset);
    part.set_content(content);
    parts->Write(part);
    parts->WritesDone();
    return parts->Finish().error_code();
  }

  std::string folder_;
  std::map<std::string, std::shared_ptr<const Job>> jobs_;
  std::atomic<bool> over_{false};  // every Job is
  std::unique_ptr<GrpcFileService> service_;
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<v1::FileService::Stub> stub_;
  std::string got_, sha256_;
  size_t packed_ = 0;  // bytes of what came compressed
};

TEST_F(FileServiceTest, PartsAreCompressedForThoseWhoSayTheyMay) {
  std::string rows;
  for (int row = 0; row < 300000; ++row) absl::StrAppend(&rows, row % 9, ",0.25\n");
  Write("train.csv", rows);
  v1::GetFileRequest request;
  request.set_job("j");
  request.set_field("data.train");
  EXPECT_EQ(Get(request), grpc::StatusCode::OK);
  EXPECT_EQ(packed_, 0u);
  request.set_zstd(true);
  request.set_offset(1000);
  EXPECT_EQ(Get(request), grpc::StatusCode::OK);
  EXPECT_EQ(got_, rows.substr(1000));
  EXPECT_GT(packed_, 0u);
  EXPECT_LT(packed_, rows.size() / 10);
}

TEST_F(FileServiceTest, AFileThatTheSpecNamesIsSentFromAnyOffset) {
  EXPECT_EQ(GetField("data.train"), grpc::StatusCode::OK);
  EXPECT_EQ(got_, kTrain);
  EXPECT_EQ(sha256_, Sha256Hex(kTrain));
  EXPECT_EQ(GetField("data.train", "j", 4), grpc::StatusCode::OK);
  EXPECT_EQ(got_, std::string(kTrain).substr(4));
  EXPECT_EQ(GetField("data.train", "j", 100), grpc::StatusCode::OUT_OF_RANGE);
}

TEST_F(FileServiceTest, OtherFieldsAndJobsNameNoFile) {
  EXPECT_EQ(GetField("data.test"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(GetField("output"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(GetField("data.train", "over"), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(FileServiceTest, AFolderOfImagesAndATableOfThemAreSentAsPacks) {
  Write("photos/cat/1.png", "xy");
  Write("photos/list.csv", "file,kind\ncat/1.png,cat\ncat/none.png,cat\n");
  const auto images = [&](const std::string& path) {
    auto job = std::make_shared<Job>();
    job->id = "j";
    job->spec_json = absl::StrCat(R"({"data": {"train": ")", folder_, path, R"(", "image": {}}})");
    jobs_["j"] = job;
    return GetField("data.train");
  };
  EXPECT_EQ(images("/photos"), grpc::StatusCode::OK);
  EXPECT_EQ(got_, "traind-pack 1\n0 cat/\n2 cat/1.png\n0 list.csv\n\nxy");
  EXPECT_EQ(sha256_, Sha256Hex(got_));
  const std::string whole = got_;
  EXPECT_EQ(GetField("data.train", "j", 20), grpc::StatusCode::OK);
  EXPECT_EQ(got_, whole.substr(20));
  EXPECT_EQ(images("/photos/list.csv"), grpc::StatusCode::OK);
  EXPECT_EQ(got_,
            "traind-pack 1\n2 cat/1.png\n41 list.csv\n\nxy"
            "file,kind\ncat/1.png,cat\ncat/none.png,cat\n");
  EXPECT_EQ(images("/train.csv"), grpc::StatusCode::INVALID_ARGUMENT) << "it names no files";
}

// ---- Workers with tokens

TEST_F(FileServiceTest, FilesOfAnAttemptComeFromItsOwnWorkers) {
  auto job = std::make_shared<Job>(*jobs_["j"]);
  job->attempts.resize(2);
  job->attempts[0].id = 1;
  job->attempts[0].worker = "w1";
  job->attempts[1].id = 2;
  job->attempts[1].worker = "w2";
  job->attempts[1].others = {{"w3", {0}}};
  jobs_["j"] = job;
  std::string caller;  // has the token of this Worker
  service_->TakeFromOwnWorkers(
      [&caller](const grpc::ServerContextBase&, const std::string& worker) -> absl::Status {
        return worker == caller ? absl::OkStatus() : absl::PermissionDeniedError(worker);
      });
  const auto put = [&](const std::string& worker, const std::string& path) {
    caller = worker;
    return Put(Offer(path, "x"), 0, "x");
  };
  const std::string first = "jobs/j/attempts/1/oof.npy", second = "jobs/j/attempts/2/oof.npy";
  EXPECT_EQ(put("w2", first), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(put("w9", "jobs/j/floor/oof.npy"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_FALSE(There(first));
  EXPECT_EQ(put("w1", first), grpc::StatusCode::OK);
  EXPECT_EQ(put("w2", second), grpc::StatusCode::OK);
  EXPECT_EQ(put("w3", "jobs/j/attempts/2/rank1.log"), grpc::StatusCode::OK) << "of its gang";
  EXPECT_EQ(put("w2", "jobs/j/floor/oof.npy"), grpc::StatusCode::OK);
  EXPECT_EQ(put("w1", "jobs/j/program/fold-0-2.pack"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(put("w1", "jobs/j/program/fold-0-1.pack"), grpc::StatusCode::OK);
  EXPECT_EQ(put("w2", "jobs/j/program/fold-0-2.pack"), grpc::StatusCode::OK);
  EXPECT_FALSE(There("jobs/j/program/fold-0-1.pack")) << "a newer one is there";
  grpc::ClientContext offers, drops;
  caller = "w2";
  v1::OfferFileReply offered;
  EXPECT_EQ(stub_->OfferFile(&offers, Offer(first, "y"), &offered).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  v1::DropCheckpointsRequest drop;
  drop.set_job("j");
  drop.set_attempt(1);
  v1::DropCheckpointsReply dropped;
  EXPECT_EQ(stub_->DropCheckpoints(&drops, drop, &dropped).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

// ---- programs

class FileServiceProgramTest : public FileServiceTest {
 protected:
  FileServiceProgramTest() {
    auto job = std::make_shared<Job>();
    job->id = "j";
    job->spec_json = absl::StrCat(R"({"run": {"command": ["./run.sh"], "folder": ")", folder_,
                                  R"(/code", "results": ")", folder_, R"(/results"}})");
    job->attempts.resize(2);
    job->attempts[0].id = 2;
    job->attempts[0].ended_at = absl::UnixEpoch();
    job->attempts[1].id = 3;
    jobs_["j"] = job;
  }
  std::string Pack() {
    Write("left/sub/answer.csv", "id,y\n0,1\n");
    const std::string left = std::filesystem::canonical(folder_ + "/left").string();
    const auto pack = FolderPack::Open(left, {"sub/answer.csv"}, {}).value();
    return pack->Read(0, static_cast<size_t>(pack->bytes())).value();
  }
  std::string Answer() const {
    return ReadFile(folder_ + "/results/sub/answer.csv").value_or("none");
  }
};

TEST_F(FileServiceProgramTest, ItsFolderIsSentAsAPack) {
  Write("code/run.sh", "echo");
  Write("code/lib/a.py", "xy");
  Write("code/.git/config", "secret");
  std::filesystem::permissions(folder_ + "/code/run.sh", std::filesystem::perms::owner_all);
  EXPECT_EQ(GetField("run.folder"), grpc::StatusCode::OK);
  EXPECT_EQ(got_, "traind-pack 1\n0 lib/\n2 lib/a.py\n4x run.sh\n\nxyecho");
  EXPECT_EQ(sha256_, Sha256Hex(got_));
}

TEST_F(FileServiceProgramTest, WhatItLeavesGoesWhereTheUserWantsIt) {
  Write("results/sub/answer.csv", "of an earlier run");
  Write("results/other.csv", "of the user");
  const std::string bytes = Pack(), path = "jobs/j/attempts/3/results.pack";
  EXPECT_EQ(Put(Offer(path, bytes), 0, bytes), grpc::StatusCode::OK);
  EXPECT_EQ(Answer(), "id,y\n0,1\n");
  EXPECT_EQ(ReadFile(folder_ + "/results/other.csv").value_or("none"), "of the user");
  EXPECT_FALSE(There(path));
  EXPECT_FALSE(There(path + ".part"));
}

TEST_F(FileServiceProgramTest, WhatAnUploadedOneLeavesStaysWithItsJob) {
  auto job = std::make_shared<Job>(*jobs_["j"]);
  job->spec_json = absl::StrCat(R"({"run": {"command": ["./run.sh"], "folder": ")", folder_,
                                R"(/state/uploads/00ff/code"}})");
  jobs_["j"] = job;
  Write("state/jobs/j/results/other.csv", "of another fold");
  const std::string bytes = Pack(), path = "jobs/j/attempts/3/results.pack";
  EXPECT_EQ(Put(Offer(path, bytes), 0, bytes), grpc::StatusCode::OK);
  EXPECT_EQ(ReadFile(folder_ + "/state/jobs/j/results/sub/answer.csv").value_or("none"),
            "id,y\n0,1\n");
  EXPECT_TRUE(There("jobs/j/results/other.csv"));
  EXPECT_FALSE(There("uploads"));
  EXPECT_FALSE(There(path));
}

TEST_F(FileServiceProgramTest, AnAttemptThatIsOverChangesNoAnswer) {
  const std::string bytes = Pack(), path = "jobs/j/attempts/2/results.pack";
  EXPECT_EQ(Put(Offer(path, bytes), 0, bytes), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Answer(), "none");
}

TEST_F(FileServiceTest, AJobWithoutAProgramHasNoFolderOfResults) {
  auto job = std::make_shared<Job>(*jobs_["j"]);
  job->attempts.resize(1);
  job->attempts[0].id = 3;
  jobs_["j"] = job;
  Write("left/a", "x");
  const std::string left = std::filesystem::canonical(folder_ + "/left").string();
  const auto pack = FolderPack::Open(left, {"a"}, {}).value();
  const std::string bytes = pack->Read(0, static_cast<size_t>(pack->bytes())).value();
  EXPECT_EQ(Put(Offer("jobs/j/attempts/3/results.pack", bytes), 0, bytes),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(FileServiceTest, ModelsOfAnotherJobGoToTheOneThatUsesThem) {
  Write("state/jobs/over/attempts/4/model.json", "model");
  Write("state/jobs/over/prediction-2/manifest.json", "manifest");
  ASSERT_EQ(symlink("prediction-2", (folder_ + "/state/jobs/over/current").c_str()), 0);
  EXPECT_EQ(GetPath("jobs/over/attempts/4/model.json"), grpc::StatusCode::INVALID_ARGUMENT);
  auto serve = std::make_shared<Job>();
  serve->id = "j";
  serve->spec_json = R"({"serve": {"from": "over"}})";
  jobs_["j"] = serve;
  EXPECT_EQ(GetPath("jobs/over/attempts/4/model.json"), grpc::StatusCode::OK);
  EXPECT_EQ(got_, "model");
  EXPECT_EQ(GetPath("jobs/over/publish.lock"), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(GetPath("jobs/third/attempts/4/model.json"), grpc::StatusCode::INVALID_ARGUMENT);
  const v1::OfferFileRequest back = Offer("jobs/over/attempts/4/model.json", "x");
  EXPECT_EQ(Put(back, 0, "x"), grpc::StatusCode::INVALID_ARGUMENT);
  v1::ListFilesRequest list;
  list.set_job("j");
  list.set_folder("jobs/over");
  v1::ListFilesReply listed;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->ListFiles(&context, list, &listed).ok());
  ASSERT_EQ(listed.paths_size(), 1);
  EXPECT_EQ(listed.paths(0), "jobs/over/prediction-2/manifest.json");
}

TEST_F(FileServiceTest, APredictionThatCameBeforeTraindEndedIsTakenWhenItIsOfferedAgain) {
  PredictionManifest manifest;
  manifest.job = "j";
  manifest.metric = "rmse";
  manifest.prediction.quality = Quality::kFloor;
  manifest.prediction.number = 7;
  Write("made/manifest.json", EncodeManifest(manifest));
  Write("made/predictions.csv", "row,y\n0,1\n");
  const std::string made = std::filesystem::canonical(folder_ + "/made").string();
  const auto pack = FolderPack::Open(made, {"manifest.json", "predictions.csv"}, {}).value();
  const std::string bytes = pack->Read(0, static_cast<size_t>(pack->bytes())).value();
  const std::string path = "jobs/j/attempts/3/prediction.pack";
  Write("state/" + path, bytes);
  EXPECT_EQ(OffsetOf(Offer(path, bytes)), -1) << "it is there";
  EXPECT_EQ(ReadFile(folder_ + "/state/jobs/j/current/predictions.csv").value_or("none"),
            "row,y\n0,1\n");
  EXPECT_FALSE(There(path));
  EXPECT_FALSE(There(path + ".part"));
  // Sent once more, as the answer was lost: what stands, stands.
  EXPECT_EQ(Put(Offer(path, bytes), 0, bytes), grpc::StatusCode::OK);
  EXPECT_EQ(ReadStandingPrediction(folder_ + "/state", "j").value().number, 1);
}

TEST_F(FileServiceTest, AModuleHasTheDigestOfItsName) {
  EXPECT_EQ(Put(Offer("cache/12ab.pt", "x"), 0, "x"), grpc::StatusCode::INVALID_ARGUMENT);
  const std::string path = absl::StrCat("cache/", Sha256Hex("x"), ".pt");
  EXPECT_EQ(Put(Offer(path, "x"), 0, "x"), grpc::StatusCode::OK);
}

TEST_F(FileServiceTest, AFileThatBecameALinkIsNotSent) {
  const std::string path = folder_ + "/train.csv";
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_EQ(GetField("data.train"), grpc::StatusCode::NOT_FOUND);
  ASSERT_EQ(symlink((folder_ + "/state/tokens").c_str(), path.c_str()), 0);
  EXPECT_EQ(GetField("data.train"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(got_, "");
}

TEST_F(FileServiceTest, PathsThatLeadElsewhereAreRefused) {
  Write("state/jobs/j/folds.npy", "folds");
  EXPECT_EQ(GetPath("jobs/j/folds.npy"), grpc::StatusCode::OK);
  EXPECT_EQ(got_, "folds");
  for (const char* path : {"tokens", "/etc/passwd", "cache/../tokens", "jobs/j/../../tokens",
                           "jobs/other/folds.npy", "jobs/j/publish.lock", ""}) {
    EXPECT_EQ(GetPath(path), grpc::StatusCode::INVALID_ARGUMENT) << path;
    if (*path == '\0') continue;
    EXPECT_EQ(Put(Offer(path, "x"), 0, "x"), grpc::StatusCode::INVALID_ARGUMENT) << path;
  }
  ASSERT_EQ(symlink((folder_ + "/state/tokens").c_str(),
                    (folder_ + "/state/jobs/j/samples.json").c_str()),
            0);
  EXPECT_EQ(GetPath("jobs/j/samples.json"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Put(Offer("jobs/j/samples.json", "x"), 0, "x"), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(ReadFile(folder_ + "/state/tokens").value(), "secret");
}

TEST_F(FileServiceTest, ASendThatBrokeOffGoesOnWhereItStopped) {
  const std::string path = "jobs/j/attempts/3/oof.npy";
  const v1::OfferFileRequest offer = Offer(path, "hello world");
  EXPECT_EQ(OffsetOf(offer), 0);
  EXPECT_EQ(Put(offer, 0, "hello"), grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(There(path));
  EXPECT_EQ(OffsetOf(offer), 5);
  EXPECT_EQ(Put(offer, 3, "lo world"), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Put(offer, 5, " world"), grpc::StatusCode::OK);
  EXPECT_EQ(ReadFile(folder_ + "/state/" + path).value(), "hello world");
  EXPECT_EQ(OffsetOf(offer), -1);
}

TEST_F(FileServiceTest, AStalledSendIsTakenOver) {
  const std::string path = "jobs/j/attempts/3/oof.npy";
  const v1::OfferFileRequest offer = Offer(path, "hello world");
  grpc::ClientContext dead;
  v1::PutFileReply reply;
  const auto parts = stub_->PutFile(&dead, &reply);
  v1::PutFileRequest part;
  *part.mutable_file() = offer;
  part.set_content("hello");
  parts->Write(part);  // and then nothing, as over a dead connection
  // An offer that came before it would take the file away from it.
  AwaitFileOf(5);
  int64_t offset = 0;
  bool refused = false;
  for (const absl::Time end = absl::Now() + absl::Seconds(20); absl::Now() < end;) {
    grpc::ClientContext context;
    v1::OfferFileReply there;
    const grpc::Status status = stub_->OfferFile(&context, offer, &there);
    refused |= status.error_code() == grpc::StatusCode::UNAVAILABLE;
    offset = there.offset();
    if (status.ok() && offset > 0) break;
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_TRUE(refused) << "two calls may not write to one file";
  ASSERT_EQ(offset, 5);
  EXPECT_EQ(Put(offer, 5, " world"), grpc::StatusCode::OK);
  EXPECT_FALSE(parts->Finish().ok());
}

TEST_F(FileServiceTest, AFileWithAnotherDigestOrOfAJobThatIsOverDoesNotAppear) {
  const std::string path = "jobs/j/attempts/3/oof.npy";
  EXPECT_EQ(Put(Offer(path, "hello"), 0, "hallo"), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Put(Offer(path, "hello"), 0, "hello world"), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_FALSE(There(path));
  jobs_.clear();
  EXPECT_EQ(Put(Offer(path, "hello"), 0, "hello"), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_FALSE(There(path));
}

TEST_F(FileServiceTest, NothingIsLeftOfASendWhoseJobEndsMeanwhile) {
  for (const bool all : {true, false}) {
    v1::PutFileRequest part;
    *part.mutable_file() = Offer("jobs/j/attempts/3/oof.npy", "hello world");
    part.set_content("hello");
    grpc::ClientContext context;
    v1::PutFileReply reply;
    const auto parts = stub_->PutFile(&context, &reply);
    parts->Write(part);
    AwaitFileOf(5);
    over_ = true;
    part.set_content(" world");
    if (all) parts->Write(part);
    parts->WritesDone();
    EXPECT_EQ(parts->Finish().error_code(), grpc::StatusCode::FAILED_PRECONDITION);
    EXPECT_FALSE(HasFileOf(0));
    over_ = false;
  }
}

TEST_F(FileServiceTest, NothingIsLeftOfAnOfferWhoseJobEndsBeforeItsFirstPart) {
  const v1::OfferFileRequest offer = Offer("jobs/j/attempts/3/oof.npy", "hello world");
  for (const bool by_put : {true, false}) {
    EXPECT_EQ(OffsetOf(offer), 0);
    EXPECT_TRUE(HasFileOf(0));
    over_ = true;
    if (by_put) {
      EXPECT_EQ(Put(offer, 0, "hello world"), grpc::StatusCode::FAILED_PRECONDITION);
    } else {
      grpc::ClientContext context;
      v1::OfferFileReply reply;
      EXPECT_EQ(stub_->OfferFile(&context, offer, &reply).error_code(),
                grpc::StatusCode::FAILED_PRECONDITION);
    }
    EXPECT_FALSE(HasFileOf(0));
    over_ = false;
  }
}

TEST_F(FileServiceTest, OnlyFilesThatTravelAreListed) {
  Write("state/jobs/j/folds.npy", "folds");
  Write("state/jobs/j/publish.lock", "");
  Write("state/jobs/j/floor/oof.npy", "floor");
  const auto list = [this](const std::string& folder) {
    v1::ListFilesRequest request;
    request.set_job("j");
    request.set_folder(folder);
    v1::ListFilesReply reply;
    grpc::ClientContext context;
    EXPECT_TRUE(stub_->ListFiles(&context, request, &reply).ok());
    return std::vector<std::string>(reply.paths().begin(), reply.paths().end());
  };
  EXPECT_EQ(list("jobs/j"), std::vector<std::string>{"jobs/j/folds.npy"});
  EXPECT_EQ(list("jobs/j/../.."), std::vector<std::string>());
  EXPECT_EQ(list(".."), std::vector<std::string>());
}

TEST_F(FileServiceTest, CheckpointsThatTheWorkerRemovedGoHereToo) {
  for (const char* name : {"checkpoint-1.json", "checkpoint-2.json", "oof.npy"}) {
    Write(absl::StrCat("state/jobs/j/attempts/3/", name), "x");
  }
  v1::DropCheckpointsRequest request;
  request.set_job("j");
  request.set_attempt(3);
  request.add_keep("checkpoint-2.json");
  v1::DropCheckpointsReply reply;
  grpc::ClientContext context;
  ASSERT_TRUE(stub_->DropCheckpoints(&context, request, &reply).ok());
  EXPECT_FALSE(There("jobs/j/attempts/3/checkpoint-1.json"));
  EXPECT_TRUE(There("jobs/j/attempts/3/checkpoint-2.json"));
  EXPECT_TRUE(There("jobs/j/attempts/3/oof.npy"));
}

TEST_F(FileServiceTest, AFolderIsComparedByAProbeAlone) {
  const auto shared = [this](const std::string& name, const std::string& content,
                             grpc::StatusCode expected) {
    v1::CompareFolderRequest request;
    request.set_name(name);
    request.set_content(content);
    v1::CompareFolderReply reply;
    grpc::ClientContext context;
    EXPECT_EQ(stub_->CompareFolder(&context, request, &reply).error_code(), expected) << name;
    return reply.shared();
  };
  Write("state/probe-0a1b", "content");
  EXPECT_TRUE(shared("probe-0a1b", "content", grpc::StatusCode::OK));
  EXPECT_FALSE(shared("probe-0a1b", "other", grpc::StatusCode::OK));
  EXPECT_FALSE(shared("probe-ffff", "content", grpc::StatusCode::OK));
  EXPECT_FALSE(shared("tokens", "secret", grpc::StatusCode::INVALID_ARGUMENT));
  EXPECT_FALSE(shared("probe-../tokens", "secret", grpc::StatusCode::INVALID_ARGUMENT));
}

}  // namespace
}  // namespace traind
