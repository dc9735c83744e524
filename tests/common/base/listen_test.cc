#include "common/base/listen.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace traind {
namespace {

TEST(ListenTest, AnyFreePortIsTold) {
  for (const char* const address : {"127.0.0.1:0", "localhost:0", "0.0.0.0:0"}) {
    const auto listener = ListenOn(address);
    ASSERT_TRUE(listener.ok()) << listener.status();
    EXPECT_GT(listener->port, 0);
    close(listener->fd);
  }
}

TEST(ListenTest, APortHasOneListener) {
  const auto first = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const std::string address = absl::StrCat("127.0.0.1:", first->port);
  const auto second = ListenOn(address);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(second.status().message().find(address), absl::string_view::npos);
  close(first->fd);
}

TEST(ListenTest, WhatIsNoAddressIsNamed) {
  for (const char* const address :
       {"127.0.0.1:http", "127.0.0.1:", "127.0.0.1", "no such host:1"}) {
    const auto listener = ListenOn(address);
    EXPECT_EQ(listener.status().code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_NE(listener.status().message().find(address), absl::string_view::npos);
    if (listener.ok()) close(listener->fd);
  }
}

}  // namespace
}  // namespace traind
