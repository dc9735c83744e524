// Which user of this machine is at the other end of a loopback connection.
#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <sys/types.h>

#include <atomic>
#include <optional>
#include <string>

namespace traind {

// The ends of a TCP connection within this machine, as numbers: "127.0.0.1" or "::1", and a port.
struct LoopbackConnection {
  std::string client, server;
  int client_port = 0, server_port = 0;
};

// Asks the kernel (sock_diag(7)) for the owner of the client's socket. nullopt: there is no such
// connection, or this kernel does not tell.
std::optional<uid_t> UserOfClient(const LoopbackConnection& connection);

// Admits the user that this process runs as, and root: a standalone traind on loopback needs no
// token, but its port is open to every user of the machine.
// Threads: safe.
class LocalUsers {
 public:
  // host: as in --listen. The kernel tells nothing (a sandbox): everybody is admitted, and
  // traind's log says so.
  explicit LocalUsers(std::string host);

  // Says at which port traind listens; before that, every call is refused as Unavailable.
  void ListenAt(int port);

  // peer: "ipv4:127.0.0.1:43210" or "ipv6:[::1]:43210", with or without percent-encoding, as gRPC
  // names it. Errors: PermissionDenied, with what to do.
  absl::Status Check(absl::string_view peer) const;

 private:
  bool KernelTells(int port) const;
  std::string ServerFor(const std::string& client) const;

  const std::string host_;  // without brackets
  std::atomic<int> port_{0};
  std::atomic<bool> tells_{true};
};

}  // namespace traind
