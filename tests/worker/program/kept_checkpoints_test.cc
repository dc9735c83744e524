#include "worker/program/kept_checkpoints.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/durable_file.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

class KeptCheckpointsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/kept-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
    for (const char* folder : {"work/deep", "checkpoints", "out"}) {
      fs::create_directories(dir_ + "/" + folder);
    }
  }
  void TearDown() override { fs::remove_all(dir_); }
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(dir_ + "/" + name).parent_path());
    std::ofstream(dir_ + "/" + name) << text;
  }
  std::string Text(const std::string& name) {
    const auto text = ReadFile(dir_ + "/" + name);
    return text.ok() ? *text : "none";
  }
  KeptCheckpoints Kept() { return KeptCheckpoints(dir_, {"model_*.pt", "deep/*.bin"}); }
  // Files that exist were written before it.
  absl::Time Later() { return absl::Now() + absl::Seconds(1); }
  bool SetAside() {
    const auto aside = Kept().SetAside();
    EXPECT_TRUE(aside.ok()) << aside.status();
    return aside.ok() && *aside;
  }
  std::string dir_;
};

TEST_F(KeptCheckpointsTest, ATornFileIsSetAsideOnceAndTheCopyComesBack) {
  Write("work/model_1.pt", "whole");
  Write("work/deep/x.bin", "deep");
  Write("work/train.py", "code");
  Write("checkpoints/state", "5");
  ASSERT_TRUE(Kept().Keep(Later()));
  Write("work/model_1.pt", "wh");
  Write("work/model_2.pt", "");
  Write("checkpoints/state", "");
  EXPECT_TRUE(SetAside());
  EXPECT_EQ(Text("work/model_1.pt"), "whole");
  EXPECT_EQ(Text("work/model_2.pt"), "none");
  EXPECT_EQ(Text("work/deep/x.bin"), "deep");
  EXPECT_EQ(Text("checkpoints/state"), "5");
  EXPECT_EQ(Text("torn/work/model_1.pt"), "wh");
  EXPECT_EQ(Text("work/train.py"), "code");
  Write("work/model_1.pt", "w");
  EXPECT_FALSE(SetAside()) << "only once";
}

TEST_F(KeptCheckpointsTest, ACopyIsMadeOfFilesThatNobodyWritesTo) {
  EXPECT_FALSE(Kept().Keep(Later())) << "there is no file";
  Write("work/model_1.pt", "one");
  EXPECT_FALSE(Kept().Keep(absl::Now() - absl::Minutes(1))) << "it is too new";
  EXPECT_TRUE(Kept().Keep(Later()));
  EXPECT_FALSE(Kept().Keep(Later())) << "it is the same";
  Write("work/model_1.pt", "one and two");
  EXPECT_TRUE(Kept().Keep(Later()));
  EXPECT_EQ(Kept().LastCopy(), "kept-2");
  EXPECT_EQ(Text("kept-2/work/model_1.pt"), "one and two");
  EXPECT_FALSE(fs::exists(dir_ + "/kept-1"));
}

TEST_F(KeptCheckpointsTest, WithoutANewerFileNothingIsSetAside) {
  Write("work/model_1.pt", "one");
  EXPECT_FALSE(SetAside()) << "there is no copy";
  ASSERT_TRUE(Kept().Keep(Later()));
  EXPECT_FALSE(SetAside()) << "the program failed with a whole file";
}

TEST_F(KeptCheckpointsTest, TheHelpersCheckpointsAreItsOwn) {
  Write("checkpoints/traind-00000001/model.pt", "x");
  Write("checkpoints/.traind-abc/model.pt", "x");
  EXPECT_FALSE(Kept().Any());
  Write("checkpoints/mine/model.pt", "x");
  EXPECT_TRUE(Kept().Any());
}

}  // namespace
}  // namespace traind
