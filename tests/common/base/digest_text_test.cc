// JSON files that carry their own digest.
#include "common/base/digest_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace traind {
namespace {

using ::testing::HasSubstr;

TEST(DigestTextTest, FilesOfEarlierReleasesAreRead) {
  const std::string text =
      "{\"sha256\":\"015abd7f5cc57a2dd94b7590f04ad8084273905ee33ec5cebeae62276a97f862\","
      "\"model\":\n{\"a\":1}\n}\n";
  EXPECT_EQ(WithDigest("model", "{\"a\":1}"), text);
  const auto body = CheckedBody("model", text);
  ASSERT_TRUE(body.ok()) << body.status();
  EXPECT_EQ(*body, "{\"a\":1}");
}

TEST(DigestTextTest, EveryChangedByteIsNoticed) {
  const std::string text = WithDigest("trees", "{\"rounds\":20}");
  for (size_t i = 0; i < text.size(); ++i) {
    std::string changed = text;
    changed[i] ^= 1;
    const auto body = CheckedBody("trees", changed);
    EXPECT_EQ(body.status().code(), absl::StatusCode::kDataLoss) << i;
  }
}

TEST(DigestTextTest, EveryShorterFileIsNoticed) {
  const std::string text = WithDigest("trees", "{\"rounds\":20}");
  for (size_t size = 0; size < text.size(); ++size) {
    const auto body = CheckedBody("trees", text.substr(0, size));
    EXPECT_THAT(std::string(body.status().message()), HasSubstr("truncated")) << size;
  }
}

TEST(DigestTextTest, AFileOfAnotherKindIsRefused) {
  EXPECT_FALSE(CheckedBody("model", WithDigest("trees", "{}")).ok());
}

}  // namespace
}  // namespace traind
