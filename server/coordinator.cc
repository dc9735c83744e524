#include "server/coordinator.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "common/clock.h"
#include "common/durable_file.h"
#include "common/job_layout.h"
#include "common/log.h"
#include "common/status_macros.h"

namespace traind {
namespace {

constexpr int kMaxMessageBytes = 4 << 20;
// Workers come back by themselves; their streams have no end to wait for.
constexpr absl::Duration kServerGrace = absl::Milliseconds(500);

void Shut(grpc::Server* server) {
  if (server == nullptr) return;
  server->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(kServerGrace));
}

std::string UniqueId() {
  return absl::StrCat(getpid(), "-", absl::ToUnixNanos(SystemClock().WallNow()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Coordinator>> Coordinator::Start(const Config& config) {
  auto lock = FileLock::Acquire(absl::StrCat(config.state_dir, "/", kLockFile));
  if (absl::IsAborted(lock.status())) {
    return absl::AbortedError(absl::StrCat("another traind uses the state folder ",
                                           config.state_dir, ": ", lock.status().message()));
  }
  RETURN_IF_ERROR(lock.status());
  std::unique_ptr<Coordinator> coordinator(new Coordinator(*std::move(lock)));
  RETURN_IF_ERROR(coordinator->Load(config));
  RETURN_IF_ERROR(coordinator->Listen(config));
  return coordinator;
}

Coordinator::~Coordinator() { Stop(absl::ZeroDuration()); }

absl::Status Coordinator::Load(const Config& config) {
  ASSIGN_OR_RETURN(store_, SqliteStore::Open(absl::StrCat(config.state_dir, "/", kDatabaseFile)));
  LoopOptions options;
  options.state_dir = config.state_dir;
  options.core.standalone = config.standalone;
  ASSIGN_OR_RETURN(loop_, ControlLoop::Create(options, store_.get(), &SystemClock()));
  intake_ = std::make_unique<Intake>(config.data_roots);
  WorkerGatewayOptions gateway;
  gateway.lease = options.core.lease;
  gateway.coordinator_id = UniqueId();
  gateway_ = std::make_unique<GrpcWorkerGateway>(
      gateway, &SystemClock(), [this](Event event) { loop_->Post(std::move(event)); },
      [this](const std::string& job, AckCommand ack) {
        loop_->AdoptPrediction(job, std::move(ack));
      });
  service_ = std::make_unique<TrainingService>(config.state_dir, loop_.get(), store_.get(),
                                               intake_.get(), gateway_.get());
  return absl::OkStatus();
}

absl::Status Coordinator::Listen(const Config& config) {
  loop_->Start(gateway_.get());
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  {
    grpc::ServerBuilder builder;
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
    builder.AddListeningPort(config.listen, grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(service_.get());
    if (!config.standalone) builder.RegisterService(gateway_.get());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port_ == 0) {
      return absl::UnavailableError(absl::StrCat(
          "cannot listen on ", config.listen, ": another program has the port, or it is not ours"));
    }
  }
  if (!config.standalone) return absl::OkStatus();

  // A socket's address holds 107 bytes, a state folder's path may be longer. The
  // lock is ours, so whatever lies there is left over.
  socket_folder_ = open(config.state_dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (socket_folder_ < 0) return ErrnoStatus(errno, config.state_dir);
  const std::string socket = absl::StrCat("/proc/self/fd/", socket_folder_, "/", kWorkerSocket);
  unlink(socket.c_str());
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddListeningPort(absl::StrCat("unix:", socket), grpc::InsecureServerCredentials());
  builder.RegisterService(gateway_.get());
  worker_server_ = builder.BuildAndStart();
  if (worker_server_ == nullptr || chmod(socket.c_str(), 0600) != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", config.state_dir, "/", kWorkerSocket));
  }
  supervisor_ = std::make_unique<WorkerSupervisor>(
      WorkerProcessOptions{config.worker_binary, config.state_dir, config.slots}, [this] {
        // There is one Worker here; its id is what it said when it attached.
        for (const v1::WorkerInfo& worker : gateway_->Workers()) {
          loop_->Post(WorkerDied{worker.id()});
        }
      });
  return supervisor_->Start();
}

void Coordinator::Stop(absl::Duration grace) {
  if (loop_ == nullptr) return;
  if (supervisor_ != nullptr) supervisor_->StopWatching();
  if (server_ != nullptr && grace > absl::ZeroDuration()) {
    loop_->Post(ShutdownRequested{});
    if (!gateway_->WaitForNone(grace)) {
      TRAIND_LOG(WARNING) << "a Worker has not ended within " << absl::FormatDuration(grace);
    }
    if (supervisor_ != nullptr) supervisor_->WaitForEnd(absl::Seconds(2));
  }
  loop_->views().Close();  // watchers' streams end
  Shut(server_.get());
  Shut(worker_server_.get());
  loop_->Stop();
  server_.reset();
  worker_server_.reset();
  service_.reset();
  gateway_.reset();
  loop_.reset();
  store_.reset();
  if (socket_folder_ >= 0) close(socket_folder_);
}

}  // namespace traind
