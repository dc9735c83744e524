// Programs whose folder trainctl sends, and what it brings back of them.
#include <absl/strings/str_cat.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/client/cli_harness.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

constexpr char kPack[] = "traind-pack 1\n5 fold-0/answer.csv\n4 fold-1/sub/b.txt\n\nid,y\nmore";

class CliResultsTest : public CliTest {
 protected:
  CliResultsTest() {
    project_ = folder_ / "project";
    fs::create_directories(project_);
    Write("project/run.sh", "true");
    service_.on_get = [](const v1::GetJobRequest&, v1::Job* job) {
      *job = Ended();
      return grpc::Status::OK;
    };
    service_.on_watch = [](grpc::ServerContext*, const v1::WatchJobRequest&,
                           const std::function<bool(const v1::Job&)>& send) {
      send(Ended());
      return grpc::Status::OK;
    };
    service_.on_upload = [this](const v1::UploadRequest& request, v1::UploadReply* reply) {
      EXPECT_TRUE(request.folder());
      reply->set_present(true);
      reply->set_path("/srv/uploads/" + request.sha256() + "/" + request.name());
      uploaded_ = reply->path();
      return grpc::Status::OK;
    };
    service_.on_fetch = [this](const std::string& name) {
      fetched_.push_back(name);
      return grpc::Status::OK;
    };
    Send(kPack);
    before_ = fs::current_path();
    fs::current_path(project_);
  }
  ~CliResultsTest() override { fs::current_path(before_); }

  static v1::Job Ended() {
    v1::Job job = EndedJob();
    job.clear_predictions();
    job.set_results_dir("/srv/jobs/" + job.id());
    job.set_program_results(job.results_dir() + "/results");
    return job;
  }
  void Send(const std::string& pack) {
    service_.artifact = pack;
    service_.artifact_sha256 = Sha256Hex(pack);
  }
  // All below the folder, relative to it.
  static std::vector<std::string> Below(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_directory()) names.push_back(entry.path().lexically_relative(folder).string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::vector<std::string> all_ = {"fold-0/answer.csv", "fold-1/sub/b.txt"};
  fs::path project_, before_;
  std::string uploaded_;
  std::vector<std::string> fetched_;
};

TEST_F(CliResultsTest, RunSendsItsFolderAndBringsBackWhatTheProgramLeft) {
  const Ran ran = Run({"run", "--upload", "--env", "A=b", "--", "sh", "run.sh"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  ASSERT_EQ(submitted().size(), 1u);
  const v1::RunSpec run = submitted()[0].spec().run();
  EXPECT_EQ(run.folder(), uploaded_);
  EXPECT_EQ(run.results(), "");
  EXPECT_EQ(run.environment_size(), 1) << "variables of this machine mean nothing there";
  EXPECT_EQ(fetched_, std::vector<std::string>{"results.pack"});
  EXPECT_EQ(Below(project_), (std::vector<std::string>{all_[0], all_[1], "run.sh"}));
  EXPECT_EQ(Text(project_ / "fold-0/answer.csv"), "id,y\n");
  EXPECT_TRUE(Has(ran.out, absl::StrCat("copied to   ", project_.string(), " (2 files)")))
      << ran.out;

  EXPECT_EQ(Run({"run", "--upload", "--out", "here", "--", "sh", "run.sh"}).code, 0);
  EXPECT_EQ(Below(project_ / "here"), all_);
}

TEST_F(CliResultsTest, WhatIsNotWaitedForIsFetchedLater) {
  const Ran ran = Run({"run", "--upload", "--detach", "--", "sh", "run.sh"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(fetched_.empty());
  EXPECT_TRUE(Has(ran.err, " fetch digits-7f3k2a")) << ran.err;
  const Ran watched = Run({"watch", "digits"});
  EXPECT_TRUE(Has(watched.err, " fetch digits-7f3k2a")) << watched.err;
  EXPECT_TRUE(Has(watched.out, "/results (trainctl fetch copies them)")) << watched.out;
  EXPECT_TRUE(fetched_.empty());
}

TEST_F(CliResultsTest, ASpecHasItsFilesBroughtToTheProgramsFolder) {
  Write("run.yaml",
        "api: v1\nname: p\nrun: {command: [sh, run.sh], folder: project}\n"
        "budget: {time: 60s}\n");
  const std::vector<std::string> submit = {"submit", "-f", Path("run.yaml"), "--upload"};
  const auto with = [&submit](std::vector<std::string> more) {
    more.insert(more.begin(), submit.begin(), submit.end());
    return more;
  };
  EXPECT_EQ(Run(with({"--follow"})).code, 0);
  EXPECT_EQ(Below(project_), (std::vector<std::string>{all_[0], all_[1], "run.sh"}));
  EXPECT_EQ(Run(with({"--wait", "--out", Path("other")})).code, 0);
  EXPECT_EQ(Below(folder_ / "other"), all_);

  const Ran refused = Run(with({"--set", "run.results=out"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(Has(refused.err, "run.results: must be empty with --upload")) << refused.err;
  const Ran no_program = Run({"submit", "-f", Path("job.yaml"), "--out", "x"});
  EXPECT_EQ(no_program.code, 2);
  EXPECT_TRUE(Has(no_program.err, "--out is for the files of a program")) << no_program.err;
}

TEST_F(CliResultsTest, FetchBringsThemToAFolderOfTheJobsName) {
  const Ran ran = Run({"fetch", "digits", "-o", "json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  EXPECT_EQ(json["path"], (project_ / "digits-7f3k2a").string());
  EXPECT_EQ(json["files"], 2);
  EXPECT_EQ(json["bytes"], 9);
  EXPECT_EQ(Below(project_ / "digits-7f3k2a"), all_);
  EXPECT_EQ(Run({"fetch", "digits"}).code, 2) << "what happens to have the name is not replaced";
  EXPECT_EQ(Run({"fetch", "digits", "--to", "-"}).code, 2);
  // A file that the user names is replaced, and others stay.
  Write("project/mine/fold-0/answer.csv", "");
  fs::create_directories(project_ / "mine/fold-0");
  Write("project/mine/fold-0/answer.csv", "old");
  Write("project/mine/fold-0/mine.csv", "own");
  EXPECT_EQ(Run({"fetch", "digits", "--out", "mine"}).code, 0);
  EXPECT_EQ(Text(project_ / "mine/fold-0/answer.csv"), "id,y\n");
  EXPECT_EQ(Text(project_ / "mine/fold-0/mine.csv"), "own");
}

TEST_F(CliResultsTest, BytesThatAreNotAsAnnouncedOrLeadElsewhereWriteNothing) {
  service_.artifact_sha256 = std::string(64, '0');
  const Ran digest = Run({"fetch", "digits", "--out", "out"});
  EXPECT_EQ(digest.code, 1);
  EXPECT_TRUE(Has(digest.err, "instead of 0000")) << digest.err;
  EXPECT_GT(fetched_.size(), 1u) << "the program may have replaced a file meanwhile";
  for (const std::string pack :
       {"traind-pack 1\n1 ../x\n\nx", "traind-pack 1\n1 /tmp/x\n\nx", "no pack"}) {
    Send(pack);
    EXPECT_NE(Run({"fetch", "digits", "--out", "out"}).code, 0) << pack;
  }
  EXPECT_EQ(Below(project_), std::vector<std::string>{"run.sh"});
  EXPECT_FALSE(fs::exists(project_ / "out"));
}

TEST_F(CliResultsTest, AFileThatChangedMeanwhileIsAskedForAgain) {
  service_.on_fetch = [this](const std::string& name) {
    fetched_.push_back(name);
    return fetched_.size() < 3 ? grpc::Status(grpc::StatusCode::ABORTED, "has changed")
                               : grpc::Status::OK;
  };
  EXPECT_EQ(Run({"fetch", "digits", "--out", "out"}).code, 0);
  EXPECT_EQ(Below(project_ / "out"), all_);
}

TEST_F(CliResultsTest, AFolderThatCannotBeWrittenIsToldBeforeTheTrainingAndAtItsEnd) {
  Write("project/file", "x");
  const Ran before = Run({"run", "--upload", "--out", "file", "--", "true"});
  EXPECT_EQ(before.code, 1);
  EXPECT_TRUE(Has(before.err, "cannot write ")) << before.err;
  EXPECT_TRUE(submitted().empty());

  // As on a disk that is full.
  Send("traind-pack 1\n100000 a.bin\n\n" + std::string(100'000, 'a'));
  struct rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {50'000, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Ran full = Run({"run", "--upload", "--out", "out", "--", "true"});
  setrlimit(RLIMIT_FSIZE, &limit);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(full.code, 1) << full.err;
  EXPECT_TRUE(Has(full.err, "File too large")) << full.err;
  EXPECT_TRUE(Has(full.err, " fetch digits-7f3k2a --out DIR")) << full.err;
  EXPECT_EQ(Below(project_), (std::vector<std::string>{"file", "run.sh"}));
}

TEST_F(CliResultsTest, AFolderThatIsTooLargeIsToldWithWhatHelps) {
  service_.on_upload = [](const v1::UploadRequest&, v1::UploadReply*) {
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "traind's disk has room for 7 bytes");
  };
  const Ran ran = Run({"run", "--upload", "--", "true"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_TRUE(Has(ran.err, "run.folder: traind's disk has room for 7 bytes; what .traindignore "))
      << ran.err;
  EXPECT_TRUE(submitted().empty());
}

TEST_F(CliResultsTest, AProgramMayLeaveNothing) {
  service_.on_fetch = [](const std::string&) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "has left no files (yet)");
  };
  const Ran ran = Run({"run", "--upload", "--", "true"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(Has(ran.err, "the program has left no files")) << ran.err;
  EXPECT_EQ(Run({"fetch", "digits", "--out", "out"}).code, 5);
  EXPECT_FALSE(fs::exists(project_ / "out"));
}

}  // namespace
}  // namespace traind
