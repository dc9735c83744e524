// Files between a Worker's own state folder and traind's.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "common/plain/plain_json.h"
#include "proto/plain/job.h"
#include "worker/daemon/file_carrier.h"
#include "worker/daemon/own_folder.h"

namespace traind::worker {
namespace {

// traind's files, in memory.
class FakeRemote final : public RemoteFiles {
 public:
  absl::StatusOr<bool> HasFile(const std::string& name, const std::string& content,
                               TransferStop&) override {
    const auto found = ReadFile(shared_dir_ + "/" + name);
    return found.ok() && *found == content;
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string&, const std::string& folder,
                                                TransferStop&) override {
    std::vector<std::string> paths;
    for (const auto& [path, bytes] : files_) {
      if (path.substr(0, path.rfind('/')) == folder) paths.push_back(path);
    }
    if (gone_.substr(0, gone_.rfind('/')) == folder) paths.push_back(gone_);
    return paths;
  }
  absl::Status Fetch(const RemoteFile& file, const Destination& destination,
                     TransferStop& stop) override {
    if (hangs_) return Hang(stop);
    const auto found = files_.find(file.path.empty() ? file.field : file.path);
    if (found == files_.end()) return absl::NotFoundError(file.path + file.field);
    const std::string& bytes = found->second;
    const bool folder = bytes.rfind("traind-pack", 0) == 0;
    const std::string path = destination({{Sha256Hex(bytes), static_cast<int64_t>(bytes.size())},
                                          folder,
                                          folder ? table_ : std::string()});
    if (path.empty()) return absl::OkStatus();
    ++fetched_;
    EXPECT_TRUE(MakeDirs(path.substr(0, path.rfind('/'))).ok());
    return WriteFileDurably(path, bytes);
  }
  absl::StatusOr<int64_t> Send(const std::string&, const std::string& path,
                               const std::string& local, TransferStop& stop) override {
    if (failures_-- > 0) return absl::UnavailableError("traind is away");
    if (packs_hang_ && absl::EndsWith(path, ".pack")) {
      ++hanging_;
      const absl::Status stopped = Hang(stop);
      --hanging_;
      return stopped;
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    sent_.push_back(path);
    files_[path] = ReadFile(local).value();
    ++sends_;
    return static_cast<int64_t>(files_[path].size());
  }
  absl::Status DropCheckpoints(const std::string&, int64_t, const std::vector<std::string>& keep,
                               TransferStop&) override {
    kept_ = keep;
    return absl::OkStatus();
  }

  std::string shared_dir_ = "/nowhere";
  std::map<std::string, std::string> files_;
  std::string table_;  // of packs
  std::string gone_;   // is listed, and then no more there
  std::vector<std::string> sent_, kept_;
  int fetched_ = 0;
  std::atomic<int> sends_{0};
  std::atomic<bool> packs_hang_{false};  // and are stopped
  std::atomic<int> hanging_{0};
  std::atomic<int> failures_{0};
  bool hangs_ = false;

 private:
  std::mutex mutex_;  // held while a file is taken
  static absl::Status Hang(TransferStop& stop) {
    std::mutex mutex;
    std::condition_variable stopped;
    bool over = false;
    stop.OnStop([&] {
      const std::lock_guard<std::mutex> lock(mutex);
      over = true;
      stopped.notify_all();
    });
    std::unique_lock<std::mutex> lock(mutex);
    stopped.wait(lock, [&] { return over; });
    lock.unlock();
    stop.OnStop(nullptr);
    return absl::CancelledError("stopped");
  }
};

class CarrierTest : public ::testing::Test {
 protected:
  CarrierTest() {
    dir_ = testing::TempDir() + "/carrier.XXXXXX";
    EXPECT_NE(mkdtemp(dir_.data()), nullptr);
    auto remote = std::make_unique<FakeRemote>();
    remote_ = remote.get();
    carrier_ = std::make_unique<FileCarrier>(dir_, std::move(remote), int64_t{1} << 30);
    task_.attempt = 1;
    task_.job = "j";
    task_.kind = TaskKind::kTrain;
    task_.spec_json = "{}";
  }
  FileCarrier::Result Await() {
    while (true) {
      auto results = carrier_->results().TakeAll();
      if (!results.empty()) return std::move(results.front());
      pollfd news = {carrier_->results().fd(), POLLIN, 0};
      EXPECT_GT(poll(&news, 1, 20'000), 0) << "nothing came";
    }
  }
  void Write(const std::string& path, const std::string& bytes) {
    const std::string whole = dir_ + "/" + path;
    ASSERT_TRUE(MakeDirs(whole.substr(0, whole.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileDurably(whole, bytes).ok());
  }

  std::string dir_;
  FakeRemote* remote_ = nullptr;
  std::unique_ptr<FileCarrier> carrier_;
  TaskStart task_;
};

TEST_F(CarrierTest, AFolderIsSharedWhenTraindSeesANewFileInIt) {
  carrier_->Compare();
  EXPECT_FALSE(Await().shared);
  remote_->shared_dir_ = dir_;
  carrier_->Compare();
  EXPECT_TRUE(Await().shared);
}

TEST_F(CarrierTest, PrepareGetsTheDataFilesOnce) {
  task_.kind = TaskKind::kPrepare;
  task_.spec_json = R"({"name": "j", "data": {"train": "/far/a.csv", "test": "/far/b.csv"}})";
  remote_->files_ = {{"data.train", "1,2"}, {"data.test", "3"}};
  carrier_->Bring(task_);
  const FileCarrier::Result result = Await();
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.bytes, 4);
  const std::string train = dir_ + "/" + InputPath(Sha256Hex("1,2"), "a.csv");
  EXPECT_EQ(ReadFile(train).value(), "1,2");
  EXPECT_NE(result.spec_json.find(train), std::string::npos) << result.spec_json;
  EXPECT_EQ(result.spec_json.find("/far/"), std::string::npos) << result.spec_json;
  carrier_->Bring(task_);
  const FileCarrier::Result again = Await();
  EXPECT_TRUE(again.status.ok());
  EXPECT_EQ(again.bytes, 0);
  EXPECT_EQ(remote_->fetched_, 2) << "the second time they were there";
}

TEST_F(CarrierTest, PrepareGetsAFolderOfImagesOnce) {
  task_.kind = TaskKind::kPrepare;
  task_.spec_json = R"({"name": "j", "data": {"train": "/far/photos", "image": {}}})";
  const std::string pack = "traind-pack 1\n2 cat/1.png\n0 dog/\n\nxy";
  remote_->files_ = {{"data.train", pack}};
  for (int round = 0; round < 2; ++round) {
    carrier_->Bring(task_);
    const FileCarrier::Result result = Await();
    ASSERT_TRUE(result.status.ok()) << result.status;
    const std::string folder = dir_ + "/" + InputPath(Sha256Hex(pack), "folder-photos");
    EXPECT_NE(result.spec_json.find("\"" + folder + "\""), std::string::npos) << result.spec_json;
    EXPECT_EQ(ReadFile(folder + "/cat/1.png").value_or("none"), "xy");
    EXPECT_EQ(result.names.front(), std::make_pair(folder, std::string("/far/photos")));
    EXPECT_EQ(remote_->fetched_, 1) << "the second time it was there";
  }
}

TEST_F(CarrierTest, ATableOfImagesComesWithThem) {
  task_.kind = TaskKind::kPrepare;
  task_.spec_json = R"({"name": "j", "data": {"train": "/far/x/t.csv", "image": {}}})";
  const std::string pack = "traind-pack 1\n2 t.csv\n\nxy";
  remote_->files_ = {{"data.train", pack}};
  remote_->table_ = "t.csv";
  carrier_->Bring(task_);
  const FileCarrier::Result result = Await();
  ASSERT_TRUE(result.status.ok()) << result.status;
  const std::string folder = dir_ + "/" + InputPath(Sha256Hex(pack), "folder-x");
  EXPECT_NE(result.spec_json.find("\"" + folder + "/t.csv\""), std::string::npos);
  EXPECT_EQ(ReadFile(folder + "/t.csv").value_or("none"), "xy");
  EXPECT_EQ(result.names, (PathNames{{folder + "/t.csv", "/far/x/t.csv"}, {folder, "/far/x"}}));
}

TEST_F(CarrierTest, AFoldGetsItsImagesAndTheUsersModule) {
  task_.table = "cache/t.table";
  task_.spec_json = R"({"data": {"image": {}}, "model": {"script": {"sha256": "12ab"}}})";
  remote_->files_ = {
      {"cache/t.table", "table"}, {"cache/t.images", "pixels"}, {"cache/12ab.pt", "module"}};
  carrier_->Bring(task_);
  const FileCarrier::Result result = Await();
  ASSERT_TRUE(result.status.ok()) << result.status;
  for (const auto& [path, bytes] : remote_->files_) {
    EXPECT_EQ(ReadFile(dir_ + "/" + path).value_or("none"), bytes) << path;
  }
}

TEST_F(CarrierTest, ModelsOfAnotherJobComeWithoutWhatTheyHaveAnswered) {
  task_.kind = TaskKind::kServe;
  task_.spec_json =
      R"({"serve": {"from": "k", "models": {"models": [{"path": "jobs/k/attempts/4"}]}}})";
  const std::string spec = R"({\"model\": {\"script\": {\"sha256\": \"12ab\"}}})";
  remote_->files_ = {
      {"jobs/k/attempts/4/model.json", absl::StrCat(R"({"model": {"spec": ")", spec, R"("}})")},
      {"jobs/k/attempts/4/checkpoint-9.json", "manifest"},
      {"jobs/k/attempts/4/oof.npy", "answers"},
      {"jobs/k/attempts/4/rank0.log", "log"},
      {"jobs/k/floor/floor.json", "floor"},
      {"cache/12ab.pt", "module"}};
  remote_->gone_ = "jobs/k/attempts/4/checkpoint-8.json";  // that Job still trains
  carrier_->Bring(task_);
  const FileCarrier::Result result = Await();
  ASSERT_TRUE(result.status.ok()) << result.status;
  for (const char* path :
       {"jobs/k/attempts/4/checkpoint-9.json", "jobs/k/floor/floor.json", "cache/12ab.pt"}) {
    EXPECT_EQ(ReadFile(dir_ + "/" + path).value_or("none"), remote_->files_[path]) << path;
  }
  EXPECT_EQ(remote_->fetched_, 4);
}

TEST_F(CarrierTest, APrepareSendsDecodedVolumesAndWeights) {
  const std::string spec =
      R"({"data": {"volume": {}}, "model": {"pretrained": {"sha256": "12ab"}}})";
  for (const char* path : {"cache/t.table", "cache/t.volumes", "cache/12ab.safetensors"}) {
    Write(path, "x");
  }
  carrier_->Send({1, "j", TaskKind::kPrepare, "cache/t.table", false, spec});
  EXPECT_TRUE(Await().status.ok());
  EXPECT_EQ(remote_->sent_, (std::vector<std::string>{"cache/t.table", "cache/t.volumes",
                                                      "cache/12ab.safetensors"}));
}

TEST_F(CarrierTest, AFoldGetsItsTableTheFoldsAndItsCheckpoints) {
  task_.table = "cache/t.table";
  task_.resume = "jobs/j/attempts/4/checkpoint-9.json";
  remote_->files_ = {{"cache/t.table", "table"},
                     {"jobs/j/folds.npy", "folds"},
                     {"jobs/j/attempts/4/checkpoint-9.json", "manifest"},
                     {"jobs/j/attempts/4/checkpoint-9.safetensors", "weights"},
                     {"jobs/j/attempts/4/rank0.log", "log"}};
  carrier_->Bring(task_);
  const FileCarrier::Result result = Await();
  ASSERT_TRUE(result.status.ok()) << result.status;
  for (const char* path :
       {"cache/t.table", "jobs/j/folds.npy", "jobs/j/attempts/4/checkpoint-9.json",
        "jobs/j/attempts/4/checkpoint-9.safetensors"}) {
    EXPECT_EQ(ReadFile(dir_ + "/" + path).value_or("none"), remote_->files_[path]) << path;
  }
  EXPECT_EQ(remote_->fetched_, 4);
  EXPECT_EQ(result.bytes, 25);
}

TEST_F(CarrierTest, AListedPathThatLeadsElsewhereIsRefused) {
  task_.table = "cache/../../t.table";
  remote_->files_ = {{"cache/../../t.table", "table"}};
  carrier_->Bring(task_);
  EXPECT_TRUE(absl::IsInvalidArgument(Await().status));
}

TEST_F(CarrierTest, WhatAnAttemptWroteIsSentOnceAndManifestsLast) {
  Write("jobs/j/attempts/1/checkpoint-3.json", "manifest");
  Write("jobs/j/attempts/1/checkpoint-3.safetensors", "weights");
  Write("jobs/j/attempts/1/rank0.log", "log");
  Write("jobs/j/attempts/1/oof.npy.tmp-1-1", "half");
  Write("jobs/j/floor/oof.npy", "of another");
  remote_->failures_ = 2;
  const SendRequest request = {1, "j", TaskKind::kTrain, "", false};
  carrier_->Send(request);
  const FileCarrier::Result sent = Await();
  EXPECT_TRUE(sent.status.ok());
  EXPECT_EQ(sent.bytes, 15) << "each file once, however often it was tried";
  EXPECT_EQ(remote_->sent_, (std::vector<std::string>{"jobs/j/attempts/1/checkpoint-3.safetensors",
                                                      "jobs/j/attempts/1/checkpoint-3.json"}));
  EXPECT_EQ(remote_->kept_.size(), 2u);
  Write("jobs/j/attempts/1/oof.npy", "out of fold");
  carrier_->Send({1, "j", TaskKind::kTrain, "", true});
  EXPECT_TRUE(Await().status.ok());
  EXPECT_EQ(remote_->sent_.size(), 4u);
}

constexpr char kProgramSpec[] =
    R"({"run": {"command": ["./run.sh"], "folder": "/home/ann/code", "results": "/home/ann/out",
        "environment": {"PATH": "/home/ann/bin"}}})";

TEST_F(CarrierTest, AProgramGetsItsFolderAndAPlaceForWhatItLeaves) {
  remote_->files_["run.folder"] = "traind-pack 1\n4x run.sh\n\necho";
  task_.spec_json = kProgramSpec;
  task_.model = "program";
  task_.table = "jobs/j";
  carrier_->Bring(task_);
  const FileCarrier::Result brought = Await();
  ASSERT_TRUE(brought.status.ok()) << brought.status;
  const auto spec = plain::FromJson<plain::JobSpec>(brought.spec_json).value();
  EXPECT_EQ(ReadFile(spec.run->folder + "/run.sh").value_or("none"), "echo");
  EXPECT_EQ(access((spec.run->folder + "/run.sh").c_str(), X_OK), 0);
  EXPECT_EQ(spec.run->results, dir_ + "/jobs/j/attempts/1/results");
  EXPECT_EQ(spec.run->environment.at("PATH"), absl::StrCat("/home/ann/bin:", getenv("PATH")));
  const PathNames names = {{spec.run->folder, "/home/ann/code"},
                           {spec.run->folder, "/home/ann/code"},
                           {spec.run->results, "/home/ann/out"}};
  EXPECT_EQ(brought.names, names);
}

TEST_F(CarrierTest, AnUploadedProgramLeavesItsFilesInTheAttemptsFolderHereToo) {
  remote_->files_["run.folder"] = "traind-pack 1\n4x run.sh\n\necho";
  task_.spec_json = R"({"run": {"command": ["./run.sh"], "folder": "/srv/uploads/00ff/code"}})";
  task_.model = "program";
  task_.table = "jobs/j";
  carrier_->Bring(task_);
  const FileCarrier::Result brought = Await();
  ASSERT_TRUE(brought.status.ok()) << brought.status;
  const auto spec = plain::FromJson<plain::JobSpec>(brought.spec_json).value();
  EXPECT_EQ(spec.run->results, dir_ + "/jobs/j/attempts/1/results");
  ASSERT_FALSE(brought.names.empty());
  EXPECT_EQ(brought.names.back().second, "./jobs/j/results") << "as its user is told of it";
}

TEST_F(CarrierTest, FoldsOfAProgramReadWhatWasPreparedThoughResultsCameToItsFolder) {
  const std::string before = "traind-pack 1\n4x run.sh\n\necho";
  remote_->files_["run.folder"] = before;
  task_.kind = TaskKind::kPrepare;
  task_.spec_json = kProgramSpec;
  const auto folder = [&] {
    carrier_->Bring(task_);
    return plain::FromJson<plain::JobSpec>(Await().spec_json).value().run->folder;
  };
  const std::string prepared = folder();
  remote_->files_["run.folder"] = "traind-pack 1\n2 answer.csv\n4x run.sh\n\n42echo";
  task_.kind = TaskKind::kTrain;
  task_.model = "program";
  task_.table = "jobs/j";
  EXPECT_EQ(folder(), prepared);
  EXPECT_EQ(remote_->fetched_, 1);
  std::filesystem::remove_all(prepared);
  EXPECT_NE(folder(), prepared) << "it made room";
  task_.job = "other";
  EXPECT_NE(folder(), prepared);
}

TEST_F(CarrierTest, WhatAProgramLeavesIsSentWhenItChanges) {
  const SendRequest request = {1, "j", TaskKind::kTrain, "", false};
  const std::string pack = "jobs/j/attempts/1/results.pack";
  Write("jobs/j/attempts/1/results.json", "{}");
  Write("jobs/j/attempts/1/results/fold-0/answer.csv", "first");
  const auto sent = [&] {
    remote_->sent_.clear();
    carrier_->Send(request);
    EXPECT_TRUE(Await().status.ok());
    return remote_->sent_;
  };
  EXPECT_EQ(sent(), (std::vector<std::string>{pack, "jobs/j/attempts/1/results.json"}));
  EXPECT_EQ(remote_->files_[pack], "traind-pack 1\n5 fold-0/answer.csv\n\nfirst");
  EXPECT_TRUE(sent().empty());
  Write("jobs/j/attempts/1/results/fold-0/answer.csv", "other");
  EXPECT_EQ(sent(), std::vector<std::string>{pack});
  EXPECT_EQ(remote_->files_[pack], "traind-pack 1\n5 fold-0/answer.csv\n\nother");
  // An inode's number comes again soon, and the size may be the same.
  std::ofstream(dir_ + "/jobs/j/attempts/1/results/fold-0/answer.csv") << "third";
  EXPECT_EQ(sent(), std::vector<std::string>{pack});
}

TEST_F(CarrierTest, AProgramsCheckpointsAreSentOnceAndComeToTheNextAttempt) {
  const std::string pack = "jobs/j/program/fold-0-1.pack";
  SendRequest request = {1, "j", TaskKind::kTrain, "", false};
  request.program_pack = pack;
  const auto await = [this](int sends) {
    for (int i = 0; i < 2000 && remote_->sends_ < sends; ++i) usleep(10'000);
    EXPECT_EQ(remote_->sends_, sends);
  };
  carrier_->SendProgramPack(request);  // there is none
  Write(pack, "one");
  carrier_->SendProgramPack(request);
  await(1);
  carrier_->SendProgramPack(request);  // nothing is new
  // The last one goes when the Attempt is over, however soon after the one before.
  Write(pack, "other");
  carrier_->SendProgramPack(request);
  carrier_->Finish(1, {"j"});
  await(2);
  EXPECT_EQ(remote_->sent_, (std::vector<std::string>{pack, pack}));
  EXPECT_EQ(remote_->files_[pack], "other");

  remote_->files_["run.folder"] = "traind-pack 1\n4x run.sh\n\necho";
  task_.attempt = 3;
  task_.spec_json = kProgramSpec;
  task_.model = "program";
  task_.table = "jobs/j";
  std::filesystem::remove(dir_ + "/" + pack);
  Write("jobs/j/program/fold-0/attempt", "1");
  const auto bring = [&] {
    carrier_->Bring(task_);
    const FileCarrier::Result brought = Await();
    EXPECT_TRUE(brought.status.ok()) << brought.status;
    return ReadFile(dir_ + "/" + pack).value_or("none");
  };
  EXPECT_EQ(bring(), "none") << "the folder here is as new";
  Write("jobs/j/program/fold-0/attempt", "0");
  EXPECT_EQ(bring(), "other");
}

TEST_F(CarrierTest, AProgramsCheckpointsKeepThreadsFreeAndLetTheLastFilesGoFirst) {
  const auto request = [](int64_t attempt) {
    SendRequest last = {attempt, "j", TaskKind::kTrain, "", /*with_log=*/true};
    last.program_pack = absl::StrCat("jobs/j/program/fold-", attempt, "-", attempt, ".pack");
    return last;
  };
  const auto await = [](const std::atomic<int>& count, int value) {
    for (int i = 0; i < 2000 && count != value; ++i) usleep(10'000);
    EXPECT_EQ(count, value);
  };
  remote_->packs_hang_ = true;
  for (const int64_t attempt : {1, 2, 3, 4}) {
    Write(request(attempt).program_pack, "state");
    carrier_->SendProgramPack(request(attempt));
  }
  await(remote_->hanging_, FileCarrier::kThreads / 2);
  Write("jobs/j/attempts/1/oof.npy", "answer");
  carrier_->Send(request(1));
  EXPECT_TRUE(Await().status.ok());
  EXPECT_EQ(remote_->files_["jobs/j/attempts/1/oof.npy"], "answer");
  await(remote_->hanging_, FileCarrier::kThreads / 2);  // another one has its place
  remote_->packs_hang_ = false;
  for (const int64_t attempt : {1, 2, 3, 4}) {
    carrier_->Send(request(attempt));  // has nothing to send but breaks off what hangs
    EXPECT_TRUE(Await().status.ok());
    carrier_->Finish(attempt, {"j"});
  }
  await(remote_->sends_, 5);
  for (const int64_t attempt : {1, 2, 3, 4}) {
    EXPECT_EQ(remote_->files_[request(attempt).program_pack], "state") << attempt;
  }
}

TEST_F(CarrierTest, APrepareSendsTheTableTheFoldsAndTheFloor) {
  Write("cache/t.table", "table");
  Write("cache/other.table", "of another Job");
  Write("jobs/j/folds.npy", "folds");
  Write("jobs/j/floor/oof.npy", "floor");
  Write("jobs/j/prediction-1/predictions.csv", "traind writes its own");
  carrier_->Send({1, "j", TaskKind::kPrepare, "cache/t.table", false, "{}"});
  EXPECT_TRUE(Await().status.ok());
  EXPECT_EQ(remote_->sent_, (std::vector<std::string>{"cache/t.table", "jobs/j/folds.npy",
                                                      "jobs/j/floor/oof.npy"}));
}

TEST_F(CarrierTest, ATransferThatHangsCanBeStopped) {
  remote_->hangs_ = true;
  task_.table = "cache/t.table";
  carrier_->Bring(task_);
  carrier_->StopBringing(1);
  EXPECT_TRUE(absl::IsCancelled(Await().status));
  carrier_->Bring(task_);
  carrier_.reset();  // ends although it hangs
}

TEST(OwnFolderTest, WhatWasNotUsedForLongestGoesAndRunningJobsStay) {
  std::string dir = testing::TempDir() + "/own.XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  int age_s = 4000;
  for (const char* path : {"jobs/busy/folds.npy", "cache/old.table", "inputs/a/train.csv",
                           "jobs/idle/folds.npy", "cache/new.table"}) {
    const std::string whole = dir + "/" + path;
    ASSERT_TRUE(MakeDirs(whole.substr(0, whole.rfind('/'))).ok());
    ASSERT_TRUE(WriteFileDurably(whole, std::string(1000, 'x')).ok());
    timespec times[2] = {{time(nullptr) - age_s, 0}, {time(nullptr) - age_s, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, whole.c_str(), times, 0), 0);
    age_s -= 900;
  }
  const auto there = [&](const std::string& path) {
    return access((dir + "/" + path).c_str(), F_OK) == 0;
  };
  TrimOwnFolder(dir, 3500, {"busy"});
  EXPECT_TRUE(there("jobs/busy"));
  EXPECT_FALSE(there("cache/old.table"));
  EXPECT_FALSE(there("inputs/a"));
  EXPECT_TRUE(there("jobs/idle"));
  TrimOwnFolder(dir, 0, {"busy"});
  EXPECT_TRUE(there("jobs/busy"));
  EXPECT_FALSE(there("jobs/idle"));
}

}  // namespace
}  // namespace traind::worker
