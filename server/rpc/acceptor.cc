#include "server/rpc/acceptor.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "common/base/clock.h"
#include "common/base/descriptors.h"
#include "common/base/log.h"

namespace traind {
namespace {

// How long nothing is taken after descriptors ran out.
constexpr int kPauseMs = 100;
constexpr absl::Duration kTellEvery = absl::Seconds(10);

}  // namespace

Acceptor::Acceptor(int listener, std::unique_ptr<Server> server)
    : listener_(listener), server_(std::move(server)), stop_(eventfd(0, EFD_CLOEXEC)) {}

Acceptor::~Acceptor() {
  Stop();
  close(listener_);
  if (stop_ >= 0) close(stop_);
}

void Acceptor::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_, 1);
  thread_.join();
}

void Acceptor::Run() {
  bool room = true;
  while (true) {
    pollfd wanted[] = {{stop_, POLLIN, 0}, {listener_, POLLIN, 0}};
    // Without room the listener is not asked, because it would stay readable.
    poll(wanted, room ? 2 : 1, room ? -1 : kPauseMs);
    if (wanted[0].revents != 0) return;
    room = AcceptAll();
  }
}

bool Acceptor::AcceptAll() {
  while (true) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0 && IsReservedDescriptor(fd)) {
      close(fd);
      TellRefusal();
      return false;
    }
    if (fd >= 0) {
      Server::NewConnectionParameters connection;
      connection.listener_fd = listener_;
      connection.fd = fd;
      server_->HandleNewConnection(&connection);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return true;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return false;
    }
    // Other errors are those of a connection that its client gave up.
  }
}

void Acceptor::TellRefusal() {
  const absl::Duration now = SystemClock().MonotonicNow();
  if (now < tell_again_) return;
  tell_again_ = now + kTellEvery;
  TRAIND_LOG(WARNING) << "connections are refused: clients use all but the last of "
                      << DescriptorLimit() << " descriptors";
}

}  // namespace traind
