#include "common/base/reserved_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

namespace traind {
namespace {

// Returns a socket that listens on the loopback address, or -1.
int ListenOn(int port, bool reuse) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = reuse ? 1 : 0;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, 1) == 0) {
    return fd;
  }
  close(fd);
  return -1;
}

TEST(ReservedPortTest, OnlyWhoSharesTheAddressMayListenOnIt) {
  const int port = ReservePort();
  ASSERT_GT(port, 0);
  EXPECT_EQ(ListenOn(port, /*reuse=*/false), -1);
  EXPECT_FALSE(PortIsFree(port));
  const int fd = ListenOn(port, /*reuse=*/true);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(ListenOn(port, /*reuse=*/true), -1);  // somebody listens already
  close(fd);
}

TEST(ReservedPortTest, APortThatNobodyHasIsFree) {
  EXPECT_FALSE(PortIsFree(0));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin_port);
  EXPECT_FALSE(PortIsFree(port));
  close(fd);
  EXPECT_TRUE(PortIsFree(port));
}

TEST(ReservedPortTest, TheLastPortsAreAllDifferent) {
  for (int i = 0; i < 100; ++i) ReservePort();
  std::set<int> ports;
  for (int i = 0; i < 256; ++i) ports.insert(ReservePort());
  EXPECT_EQ(ports.size(), 256);
}

}  // namespace
}  // namespace traind
