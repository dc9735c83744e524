#include "common/base/host_port.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(HostPortTest, AHostAndAPortAreTaken) {
  for (const char* good : {"localhost:7070", "127.0.0.1:1", "[::1]:65535", "dns:///a.b:80"}) {
    EXPECT_EQ(CheckHostPort(good, 1), absl::OkStatus());
  }
  EXPECT_EQ(CheckHostPort("127.0.0.1:0", 0), absl::OkStatus());
}

TEST(HostPortTest, OthersAreRefusedWithTheReason) {
  EXPECT_EQ(CheckHostPort("localhost", 1).message(), "'localhost' is not HOST:PORT");
  EXPECT_EQ(CheckHostPort(":7070", 1).message(), "':7070' is not HOST:PORT");
  EXPECT_EQ(CheckHostPort("a:99999", 1).message(),
            "'a:99999': '99999' is not a port from 1 to 65535");
  for (const char* bad : {"", "a:", "a:0", "a:-1", "a:http", "a:7070 x", "a:99999999999"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckHostPort(bad, 1))) << bad;
  }
}

}  // namespace
}  // namespace traind
