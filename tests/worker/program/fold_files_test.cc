#include "worker/program/fold_files.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/durable_file.h"
#include "common/data/table/table_reader.h"
#include "common/data/table/table_writer.h"

namespace traind {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTraining[] =
    "\xEF\xBB\xBFid,x,kind,note\r\n"
    "1,0.5,a,\"two\nlines\"\r\n"
    "2,1.5,b,\"a \"\"b\"\"\"\r\n"
    "3,2.5,,left out\r\n"
    "\r\n"
    "  \r\n"
    "4,3.5,b,\r\n"
    "5,4.5, a ,last";
constexpr char kTesting[] = "id,x,kind,note\n9,1,a,\"x,y\"\n10,2,,z\n";

class FoldFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dir_ = absl::StrCat(::testing::TempDir(), "/fold_files");
    ASSERT_TRUE(MakeDirs(dir_).ok());
    TableSource source;
    source.train = {"train.csv", kTraining};
    source.test = {"test.csv", kTesting};
    source.target = "kind";
    source.id = "id";
    source.target_kind = TargetKind::kClasses;
    const auto rows = ReadTable(source);
    ASSERT_TRUE(rows.ok()) << rows.status();
    const std::string path = absl::StrCat(dir_, "/table");
    ASSERT_TRUE(WriteTable(*rows, path).ok());
    table_ = *Table::Open(path);
    rows_.training = {0, 2};
    rows_.validation = {1, 3};
  }

  std::string Written(const char* name) {
    const auto text = ReadFile(absl::StrCat(dir_, "/", name));
    return text.ok() ? *text : "";
  }

  std::string dir_;
  std::shared_ptr<const Table> table_;
  FoldRows rows_;
};

TEST_F(FoldFilesTest, RowsStayAsTheyAreAndThoseWithoutATargetAreLeftOut) {
  const auto ids = WriteFoldFiles({"train.csv", kTraining}, *table_, rows_, dir_);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_THAT(*ids, ElementsAre("2", "5"));
  EXPECT_EQ(Written(kTrainCsv), "id,x,kind,note\r\n1,0.5,a,\"two\nlines\"\r\n4,3.5,b,\r\n");
  EXPECT_EQ(Written(kValidCsv), "id,x,kind,note\r\n2,1.5,b,\"a \"\"b\"\"\"\r\n5,4.5, a ,last\n");
}

TEST_F(FoldFilesTest, TheTestRowsLackTheTarget) {
  ASSERT_TRUE(WriteTestFile({"test.csv", kTesting}, *table_, dir_).ok());
  EXPECT_EQ(Written(kTestCsv), "id,x,note\n9,1,\"x,y\"\n10,2,z\n");
}

TEST_F(FoldFilesTest, TheTargetMayBeTheFirstOrTheLastColumn) {
  ASSERT_TRUE(WriteTestFile({"test.csv", "kind;x\n\"a;b\";1\n;2\n"}, *table_, dir_).ok());
  EXPECT_EQ(Written(kTestCsv), "x\n1\n2\n");
  ASSERT_TRUE(
      WriteTestFile({"test.csv", "x\tkind\r\n1\t\"a\n\"\"b\"\r\n2\t\r\n"}, *table_, dir_).ok());
  EXPECT_EQ(Written(kTestCsv), "x\r\n1\r\n2\r\n");
  ASSERT_TRUE(WriteTestFile({"test.csv", "x,y\n1,2\n3,4\n"}, *table_, dir_).ok());
  EXPECT_EQ(Written(kTestCsv), "x,y\n1,2\n3,4\n");
}

TEST_F(FoldFilesTest, AFileThatWasChangedMeanwhileIsRefused) {
  std::string other = kTraining;
  other.replace(other.find("2,1.5,b"), 7, "2,1.5,a");
  for (const std::string& text :
       {other, std::string(kTraining) + "\n6,1,a,x\n", std::string(kTraining).substr(0, 60),
        std::string("id,x\n1,2\n")}) {
    const absl::Status status = WriteFoldFiles({"train.csv", text}, *table_, rows_, dir_).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  }
  EXPECT_THAT(WriteTestFile({"test.csv", "id,x\n1,2\n"}, *table_, dir_).message(),
              HasSubstr("test.csv was changed"));
}

TEST_F(FoldFilesTest, NumbersWithDecimalCommasStayAsTheyAre) {
  constexpr char kCommas[] = "x;y\n1,5;0,25\n2,5;1.000,5\n";
  TableSource source;
  source.train = {"commas.csv", kCommas};
  source.target = "y";
  source.target_kind = TargetKind::kValue;
  const auto rows = ReadTable(source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const std::string path = absl::StrCat(dir_, "/commas");
  ASSERT_TRUE(WriteTable(*rows, path).ok());
  FoldRows split;
  split.training = {0};
  split.validation = {1};
  const auto ids = WriteFoldFiles({"commas.csv", kCommas}, **Table::Open(path), split, dir_);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(Written(kTrainCsv), "x;y\n1,5;0,25\n");
  EXPECT_EQ(Written(kValidCsv), "x;y\n2,5;1.000,5\n");
}

}  // namespace
}  // namespace traind
