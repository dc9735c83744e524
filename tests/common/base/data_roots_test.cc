// Files that lead elsewhere by the time they are opened.
#include "common/base/data_roots.h"

#include <absl/cleanup/cleanup.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace traind {
namespace {

namespace fs = std::filesystem;

class DataRootsTest : public ::testing::Test {
 protected:
  DataRootsTest() {
    std::string pattern = fs::canonical(::testing::TempDir()).string() + "/roots.XXXXXX";
    dir_ = mkdtemp(pattern.data());
    for (const char* folder : {"/data", "/data2", "/secret"}) {
      fs::create_directory(dir_ + folder);
      std::ofstream(dir_ + folder + "/a.csv") << "x,y\n1,2\n";
    }
  }
  ~DataRootsTest() override {
    KeepToDataRoots({});
    fs::remove_all(dir_);
  }

  static absl::Status Check(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_GE(fd, 0) << path;
    const absl::Cleanup closer = [fd] { close(fd); };
    return CheckUserFile(fd, path);
  }
  // As somebody may do between Submit and PREPARE.
  void Link(const std::string& path, const std::string& to) const {
    fs::remove_all(dir_ + path);
    fs::create_symlink(dir_ + to, dir_ + path);
  }

  std::string dir_;
};

TEST_F(DataRootsTest, ARootIsAFolderAndNoPrefix) {
  EXPECT_TRUE(LiesBelow("/data", {"/data"}));
  EXPECT_TRUE(LiesBelow("/data/a", {"/other", "/data"}));
  EXPECT_TRUE(LiesBelow("/data/a", {"/"}));
  EXPECT_FALSE(LiesBelow("/data2/a", {"/data"}));
  EXPECT_FALSE(LiesBelow("/", {"/data"}));
  EXPECT_FALSE(LiesBelow("/data", {}));
}

TEST_F(DataRootsTest, WithoutRootsEveryFileWillDo) {
  Link("/data/a.csv", "/secret/a.csv");
  EXPECT_EQ(Check(dir_ + "/data/a.csv"), absl::OkStatus());
}

TEST_F(DataRootsTest, ALinkMayLeadBelowARootOnly) {
  KeepToDataRoots({dir_ + "/data"});
  EXPECT_EQ(Check(dir_ + "/data/a.csv"), absl::OkStatus());
  EXPECT_EQ(Check(dir_ + "/secret/a.csv"), absl::OkStatus()) << "Submit has allowed this path";
  std::ofstream(dir_ + "/data/b.csv") << "x\n";
  Link("/data/a.csv", "/data/b.csv");
  EXPECT_EQ(Check(dir_ + "/data/a.csv"), absl::OkStatus());
  for (const char* place : {"/secret/a.csv", "/data2/a.csv"}) {
    Link("/data/a.csv", place);
    const absl::Status status = Check(dir_ + "/data/a.csv");
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_NE(std::string(status.message()).find(dir_ + place), std::string::npos) << status;
  }
}

TEST_F(DataRootsTest, FoldersAreCheckedLikeFiles) {
  KeepToDataRoots({dir_ + "/data"});
  EXPECT_EQ(*RealUserFolder(dir_ + "/data"), dir_ + "/data");
  fs::create_directory(dir_ + "/data/images");
  EXPECT_EQ(*RealUserFolder(dir_ + "/data/images"), dir_ + "/data/images");
  Link("/data/images", "/secret");
  EXPECT_TRUE(absl::IsPermissionDenied(RealUserFolder(dir_ + "/data/images").status()));
  EXPECT_TRUE(absl::IsNotFound(RealUserFolder(dir_ + "/data/none").status()));
}

}  // namespace
}  // namespace traind
