#include "common/base/listen.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/durable_file.h"

namespace traind {

absl::StatusOr<Listener> ListenOn(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == address.npos || colon + 1 == address.size()) {
    return absl::InvalidArgumentError(absl::StrCat(address, ": there is no port"));
  }
  std::string host = address.substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = address.substr(colon + 1);
  if (const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found); error != 0) {
    return absl::InvalidArgumentError(absl::StrCat(address, ": ", gai_strerror(error)));
  }
  const auto free_found = absl::MakeCleanup([found] { freeaddrinfo(found); });
  Listener made;
  made.fd =
      socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, found->ai_protocol);
  if (made.fd < 0) return ErrnoStatus(errno, "socket");
  const int on = 1;
  setsockopt(made.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Connections inherit it: small answers are sent at once.
  setsockopt(made.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (bind(made.fd, found->ai_addr, found->ai_addrlen) != 0 || listen(made.fd, SOMAXCONN) != 0) {
    const absl::Status failed = ErrnoStatus(errno, "");
    close(made.fd);
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address,
                     ": another program has the port, or it is not ours (", failed.message(), ")"));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  getsockname(made.fd, reinterpret_cast<sockaddr*>(&bound), &size);
  made.port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                                : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return made;
}

}  // namespace traind
