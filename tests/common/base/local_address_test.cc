#include "common/base/local_address.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

TEST(LocalAddressTest, TheLoopbackIsReachedFromTheLoopback) {
  EXPECT_EQ(LocalAddressTowards("127.0.0.1:7070").value_or("none"), "127.0.0.1");
  EXPECT_EQ(LocalAddressTowards("127.0.0.2:1").value_or("none"), "127.0.0.1");
}

TEST(LocalAddressTest, WhatIsNoAddressIsNamed) {
  for (const char* wrong : {"", "7070", ":7070", "unix"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(LocalAddressTowards(wrong).status())) << wrong;
  }
  const absl::Status unknown = LocalAddressTowards("no.such.host.invalid:1").status();
  EXPECT_TRUE(absl::IsUnavailable(unknown)) << unknown;
}

TEST(LocalAddressTest, AnAddressOfAnotherMachineIsNotLocal) {
  EXPECT_TRUE(IsLocalAddress("127.0.0.1"));
  EXPECT_FALSE(IsLocalAddress("192.0.2.1"));  // reserved for documentation
  EXPECT_FALSE(IsLocalAddress("no.such.host.invalid"));
}

}  // namespace
}  // namespace traind
