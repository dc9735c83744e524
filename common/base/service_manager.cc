#include "common/base/service_manager.h"

#include <absl/cleanup/cleanup.h>
#include <absl/strings/str_cat.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/durable_file.h"

namespace traind {

absl::Status ServiceManager::SendReady(absl::string_view status) const {
  return Send(absl::StrCat("READY=1\nSTATUS=", status));
}

absl::Status ServiceManager::Send(absl::string_view message) const {
  if (!listens()) return absl::OkStatus();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_.size() >= sizeof address.sun_path) {
    return absl::InvalidArgumentError(absl::StrCat("the path ", socket_, " is too long"));
  }
  memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_[0] == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "cannot make a socket");
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  // A manager that does not read must not hold up this process.
  const ssize_t sent = sendto(fd, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                              reinterpret_cast<const sockaddr*>(&address), length);
  if (sent < 0) return ErrnoStatus(errno, absl::StrCat("cannot notify ", socket_));
  return absl::OkStatus();
}

}  // namespace traind
