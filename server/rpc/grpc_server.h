// The daemon's ports.
#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <memory>
#include <string>
#include <vector>

namespace grpc {
class Server;
class ServerBuilder;
class ServerCredentials;
class Service;
}  // namespace grpc

namespace traind {

class Acceptor;
class Gate;

// TLS and tokens of a port.
struct PortSecurity {
  std::string tls_dir;   // made by `traind init-tls`
  Gate* gate = nullptr;  // decides on each call; outlives the server
};

// A gRPC server with the standard health service and reflection.
// Threads: confined to one. Ownership: services outlive it.
class GrpcServer {
 public:
  // address: HOST:PORT (port 0: any free one). names: services whose health is told
  // by name. security: null leaves the port without TLS and tokens. Errors: Unavailable: the port
  // is taken; those of reading the files of TLS.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> Listen(
      const std::string& address, const std::vector<grpc::Service*>& services,
      const std::vector<std::string>& names = {}, const PortSecurity* security = nullptr);
  // On a Unix socket `folder`/`name`, for this user only. The path may be longer
  // than a socket's address; a socket that lies there is taken for left over.
  static absl::StatusOr<std::unique_ptr<GrpcServer>> ListenOnSocket(
      const std::string& folder, const std::string& name,
      const std::vector<grpc::Service*>& services);
  // Stops, if need be.
  ~GrpcServer();

  int port() const { return port_; }
  // No new calls; those that run are cancelled after `grace`.
  void Stop(absl::Duration grace);

 private:
  GrpcServer();
  // Serves what comes to the listening socket, which it takes over.
  absl::Status Serve(grpc::ServerBuilder& builder, int listener,
                     const std::shared_ptr<grpc::ServerCredentials>& credentials,
                     const std::vector<grpc::Service*>& services);

  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  int folder_ = -1;  // descriptor of the socket's folder
};

}  // namespace traind
