#include "common/base/nameless_file.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace {
bool knows_nameless_files = true;
}

// In place of the C library's.
extern "C" int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
  const int mode = nameless || (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
  va_end(rest);
  if (nameless && !knows_nameless_files) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

namespace traind {
namespace {

using ::testing::HasSubstr;

class NamelessFileTest : public ::testing::TestWithParam<bool> {
 protected:
  NamelessFileTest() {
    std::string pattern = ::testing::TempDir() + "/nameless.XXXXXX";
    dir_ = mkdtemp(pattern.data());
    knows_nameless_files = GetParam();
  }
  ~NamelessFileTest() override {
    knows_nameless_files = true;
    std::filesystem::remove_all(dir_);
  }

  std::string dir_;
};

TEST_P(NamelessFileTest, ItIsWrittenAndReadAndNobodySeesIt) {
  const std::string below = absl::StrCat(dir_, "/of/a/task");
  const auto fd = OpenNamelessFile(below);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_TRUE(std::filesystem::is_empty(below));
  ASSERT_EQ(pwrite(*fd, "voxels", 6, 0), 6);
  char read[6];
  ASSERT_EQ(pread(*fd, read, 6, 0), 6);
  EXPECT_EQ(std::string(read, 6), "voxels");
  struct stat info;
  ASSERT_EQ(fstat(*fd, &info), 0);
  EXPECT_EQ(info.st_nlink, 0u);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_NE(fcntl(*fd, F_GETFD) & FD_CLOEXEC, 0);
  struct stat folder;
  ASSERT_EQ(stat(below.c_str(), &folder), 0);
  EXPECT_EQ(info.st_dev, folder.st_dev);
  close(*fd);
}

TEST_P(NamelessFileTest, TwoOfOneFolderAreDifferentFiles) {
  const auto a = OpenNamelessFile(dir_), b = OpenNamelessFile(dir_);
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(pwrite(*a, "a", 1, 0), 1);
  char read;
  EXPECT_EQ(pread(*b, &read, 1, 0), 0);
  close(*a);
  close(*b);
}

TEST_P(NamelessFileTest, WithoutAFolderItLiesInTheWorkingFolder) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(dir_);
  const auto fd = OpenNamelessFile("");
  std::filesystem::current_path(before);
  ASSERT_TRUE(fd.ok()) << fd.status();
  EXPECT_TRUE(std::filesystem::is_empty(dir_));
  close(*fd);
}

TEST_P(NamelessFileTest, AnErrorNamesTheFolder) {
  const std::string path = absl::StrCat(dir_, "/file");
  std::ofstream(path) << "x";
  EXPECT_THAT(OpenNamelessFile(path).status().message(), HasSubstr(path));
  EXPECT_THAT(OpenNamelessFile("/proc/self/fdinfo").status().message(),
              HasSubstr("cannot write below /proc/self/fdinfo"));
}

INSTANTIATE_TEST_SUITE_P(FileSystems, NamelessFileTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Usual" : "Simple"; });

}  // namespace
}  // namespace traind
