#include "server/coordinator.h"

#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/engine_version.h"
#include "common/base/tls_files.h"
#include "proto/file_service.grpc.pb.h"
#include "proto/health.grpc.pb.h"
#include "proto/training_service.grpc.pb.h"
#include "proto/worker_service.grpc.pb.h"
#include "server/access/token_book.h"
#include "server/access_commands.h"
#include "server/store/sqlite.h"

namespace traind {
namespace {

using testing::HasSubstr;

class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest() {
    std::string folder = absl::StrCat(testing::TempDir(), "/coordinator.XXXXXX");
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    char* const real = realpath(folder.c_str(), nullptr);
    folder_ = real;
    free(real);
    config_.state_dir = absl::StrCat(folder_, "/state");
    EXPECT_EQ(MakeDirs(config_.state_dir), absl::OkStatus());
    config_.listen = "127.0.0.1:0";
    config_.data_roots = {folder_};
    EXPECT_EQ(WriteFileDurably(absl::StrCat(folder_, "/train.csv"), "a,kind\n1,x\n2,y\n"),
              absl::OkStatus());
  }
  std::unique_ptr<Coordinator> Start() {
    auto coordinator = Coordinator::Start(config_);
    EXPECT_TRUE(coordinator.ok()) << coordinator.status();
    client_ = v1::TrainingService::NewStub(Connect((*coordinator)->port()));
    return *std::move(coordinator);
  }
  static std::shared_ptr<grpc::Channel> Connect(int port) {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                               grpc::InsecureChannelCredentials());
  }
  v1::SubmitRequest RequestOf(const std::string& request_id) const {
    v1::SubmitRequest request;
    request.set_request_id(request_id);
    v1::JobSpec& spec = *request.mutable_spec();
    spec.set_api("v1");
    spec.mutable_task()->set_type("classification");
    spec.mutable_data()->set_train(absl::StrCat(folder_, "/train.csv"));
    spec.mutable_data()->set_target("kind");
    spec.mutable_model()->mutable_mlp();
    spec.mutable_budget()->mutable_time()->set_seconds(3600);
    return request;
  }
  v1::SubmitReply Submit(const std::string& request_id) {
    grpc::ClientContext context;
    v1::SubmitReply reply;
    const grpc::Status status = client_->Submit(&context, RequestOf(request_id), &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }
  v1::Job Get(const std::string& id) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_id(id);
    v1::Job job;
    const grpc::Status status = client_->GetJob(&context, request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }

  std::string folder_;
  Config config_;
  std::unique_ptr<v1::TrainingService::Stub> client_;
};

TEST_F(CoordinatorTest, JobsSurviveARestartWithTheirDeadline) {
  auto coordinator = Start();
  const v1::SubmitReply before = Submit("r1");
  coordinator->Stop(absl::Seconds(1));
  coordinator.reset();
  coordinator = Start();
  const v1::Job after = Get(before.job().id());
  EXPECT_EQ(after.state(), v1::JOB_STATE_QUEUED);
  // Times are stored in milliseconds.
  EXPECT_EQ(after.deadline().seconds(), before.job().deadline().seconds());
  EXPECT_EQ(after.deadline().nanos() / 1'000'000, before.job().deadline().nanos() / 1'000'000);
  EXPECT_EQ(after.accepted_at().seconds(), before.job().accepted_at().seconds());
  const v1::SubmitReply again = Submit("r1");
  EXPECT_EQ(again.job().id(), before.job().id());
  EXPECT_FALSE(again.created());
  EXPECT_TRUE(Submit("r2").created());
}

TEST_F(CoordinatorTest, HealthIsServing) {
  auto coordinator = Start();
  const auto health = grpc::health::v1::Health::NewStub(Connect(coordinator->port()));
  for (const std::string service : {"", "traind.v1.TrainingService"}) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    grpc::health::v1::HealthCheckResponse response;
    ASSERT_TRUE(health->Check(&context, request, &response).ok()) << service;
    EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVING);
  }
}

TEST_F(CoordinatorTest, AStateFolderHasOneTraind) {
  auto first = Start();
  const absl::Status second = Coordinator::Start(config_).status();
  EXPECT_TRUE(absl::IsAborted(second)) << second;
  EXPECT_THAT(std::string(second.message()), HasSubstr(config_.state_dir));
  EXPECT_THAT(std::string(second.message()), HasSubstr(absl::StrCat(getpid())));
  EXPECT_TRUE(Submit("r1").created()) << "the first goes on";
  first.reset();
  EXPECT_TRUE(Coordinator::Start(config_).ok());
}

TEST_F(CoordinatorTest, APortInUseIsNamedAndTheStateFolderIsLeft) {
  const int taken = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string listen = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  config_.listen = listen;
  testing::internal::CaptureStderr();
  const absl::Status status = Coordinator::Start(config_).status();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::Not(HasSubstr("chttp2")));
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(listen));
  close(taken);
  config_.listen = "127.0.0.1:0";
  EXPECT_TRUE(Coordinator::Start(config_).ok());
}

TEST_F(CoordinatorTest, TwoTraindDoNotShareAPort) {
  auto first = Start();
  Config other = config_;
  other.state_dir = absl::StrCat(folder_, "/other");
  ASSERT_EQ(MakeDirs(other.state_dir), absl::OkStatus());
  other.listen = absl::StrCat("127.0.0.1:", first->port());
  EXPECT_TRUE(absl::IsUnavailable(Coordinator::Start(other).status()));
}

TEST_F(CoordinatorTest, ANewerDatabaseIsRefused) {
  Start()->Stop(absl::Seconds(1));
  {
    auto db = sqlite::Connection::Open(absl::StrCat(config_.state_dir, "/traind.db"),
                                       sqlite::Connection::Mode::kReadWriteCreate)
                  .value();
    ASSERT_EQ(db->Execute("PRAGMA user_version = 99"), absl::OkStatus());
  }
  const absl::Status status = Coordinator::Start(config_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("99"));
}

// A Worker's stream goes over the socket in the state folder, even if the socket's path is too long
// for an address.
TEST_F(CoordinatorTest, StandaloneServesItsWorkerOnASocketOfItsOwnHoweverLongItsPath) {
  config_.state_dir = absl::StrCat(folder_, "/", std::string(100, 'x'), "/", std::string(100, 'y'));
  ASSERT_EQ(MakeDirs(config_.state_dir), absl::OkStatus());
  config_.standalone = true;
  config_.worker_binary = "/bin/true";  // ends at once; the test plays the Worker
  // A file that a killed traind left.
  ASSERT_EQ(WriteFileDurably(absl::StrCat(config_.state_dir, "/worker.sock"), "x"),
            absl::OkStatus());
  auto coordinator = Start();
  struct stat info;
  ASSERT_EQ(stat(absl::StrCat(config_.state_dir, "/worker.sock").c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600u);

  ASSERT_EQ(chdir(config_.state_dir.c_str()), 0);
  const auto on_socket = v1::WorkerService::NewStub(
      grpc::CreateChannel("unix:worker.sock", grpc::InsecureChannelCredentials()));
  const auto on_port = v1::WorkerService::NewStub(Connect(coordinator->port()));
  v1::WorkerMessage hello;
  hello.mutable_hello()->set_worker_id("w1");
  hello.mutable_hello()->set_boot_id("b1");
  hello.mutable_hello()->set_engine(kEngineVersion);
  v1::CoordinatorMessage welcome;
  {
    grpc::ClientContext context;
    const auto stream = on_socket->Attach(&context);
    ASSERT_TRUE(stream->Write(hello));
    ASSERT_TRUE(stream->Read(&welcome));
    EXPECT_TRUE(welcome.has_welcome());
    context.TryCancel();
    stream->Finish().ok();
  }
  grpc::ClientContext context;
  const auto stream = on_port->Attach(&context);
  stream->Write(hello);
  EXPECT_FALSE(stream->Read(&welcome));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

// Files of an Attempt come from the Worker that has it: from whoever has the token that the Worker
// has come with.
TEST_F(CoordinatorTest, WithTokensFilesOfAnAttemptComeFromItsOwnWorkerAlone) {
  config_.tls_dir = folder_ + "/tls";
  std::vector<std::string> words = {"init-tls", config_.tls_dir};
  char* arguments[] = {words[0].data(), words[1].data(), nullptr};
  ASSERT_EQ(RunInitTls(2, arguments), 0);
  ASSERT_EQ(MakeDirs(config_.state_dir), absl::OkStatus());
  std::map<std::string, std::string> tokens;
  for (const auto& [name, role] : {std::pair<std::string, Role>{"ann", Role::kUser},
                                   {"one", Role::kWorker},
                                   {"two", Role::kWorker}}) {
    tokens[name] = AddToken(config_.state_dir, {"", name, role}).value();
  }
  auto coordinator = Start();
  const auto file = [&](const char* name) {
    return ReadFile(absl::StrCat(config_.tls_dir, "/", name)).value();
  };
  grpc::ChannelArguments localhost;
  localhost.SetSslTargetNameOverride("localhost");
  const auto channel = grpc::CreateCustomChannel(
      absl::StrCat("127.0.0.1:", coordinator->port()),
      grpc::SslCredentials({file(kTlsCa), file(kTlsWorkerKey), file(kTlsWorker)}), localhost);
  const auto as = [&](const char* name, grpc::ClientContext& context) {
    context.AddMetadata("authorization", "Bearer " + tokens[name]);
    return &context;
  };

  const auto workers = v1::WorkerService::NewStub(channel);
  grpc::ClientContext attached, submits;
  const auto stream = workers->Attach(as("one", attached));
  v1::WorkerMessage hello;
  hello.mutable_hello()->set_worker_id("w1");
  hello.mutable_hello()->set_boot_id("b1");
  hello.mutable_hello()->set_engine(kEngineVersion);
  hello.mutable_hello()->add_slots();
  ASSERT_TRUE(stream->Write(hello));
  v1::SubmitReply job;
  const grpc::Status submitted =
      v1::TrainingService::NewStub(channel)->Submit(as("ann", submits), RequestOf("r1"), &job);
  ASSERT_TRUE(submitted.ok()) << submitted.error_message();
  v1::CoordinatorMessage message;
  while (!message.has_start() && stream->Read(&message)) {
  }
  ASSERT_TRUE(message.has_start()) << "PREPARE goes to the only Worker";

  const auto files = v1::FileService::NewStub(channel);
  v1::OfferFileRequest offer;
  offer.set_job(job.job().id());
  offer.set_path(absl::StrCat("jobs/", job.job().id(), "/attempts/1/rank0.log"));
  offer.set_size_bytes(1);
  offer.set_sha256(Sha256Hex("x"));
  v1::OfferFileReply reply;
  for (const auto& [name, code] :
       {std::pair{"two", grpc::StatusCode::PERMISSION_DENIED}, {"one", grpc::StatusCode::OK}}) {
    grpc::ClientContext context;
    EXPECT_EQ(files->OfferFile(as(name, context), offer, &reply).error_code(), code) << name;
  }
  attached.TryCancel();
  stream->Finish().ok();
}

TEST_F(CoordinatorTest, AStandaloneWorkerThatHangsIsReplacedAndOneThatLivesIsNot) {
  // A Worker that takes its lock and then does nothing.
  const std::string program = folder_ + "/worker.sh";
  std::ofstream(program) << "#!/bin/sh\nexec 9>>\"$3/worker.lock\"\nflock 9\n"
                            "echo $$ > \"$3/worker.lock\"\nexec sleep 1000\n";
  ASSERT_EQ(chmod(program.c_str(), 0700), 0);
  for (const bool lives : {true, false}) {
    std::atomic<int> died{0};
    std::atomic<int64_t> looks{0};
    WorkerProcessOptions options{program, folder_};
    options.hang_after = absl::Milliseconds(500);
    WorkerSupervisor supervisor(
        options, [&died] { ++died; }, [&] { return ++looks, lives ? looks.load() : 0; });
    ASSERT_EQ(supervisor.Start(), absl::OkStatus());
    const absl::Duration give_up = SystemClock().MonotonicNow() + absl::Seconds(30);
    // Start finds no Worker, which counts as one death.
    const auto settled = [&] { return lives ? looks > 10 : died > 1; };
    while (!settled() && SystemClock().MonotonicNow() < give_up) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    EXPECT_TRUE(settled());
    EXPECT_EQ(died > 1, !lives);
    supervisor.StopWatching();
    supervisor.WaitForEnd(absl::ZeroDuration());
  }
}

}  // namespace
}  // namespace traind
