// Listening sockets of TCP.
#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace traind {

struct Listener {
  int fd = -1;   // non-blocking, closed on exec; the caller's
  int port = 0;  // also where any free one was asked for
};

// Listens on HOST:PORT; port 0 is any free one, and an IPv6 address stands in brackets.
// Errors: InvalidArgument: there is no such host or port. Unavailable: another program has the
// port, or the address is not this machine's.
absl::StatusOr<Listener> ListenOn(const std::string& address);

}  // namespace traind
