#include "common/base/service_manager.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <string>

namespace traind {
namespace {

// The manager's end of the socket.
class Manager {
 public:
  explicit Manager(const std::string& name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const timeval limit{5, 0};
    EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address),
                   static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
  }
  ~Manager() { close(fd_); }
  std::string Receive() const {
    char text[1000];
    const ssize_t got = recv(fd_, text, sizeof text, 0);
    return got < 0 ? "nothing came" : std::string(text, static_cast<size_t>(got));
  }

 private:
  int fd_ = -1;
};

TEST(ServiceManagerTest, AManagerAtAPathHearsEachMessage) {
  char folder[] = "/tmp/service_managerXXXXXX";
  const std::string path = std::string(mkdtemp(folder)) + "/notify";
  {
    const Manager manager(path);
    const ServiceManager service(path);
    EXPECT_EQ(service.SendReady("listening on 127.0.0.1:7070"), absl::OkStatus());
    EXPECT_EQ(manager.Receive(), "READY=1\nSTATUS=listening on 127.0.0.1:7070");
    EXPECT_EQ(service.SendAlive(), absl::OkStatus());
    EXPECT_EQ(manager.Receive(), "WATCHDOG=1");
    EXPECT_EQ(service.SendStopping(), absl::OkStatus());
    EXPECT_EQ(manager.Receive(), "STOPPING=1");
  }
  // It has gone away.
  EXPECT_NE(ServiceManager(path).SendAlive(), absl::OkStatus());
  unlink(path.c_str());
  rmdir(folder);
}

TEST(ServiceManagerTest, AManagerInTheAbstractNamespaceHearsTheMessages) {
  const std::string name = "@service_manager_test." + std::to_string(getpid());
  const Manager manager(name);
  EXPECT_EQ(ServiceManager(name).SendAlive(), absl::OkStatus());
  EXPECT_EQ(manager.Receive(), "WATCHDOG=1");
}

TEST(ServiceManagerTest, WithoutAManagerNothingIsSent) {
  EXPECT_FALSE(ServiceManager("").listens());
  EXPECT_EQ(ServiceManager("").SendReady("x"), absl::OkStatus());
}

TEST(ServiceManagerTest, APathThatNoSocketCanHaveIsRefused) {
  EXPECT_TRUE(absl::IsInvalidArgument(ServiceManager("/" + std::string(200, 'x')).SendAlive()));
}

}  // namespace
}  // namespace traind
