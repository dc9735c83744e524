#include "worker/program/work_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "common/base/durable_file.h"

namespace traind {
namespace {

namespace fs = std::filesystem;

class WorkFolder : public testing::Test {
 protected:
  WorkFolder() {
    root_ = fs::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_ / "origin/code");
    fs::create_directories(root_ / "out");
    Write("origin/train.py", "print(1)");
    Write("origin/code/model.py", "x = 1");
  }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  std::string Read(const std::string& name) { return ReadFile(Path(name)).value_or("(nothing)"); }
  std::string Path(const std::string& name) const { return (root_ / name).string(); }
  FileMarks Make() {
    const auto marks = MakeWorkFolder(Path("origin"), Path("fold"), Path("origin/state"));
    EXPECT_TRUE(marks.ok()) << marks.status();
    return marks.value_or(FileMarks());
  }
  std::vector<std::string> Names(const FileMarks& marks) {
    const auto results = FindResults(Path("fold/work"), marks, Path("out"));
    EXPECT_TRUE(results.ok()) << results.status();
    std::vector<std::string> names;
    for (const ResultFile& file : *results) names.push_back(file.name);
    return names;
  }

  fs::path root_;
};

TEST_F(WorkFolder, SmallFilesAreCopiedAndLargeOnesLinked) {
  Write("origin/data.bin", std::string((1 << 20) + 1, 'x'));
  Write("origin/.git/HEAD", "ref");
  Write("origin/state/traind.db", "never copied");
  Write("origin/__pycache__/a.pyc", "compiled");
  Make();
  EXPECT_EQ(Read("fold/work/code/model.py"), "x = 1");
  EXPECT_FALSE(fs::is_symlink(root_ / "fold/work/train.py"));
  EXPECT_TRUE(fs::is_symlink(root_ / "fold/work/data.bin"));
  EXPECT_TRUE(fs::is_symlink(root_ / "fold/work/.git"));
  EXPECT_FALSE(fs::exists(root_ / "fold/work/state"));
  EXPECT_FALSE(fs::exists(root_ / "fold/work/__pycache__"));
}

// The answer of an earlier run would else be written through the link, and would be no result.
TEST_F(WorkFolder, ALargeFileThatTheProgramWritesIsNoLink) {
  const std::string large((1 << 20) + 1, 'x');
  for (const char* name : {"code/model.pt", "code/data.bin"})
    Write(std::string("origin/") + name, large);
  const auto marks =
      MakeWorkFolder(Path("origin"), Path("fold"), Path("origin/state"), {"code/*.pt"});
  ASSERT_TRUE(marks.ok()) << marks.status();
  EXPECT_TRUE(fs::is_symlink(root_ / "fold/work/code/data.bin"));
  EXPECT_FALSE(fs::is_symlink(root_ / "fold/work/code/model.pt"));
  EXPECT_TRUE(Names(*marks).empty()) << "it was there before";
  Write("fold/work/code/model.pt", "new");
  EXPECT_EQ(Names(*marks), std::vector<std::string>{"code/model.pt"});
  EXPECT_EQ(Read("origin/code/model.pt"), large);
}

TEST_F(WorkFolder, WhatIsBeyondTheMostBytesIsALink) {
  for (int i = 0; i < 300; ++i) {
    const std::string name = "origin/data/" + std::to_string(i) + ".bin";
    Write(name, "x");
    fs::resize_file(root_ / name, 1 << 20);
  }
  Make();
  int links = 0;
  for (const auto& entry : fs::directory_iterator(root_ / "fold/work/data")) {
    links += entry.is_symlink();
  }
  EXPECT_GE(links, 40);
  EXPECT_LT(links, 60);
}

TEST_F(WorkFolder, WhatTraindignoreNamesIsNotThere) {
  Write("origin/.traindignore", "*.log\n/code/old/\n");
  Write("origin/a.log", "x");
  Write("origin/code/old/model.py", "x = 0");
  Write("origin/huge.log", std::string((1 << 20) + 1, 'x'));
  Make();
  EXPECT_TRUE(fs::exists(root_ / "fold/work/code/model.py"));
  EXPECT_FALSE(fs::exists(root_ / "fold/work/code/old"));
  EXPECT_FALSE(fs::exists(root_ / "fold/work/a.log"));
  EXPECT_FALSE(fs::is_symlink(root_ / "fold/work/huge.log")) << "not even a link";
}

TEST_F(WorkFolder, TheDigestTellsWhetherTheCodeIsTheSame) {
  const auto digest = [this](const std::string& dir) {
    const auto marks = MakeWorkFolder(Path("origin"), Path(dir), Path("origin/state"));
    EXPECT_TRUE(marks.ok()) << marks.status();
    return DigestOfCode(Path(dir));
  };
  const std::string first = digest("a");
  EXPECT_EQ(first.size(), 64u);
  Write("origin/train.py", "print(1)");  // the same again, at another time
  EXPECT_EQ(digest("b"), first);
  Write("origin/train.py", "print(2)");
  const std::string second = digest("c");
  EXPECT_NE(second, first);
  fs::rename(root_ / "origin/train.py", root_ / "origin/fit.py");
  EXPECT_NE(digest("d"), second) << "the name counts";
  EXPECT_EQ(DigestOfCode(Path("nowhere")), "");
}

TEST_F(WorkFolder, ASecondStartFindsTheFolderAsTheFirstLeftIt) {
  Make();
  Write("fold/work/checkpoint", "epoch 3");
  Write("origin/train.py", "changed later");
  const FileMarks marks = Make();
  EXPECT_EQ(Read("fold/work/checkpoint"), "epoch 3");
  EXPECT_EQ(Read("fold/work/train.py"), "print(1)");
  EXPECT_EQ(Names(marks), std::vector<std::string>{"checkpoint"});
}

TEST_F(WorkFolder, ACopyThatBrokeOffIsMadeAgain) {
  Make();
  fs::remove(root_ / "fold/origin.json");
  Write("fold/work/half", "x");
  Make();
  EXPECT_FALSE(fs::exists(root_ / "fold/work/half"));
}

TEST_F(WorkFolder, NewAndChangedFilesAreResultsAndThoseOfOutGoFirst) {
  const FileMarks marks = Make();
  EXPECT_TRUE(Names(marks).empty());
  Write("fold/work/train.py", "other text");
  Write("fold/work/deep/new.txt", "new");
  Write("fold/work/both.csv", "from work");
  Write("fold/work/__pycache__/b.pyc", "compiled");
  Write("out/both.csv", "from out");
  fs::create_symlink("/etc/hostname", root_ / "out/link");
  EXPECT_EQ(Names(marks), (std::vector<std::string>{"both.csv", "deep/new.txt", "train.py"}));
  const auto results = FindResults(Path("fold/work"), marks, Path("out"));
  ASSERT_TRUE(CopyResults(*results, Path("to")).ok());
  EXPECT_EQ(Read("to/both.csv"), "from out");
  EXPECT_EQ(Read("to/deep/new.txt"), "new");
}

TEST_F(WorkFolder, ManyResultsAreCut) {
  const FileMarks marks = Make();
  for (size_t i = 0; i < kMostResults + 10; ++i) Write("out/" + std::to_string(i), "x");
  EXPECT_EQ(Names(marks).size(), kMostResults);
}

TEST_F(WorkFolder, OfManyResultsThoseThatAreWantedStay) {
  const FileMarks marks = Make();
  for (size_t i = 0; i < kMostResults + 10; ++i) Write("out/" + std::to_string(i), "x");
  Write("out/sub.csv", "wanted");
  size_t left_out = 0;
  const auto results = FindResults(Path("fold/work"), marks, Path("out"), {"sub.csv"}, &left_out);
  ASSERT_TRUE(results.ok());
  EXPECT_EQ(results->size(), kMostResults);
  EXPECT_EQ(left_out, 11);
  EXPECT_EQ(Matched(*results, {"sub.csv"}).size(), 1);
  const auto all = FindResults(Path("fold/work"), marks, Path("out"), {"[0-9]*"});
  EXPECT_NE(all.status().message().find("more than 10000 files match '[0-9]*'"), std::string::npos)
      << all.status();
}

TEST_F(WorkFolder, EmptyFilesMatchNoPattern) {
  const std::vector<ResultFile> results = {{"sub.csv", "", 0}, {"a/b.csv", "", 5}};
  EXPECT_EQ(Unmatched(results, {"*.csv"}), std::vector<std::string>{"*.csv"});
  EXPECT_TRUE(Unmatched(results, {"a/*.csv"}).empty());
  EXPECT_TRUE(Unmatched(results, {}).empty());
}

TEST_F(WorkFolder, AResultThatCannotBeWrittenLeavesTheOldOneWhole) {
  const FileMarks marks = Make();
  Write("out/sub.csv", "new");
  Write("to/sub.csv", "old");
  Write("to/deep", "a file where a folder is to be");
  Write("out/deep/x", "x");
  const auto results = FindResults(Path("fold/work"), marks, Path("out"));
  const absl::Status copied = CopyResults(*results, Path("to"));
  EXPECT_FALSE(copied.ok());
  EXPECT_EQ(Read("to/sub.csv"), "old") << "names come in their order: deep/x was first";
  for (const auto& entry : fs::directory_iterator(root_ / "to")) {
    EXPECT_EQ(entry.path().filename().string().find(".tmp-"), std::string::npos);
  }
}

}  // namespace
}  // namespace traind
