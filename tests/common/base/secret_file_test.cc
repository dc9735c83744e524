#include "common/base/secret_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "common/base/durable_file.h"

namespace traind {
namespace {

TEST(SecretFileTest, AFileThatEveryUserMayOpenIsRefusedWithTheWayOut) {
  const std::string path = testing::TempDir() + "/secret";
  ASSERT_TRUE(WriteFileDurably(path, "key").ok());
  for (const mode_t mode : {0604, 0602, 0601, 0644}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    const auto read = ReadSecretFile(path);
    EXPECT_TRUE(absl::IsFailedPrecondition(read.status())) << read.status();
    EXPECT_THAT(std::string(read.status().message()), testing::HasSubstr("chmod 600 " + path));
  }
  // A group is the operator's choice: secrets of Kubernetes come so.
  for (const mode_t mode : {0600, 0400, 0640}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    const auto read = ReadSecretFile(path);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, "key");
  }
  EXPECT_TRUE(absl::IsNotFound(ReadSecretFile(path + "-none").status()));
}

}  // namespace
}  // namespace traind
