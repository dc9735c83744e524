#include "server/rpc/grpc_server.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>

#include "common/base/durable_file.h"
#include "proto/health.pb.h"

namespace traind {
namespace {

constexpr int kMaxMessageBytes = 4 << 20;

// Builders look for plugins when they are made, so this comes before the first.
void LoadPlugins() {
  static const bool loaded = [] {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    // gRPC's own health service brings no descriptor; naming ours links it in, so
    // that reflection can describe what is served.
    grpc::health::v1::HealthCheckRequest::descriptor();
    return true;
  }();
  (void)loaded;
}

void Configure(grpc::ServerBuilder& builder, const std::vector<grpc::Service*>& services) {
  // Two daemons on one port would share its connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  for (grpc::Service* const service : services) builder.RegisterService(service);
}

// gRPC's health service tells of itself only the server as a whole.
void SayHealthy(grpc::Server& server, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    server.GetHealthCheckService()->SetServingStatus(name, true);
  }
}

}  // namespace

GrpcServer::GrpcServer() = default;

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Listen(
    const std::string& address, const std::vector<grpc::Service*>& services,
    const std::vector<std::string>& names) {
  LoadPlugins();
  std::unique_ptr<GrpcServer> server(new GrpcServer());
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &server->port_);
  Configure(builder, services);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || server->port_ == 0) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address, ": another program has the port, or it is not ours"));
  }
  SayHealthy(*server->server_, names);
  return server;
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::ListenOnSocket(
    const std::string& folder, const std::string& name,
    const std::vector<grpc::Service*>& services) {
  std::unique_ptr<GrpcServer> server(new GrpcServer());
  server->folder_ = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (server->folder_ < 0) return ErrnoStatus(errno, folder);
  const std::string socket = absl::StrCat("/proc/self/fd/", server->folder_, "/", name);
  unlink(socket.c_str());
  LoadPlugins();
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("unix:", socket), grpc::InsecureServerCredentials());
  Configure(builder, services);
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || chmod(socket.c_str(), 0600) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen on ", folder, "/", name));
  }
  return server;
}

GrpcServer::~GrpcServer() {
  Stop(absl::ZeroDuration());
  if (folder_ >= 0) close(folder_);
}

void GrpcServer::Stop(absl::Duration grace) {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  server_->Wait();
}

}  // namespace traind
