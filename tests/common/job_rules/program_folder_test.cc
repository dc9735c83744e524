#include "common/job_rules/program_folder.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/job_rules/ignore_rules.h"

namespace traind {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;

class ProgramFolderTest : public testing::Test {
 protected:
  ProgramFolderTest() {
    root_ = fs::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_ / "code");
  }

  void Write(const std::string& name) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << name;
  }
  Strings Files() {
    auto found = ListProgramFiles((root_ / "code").string(), (root_ / "code/state").string());
    EXPECT_TRUE(found.ok()) << found.status();
    if (!found.ok()) return {};
    std::sort(found->files.begin(), found->files.end());
    std::sort(found->folders.begin(), found->folders.end());
    folders_ = found->folders;
    EXPECT_EQ(found->root, fs::canonical(root_ / "code").string());
    return found->files;
  }

  fs::path root_;
  Strings folders_;
};

TEST_F(ProgramFolderTest, WhatTheProgramIsMadeOfTravels) {
  for (const char* name :
       {"code/train.py", "code/lib/model.py", "code/.git/config", "code/.venv/bin/python",
        "code/lib/__pycache__/model.pyc", "code/state/jobs/old.csv", "code/data/large.csv"}) {
    Write(name);
  }
  fs::create_directories(root_ / "code/empty");
  EXPECT_EQ(Files(), (Strings{"data/large.csv", "lib/model.py", "train.py"}));
  EXPECT_EQ(folders_, (Strings{"data/", "empty/", "lib/"}));
}

TEST_F(ProgramFolderTest, WhatIsIgnoredDoesNot) {
  for (const char* name : {"code/train.py", "code/runs/1/model.pt", "code/data/a.csv"}) Write(name);
  std::ofstream(root_ / "code" / kIgnoreFile) << "runs/\n*.csv\n";
  EXPECT_EQ(Files(), (Strings{kIgnoreFile, "train.py"}));
}

TEST_F(ProgramFolderTest, ALinkToAFileIsAFileAndOneToAFolderIsLeftOut) {
  Write("code/a.py");
  fs::create_directories(root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", root_ / "code/data");
  fs::create_symlink(root_ / "code/a.py", root_ / "code/b.py");
  fs::create_symlink(root_ / "nowhere", root_ / "code/c.py");
  EXPECT_EQ(Files(), (Strings{"a.py", "b.py"}));
  EXPECT_TRUE(folders_.empty());
}

TEST_F(ProgramFolderTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_FALSE(ListProgramFiles((root_ / "gone").string(), "").ok());
}

}  // namespace
}  // namespace traind
