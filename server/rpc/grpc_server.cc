#include "server/rpc/grpc_server.h"

#include <absl/strings/str_cat.h>
#include <errno.h>
#include <fcntl.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>

#include "common/base/clock.h"
#include "common/base/durable_file.h"
#include "common/base/listen.h"
#include "common/base/secret_file.h"
#include "common/base/status_macros.h"
#include "common/base/tls_files.h"
#include "common/wire/grpc_status.h"
#include "proto/health.pb.h"
#include "server/access/gate.h"
#include "server/rpc/acceptor.h"

namespace traind {
namespace {

constexpr int kMaxMessageBytes = 4 << 20;
// A Worker that fetches a file pings this often at most, to find a dead connection.
constexpr int kLeastPingMs = 20'000;
// A connection that says nothing is closed after this time,
constexpr int kHandshakeMs = 10'000;
// and one without a call after this; its client opens another one for the next call.
constexpr int kIdleMs = 600'000;
// Certificates that were exchanged count for connections that are opened so much later.
constexpr unsigned kRereadSeconds = 5;

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
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kLeastPingMs);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  for (grpc::Service* const service : services) builder.RegisterService(service);
}

// gRPC's health service tells of itself only the server as a whole.
void SayHealthy(grpc::Server& server, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    server.GetHealthCheckService()->SetServingStatus(name, true);
  }
}

// Asks the gate before a call reaches its service.
class TokenCheck : public grpc::AuthMetadataProcessor {
 public:
  explicit TokenCheck(Gate* gate) : gate_(gate) {}
  bool IsBlocking() const override { return false; }

  grpc::Status Process(const InputMetadata& metadata, grpc::AuthContext* context,
                       OutputMetadata* /*consumed*/, OutputMetadata* /*response*/) override {
    return ToGrpc(gate_
                      ->Admit(Value(metadata, ":path"), Value(metadata, "authorization"),
                              context->IsPeerAuthenticated(), SystemClock().WallNow())
                      .status());
  }

 private:
  static absl::string_view Value(const InputMetadata& metadata, const char* key) {
    const auto found = metadata.find(key);
    if (found == metadata.end()) return "";
    return {found->second.data(), found->second.size()};
  }

  Gate* const gate_;
};

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> CredentialsOf(
    const PortSecurity* security) {
  if (security == nullptr) return grpc::InsecureServerCredentials();
  const auto path = [&](const char* name) { return absl::StrCat(security->tls_dir, "/", name); };
  for (const char* const name : {kTlsCa, kTlsServer}) {
    RETURN_IF_ERROR(ReadFile(path(name)).status());
  }
  RETURN_IF_ERROR(ReadSecretFile(path(kTlsServerKey)).status());
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          path(kTlsServerKey), path(kTlsServer), path(kTlsCa), kRereadSeconds));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  // Clients have tokens; a Worker shows a certificate as well, and TokenCheck asks for it.
  options.set_cert_request_type(GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  auto credentials = grpc::experimental::TlsServerCredentials(options);
  credentials->SetAuthMetadataProcessor(std::make_shared<TokenCheck>(security->gate));
  return credentials;
}

// Listens on a Unix socket for this user alone.
absl::StatusOr<int> ListenOnPath(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is too long for a socket"));
  }
  path.copy(address.sun_path, path.size());
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener < 0) return ErrnoStatus(errno, "socket");
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      chmod(path.c_str(), 0600) == 0 && listen(listener, SOMAXCONN) == 0) {
    return listener;
  }
  const absl::Status failed = ErrnoStatus(errno, absl::StrCat("cannot listen on ", path));
  close(listener);
  return failed;
}

}  // namespace

GrpcServer::GrpcServer() = default;

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Listen(
    const std::string& address, const std::vector<grpc::Service*>& services,
    const std::vector<std::string>& names, const PortSecurity* security) {
  LoadPlugins();
  ASSIGN_OR_RETURN(const auto credentials, CredentialsOf(security));
  std::unique_ptr<GrpcServer> server(new GrpcServer());
  grpc::ServerBuilder builder;
  ASSIGN_OR_RETURN(const Listener listener, ListenOn(address));
  server->port_ = listener.port;
  RETURN_IF_ERROR(server->Serve(builder, listener.fd, credentials, services));
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
  ASSIGN_OR_RETURN(const int listener, ListenOnPath(socket));
  grpc::ServerBuilder builder;
  RETURN_IF_ERROR(server->Serve(builder, listener, grpc::InsecureServerCredentials(), services));
  return server;
}

absl::Status GrpcServer::Serve(grpc::ServerBuilder& builder, int listener,
                               const std::shared_ptr<grpc::ServerCredentials>& credentials,
                               const std::vector<grpc::Service*>& services) {
  using FromFd = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  acceptor_ = std::make_unique<Acceptor>(
      listener, builder.experimental().AddExternalConnectionAcceptor(FromFd::FROM_FD, credentials));
  Configure(builder, services);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC cannot serve");
  acceptor_->Start();
  return absl::OkStatus();
}

GrpcServer::~GrpcServer() {
  Stop(absl::ZeroDuration());
  if (folder_ >= 0) close(folder_);
}

void GrpcServer::Stop(absl::Duration grace) {
  if (server_ == nullptr) return;
  acceptor_->Stop();
  server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(grace));
  server_->Wait();
}

}  // namespace traind
