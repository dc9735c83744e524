// Runs trainctl in this process against a traind that the test controls.
#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "client/cli.h"
#include "common/base/durable_file.h"
#include "tests/client/fake_training_service.h"
#include "tests/client/sample_jobs.h"

namespace traind {

inline constexpr char kCliSpec[] = R"(api: v1
name: digits
task: {type: classification}
data: {train: train.csv, test: test.csv, target: y}
budget: {time: 60s}
)";

struct Ran {
  int code = -1;
  std::string out, err;
};

inline std::string Text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline bool Has(const std::string& text, absl::string_view part) {
  return absl::StrContains(text, part);
}

class CliTest : public testing::Test {
 protected:
  CliTest() : server_(service_) {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Write("job.yaml", kCliSpec);
    service_.on_get = [this](const v1::GetJobRequest& request, v1::Job* job) {
      return Get(request, job);
    };
    service_.on_submit = [this](const v1::SubmitRequest& request, v1::SubmitReply* reply) {
      return Submit(request, reply);
    };
    service_.artifact_sha256 = Sha256Hex(service_.artifact);
  }

  grpc::Status Get(const v1::GetJobRequest& request, v1::Job* job) {
    if (request.id() != "digits" && request.id() != RunningJob().id()) {
      return {grpc::StatusCode::NOT_FOUND, "no Job " + request.id()};
    }
    *job = ended_ ? EndedJob() : RunningJob();
    return grpc::Status::OK;
  }

  grpc::Status Submit(const v1::SubmitRequest& request, v1::SubmitReply* reply) {
    absl::MutexLock lock(&mutex_);
    submitted_.push_back(request);
    *reply->mutable_job() = RunningJob();
    reply->set_created(true);
    return grpc::Status::OK;
  }

  std::vector<v1::SubmitRequest> submitted() {
    absl::MutexLock lock(&mutex_);
    return submitted_;
  }

  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::string Path(const std::string& name) { return (folder_ / name).string(); }

  Ran Run(std::vector<std::string> args, const std::string& in = "") {
    std::istringstream input(in);
    std::ostringstream out, err;
    Environment environment{input, out, err, SystemClock()};
    environment.default_server = default_server_ ? *default_server_ : server_.address();
    environment.config_file = Path("config.yaml");
    environment.out_is_terminal = terminal_;
    if (space_) environment.disk_space = [this](const std::filesystem::path&) { return *space_; };
    environment.color_wished = color_wished_;
    environment.interrupted = &interrupted_;
    environment.err_is_terminal = terminal_;
    environment.hold_interrupts = [this](bool held, const std::string&) { held_ = held; };
    Ran ran;
    ran.code = RunTrainctl(args, environment);
    ran.out = out.str();
    ran.err = err.str();
    return ran;
  }

  // Sends the running Job, then the ended one.
  void WatchToTheEnd() {
    service_.on_watch = [](grpc::ServerContext*, const v1::WatchJobRequest& request,
                           const std::function<bool(const v1::Job&)>& send) {
      v1::Job job = RunningJob();
      job.set_version(18);
      if (request.since_version() < 18) send(job);
      send(EndedJob());
      return grpc::Status::OK;
    };
  }

  FakeTrainingService service_;
  FakeServer server_;
  std::filesystem::path folder_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> interrupted_{false};
  std::atomic<bool> held_{false};
  bool terminal_ = false;
  bool color_wished_ = true;
  std::optional<std::string> default_server_;         // $TRAINCTL_SERVER; unset: that of the fake
  std::optional<std::filesystem::space_info> space_;  // of the disk; unset: the real one

 private:
  absl::Mutex mutex_;
  std::vector<v1::SubmitRequest> submitted_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace traind
