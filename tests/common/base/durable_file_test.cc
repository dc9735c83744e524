#include "common/base/durable_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

// The system calls of this program, in order.
std::vector<std::string>& Calls() {
  static auto* calls = new std::vector<std::string>();
  return *calls;
}

}  // namespace

// In place of the C library's.
extern "C" int fsync(int fd) {
  struct stat info;
  fstat(fd, &info);
  Calls().push_back(S_ISDIR(info.st_mode) ? "sync the folder" : "sync the file");
  return static_cast<int>(syscall(SYS_fsync, fd));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  Calls().push_back("rename");
  return static_cast<int>(syscall(SYS_rename, from, to));
}

namespace traind {
namespace {

using ::testing::ElementsAre;

using ::testing::HasSubstr;

class DurableFileTest : public ::testing::Test {
 protected:
  DurableFileTest() {
    std::string pattern = ::testing::TempDir() + "/durable.XXXXXX";
    dir_ = mkdtemp(pattern.data());
  }
  ~DurableFileTest() override { std::filesystem::remove_all(dir_); }

  int FilesInDir() const {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
      (void)entry;
      ++count;
    }
    return count;
  }
  std::string dir_;
};

TEST_F(DurableFileTest, WrittenBytesAreReadBack) {
  const std::string path = dir_ + "/a";
  const std::string bytes("x\0y\n", 4);
  ASSERT_TRUE(WriteFileDurably(path, bytes).ok());
  EXPECT_EQ(*ReadFile(path), bytes);
  ASSERT_TRUE(WriteFileDurably(path, "").ok());
  EXPECT_EQ(*ReadFile(path), "");
  EXPECT_EQ(FilesInDir(), 1);
}

TEST_F(DurableFileTest, AFileIsSyncedBeforeItHasItsNameAndItsFolderBehind) {
  Calls().clear();
  ASSERT_TRUE(WriteFileDurably(dir_ + "/a", "x").ok());
  EXPECT_THAT(Calls(), ElementsAre("sync the file", "rename", "sync the folder"));
  Calls().clear();
  ASSERT_TRUE(RenameDurably(dir_ + "/a", dir_ + "/b").ok());
  EXPECT_THAT(Calls(), ElementsAre("rename", "sync the folder"));
  auto writer = DurableWriter::Create(dir_ + "/c");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append("x").ok());
  Calls().clear();
  ASSERT_TRUE((*writer)->Commit().ok());
  EXPECT_THAT(Calls(), ElementsAre("sync the file", "rename", "sync the folder"));
}

TEST_F(DurableFileTest, FailedWriteLeavesTheOldBytesAndNoTemporaryFile) {
  const std::string path = dir_ + "/a";
  ASSERT_TRUE(WriteFileDurably(path, "old").ok());
  // A file that may not grow past 1 KiB simulates a full disk.
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 1024;
  auto* const old_handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = WriteFileDurably(path, std::string(4096, 'n'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, old_handler);

  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_EQ(*ReadFile(path), "old");
  EXPECT_EQ(FilesInDir(), 1);
}

TEST_F(DurableFileTest, WriteOverAFolderFailsAndCleansUp) {
  ASSERT_TRUE(MakeDirs(dir_ + "/a").ok());
  EXPECT_FALSE(WriteFileDurably(dir_ + "/a", "x").ok());
  EXPECT_EQ(FilesInDir(), 1);
}

TEST_F(DurableFileTest, FullDiskIsResourceExhaustedAndNamesTheReason) {
  const absl::Status status = ErrnoStatus(ENOSPC, "cannot write /x");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "cannot write /x: No space left on device");
  EXPECT_EQ(ErrnoStatus(EDQUOT, "").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrnoStatus(EACCES, "").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(EROFS, "").code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ErrnoStatus(ENOENT, "").code(), absl::StatusCode::kNotFound);
}

TEST_F(DurableFileTest, MissingFileIsNotFoundAndNamed) {
  const absl::Status status = ReadFile(dir_ + "/none").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir_ + "/none"));
  EXPECT_EQ(DigestFile(dir_ + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(DurableFileTest, MakeDirsCreatesParentsForTheOwnerOnlyAndMayBeRepeated) {
  const std::string path = dir_ + "/a/b/c";
  ASSERT_TRUE(MakeDirs(path).ok());
  ASSERT_TRUE(MakeDirs(path).ok());
  ASSERT_TRUE(MakeDirs(path + "/").ok());
  struct stat info;
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_TRUE(WriteFileDurably(dir_ + "/file", "x").ok());
  EXPECT_FALSE(MakeDirs(dir_ + "/file").ok());
  EXPECT_FALSE(MakeDirs(dir_ + "/file/below").ok());
}

TEST_F(DurableFileTest, DigestsAreThoseOfSha256) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const std::string bytes(3 << 20, 'q');
  ASSERT_TRUE(WriteFileDurably(dir_ + "/a", bytes).ok());
  const auto digest = DigestFile(dir_ + "/a");
  ASSERT_TRUE(digest.ok());
  EXPECT_EQ(digest->sha256, Sha256Hex(bytes));
  EXPECT_EQ(digest->bytes, 3 << 20);
}

TEST_F(DurableFileTest, RenameReplacesItsGoal) {
  ASSERT_TRUE(WriteFileDurably(dir_ + "/a", "new").ok());
  ASSERT_TRUE(WriteFileDurably(dir_ + "/b", "old").ok());
  ASSERT_TRUE(RenameDurably(dir_ + "/a", dir_ + "/b").ok());
  EXPECT_EQ(*ReadFile(dir_ + "/b"), "new");
  EXPECT_EQ(RenameDurably(dir_ + "/a", dir_ + "/b").code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace traind
