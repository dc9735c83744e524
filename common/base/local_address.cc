#include "common/base/local_address.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

namespace traind {
namespace {

// Asks the kernel by a datagram socket, which only chooses the route when it is connected.
absl::StatusOr<std::string> SourceOf(const addrinfo& to) {
  const int fd = socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage from = {};
  socklen_t size = sizeof from;
  const bool known = fd >= 0 && connect(fd, to.ai_addr, to.ai_addrlen) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&from), &size) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!known) return absl::UnavailableError(strerror(error));
  char text[NI_MAXHOST] = "";
  const int failed = getnameinfo(reinterpret_cast<const sockaddr*>(&from), size, text, sizeof text,
                                 nullptr, 0, NI_NUMERICHOST);
  if (failed != 0) return absl::UnavailableError(gai_strerror(failed));
  return std::string(text);
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Resolve(const std::string& host, const std::string& port) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (failed != 0) {
    return absl::UnavailableError(absl::StrCat(host, ": ", gai_strerror(failed)));
  }
  return Addresses(found, freeaddrinfo);
}

}  // namespace

absl::StatusOr<std::string> LocalAddressTowards(absl::string_view host_port) {
  const size_t colon = host_port.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) {
    return absl::InvalidArgumentError(absl::StrCat("not HOST:PORT: ", host_port));
  }
  std::string host(host_port.substr(0, colon));
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const absl::StatusOr<Addresses> found = Resolve(host, std::string(host_port.substr(colon + 1)));
  if (!found.ok()) return found.status();
  absl::Status last;
  for (const addrinfo* to = found->get(); to != nullptr; to = to->ai_next) {
    absl::StatusOr<std::string> source = SourceOf(*to);
    if (source.ok()) return source;
    last = source.status();
  }
  return absl::UnavailableError(absl::StrCat("no route to ", host_port, ": ", last.message()));
}

bool IsLocalAddress(const std::string& host) {
  const absl::StatusOr<Addresses> found = Resolve(host, "0");
  if (!found.ok()) return false;
  const int fd = socket((*found)->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const bool local = fd >= 0 && bind(fd, (*found)->ai_addr, (*found)->ai_addrlen) == 0;
  if (fd >= 0) close(fd);
  return local;
}

}  // namespace traind
