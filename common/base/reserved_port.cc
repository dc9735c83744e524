#include "common/base/reserved_port.h"

#include <absl/synchronization/mutex.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>

namespace traind {
namespace {

constexpr size_t kHeld = 256;

// Keeps `fd` and closes the one that was kept kHeld calls ago.
void Hold(int fd) {
  static absl::Mutex mutex(absl::kConstInit);
  static std::array<int, kHeld> held = [] {
    std::array<int, kHeld> none;
    none.fill(-1);
    return none;
  }();
  static size_t next = 0;
  const absl::MutexLock lock(&mutex);
  int& oldest = held[next];
  if (oldest >= 0) close(oldest);
  oldest = fd;
  next = (next + 1) % kHeld;
}

// Binds a socket to a port, or to one that the kernel chooses for 0. Returns the port; 0: it
// failed.
int Bind(int fd, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohs(address.sin_port);
}

}  // namespace

int ReservePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  // Two sockets may have one port where both set this and none listens yet.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const int port = Bind(fd, 0);
  if (port != 0) {
    Hold(fd);
  } else if (fd >= 0) {
    close(fd);
  }
  return port;
}

bool PortIsFree(int port) {
  if (port == 0) return false;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool free = Bind(fd, port) == port;
  if (fd >= 0) close(fd);
  return free;
}

}  // namespace traind
