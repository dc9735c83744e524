#include "server/intake/data_files.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "common/base/durable_file.h"
#include "tests/common/data/table/packed_bytes.h"

namespace traind {
namespace {

using testing::HasSubstr;

class DataFilesTest : public testing::Test {
 protected:
  DataFilesTest() {
    std::string folder = absl::StrCat(testing::TempDir(), "/files.XXXXXX");
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    char* const real = realpath(folder.c_str(), nullptr);
    folder_ = real;
    free(real);
    EXPECT_EQ(mkdir(In("data").c_str(), 0700), 0);
    EXPECT_EQ(mkdir(In("data2").c_str(), 0700), 0);
    files_ = std::make_unique<DataFiles>(std::vector<std::string>{In("data")});
  }
  std::string In(const std::string& name) const { return absl::StrCat(folder_, "/", name); }
  std::string Write(const std::string& name, const std::string& bytes) {
    EXPECT_EQ(WriteFileDurably(In(name), bytes), absl::OkStatus());
    return In(name);
  }
  absl::Status Look(const std::string& path) { return files_->Look(path).status(); }

  std::string folder_;
  std::unique_ptr<DataFiles> files_;
};

TEST_F(DataFilesTest, AGoodFileHasItsHeaderAndSize) {
  const std::string path = Write("data/a.csv", "x,y\n1,2\n");
  const auto file = files_->Look(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->path, path);
  EXPECT_EQ((*file)->bytes, 8);
  EXPECT_EQ((*file)->header, (std::vector<std::string>{"x", "y"}));
}

TEST_F(DataFilesTest, APathOutsideTheRootsIsRefused) {
  Write("data2/a.csv", "x,y\n1,2\n");
  Write("data/a.csv", "x,y\n1,2\n");
  // A neighbour whose name begins like the root is another folder.
  EXPECT_TRUE(absl::IsPermissionDenied(Look(In("data2/a.csv"))));
  EXPECT_TRUE(absl::IsPermissionDenied(Look(In("data/../data2/a.csv"))));
  EXPECT_TRUE(absl::IsPermissionDenied(Look("/etc/passwd")));
  EXPECT_TRUE(absl::IsPermissionDenied(Look("/proc/self/status")));
  EXPECT_TRUE(absl::IsInvalidArgument(Look("data/a.csv")));
  EXPECT_TRUE(absl::IsInvalidArgument(Look("")));
  EXPECT_EQ(Look(In("data/../data/a.csv")), absl::OkStatus());
}

TEST_F(DataFilesTest, ALinkIsJudgedByWhereItLeads) {
  Write("data/a.csv", "x,y\n1,2\n");
  Write("data2/b.csv", "x,y\n1,2\n");
  ASSERT_EQ(symlink("a.csv", In("data/good.csv").c_str()), 0);
  ASSERT_EQ(symlink(In("data2/b.csv").c_str(), In("data/escape.csv").c_str()), 0);
  ASSERT_EQ(symlink(In("data2").c_str(), In("data/folder").c_str()), 0);
  ASSERT_EQ(symlink("loop", In("data/loop").c_str()), 0);
  const auto good = files_->Look(In("data/good.csv"));
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ((*good)->path, In("data/a.csv"));
  EXPECT_TRUE(absl::IsPermissionDenied(Look(In("data/escape.csv"))));
  EXPECT_TRUE(absl::IsPermissionDenied(Look(In("data/folder/b.csv"))));
  EXPECT_FALSE(Look(In("data/loop")).ok());
}

TEST_F(DataFilesTest, ALinkThatIsTurnedOutwardsIsSeen) {
  Write("data/a.csv", "x,y\n1,2\n");
  Write("data2/b.csv", "x,y\n1,2\n");
  const std::string link = In("data/link.csv");
  ASSERT_EQ(symlink("a.csv", link.c_str()), 0);
  ASSERT_EQ(Look(link), absl::OkStatus());
  ASSERT_EQ(unlink(link.c_str()), 0);
  ASSERT_EQ(symlink(In("data2/b.csv").c_str(), link.c_str()), 0);
  EXPECT_TRUE(absl::IsPermissionDenied(Look(link)));
}

TEST_F(DataFilesTest, WhatIsNoRegularFileIsNamedAndDoesNotBlock) {
  ASSERT_EQ(mkfifo(In("data/pipe").c_str(), 0600), 0);
  EXPECT_THAT(std::string(Look(In("data/pipe")).message()), HasSubstr("not a regular file"));
  EXPECT_THAT(std::string(Look(In("data/.")).message()), testing::Not(testing::IsEmpty()));
  ASSERT_EQ(mkdir(In("data/sub").c_str(), 0700), 0);
  EXPECT_THAT(std::string(Look(In("data/sub")).message()), HasSubstr("is a folder"));
  EXPECT_TRUE(absl::IsNotFound(Look(In("data/none.csv"))));
}

TEST_F(DataFilesTest, AFirstPartThatIsNoTableIsNamedWithItsPlace) {
  EXPECT_FALSE(Look(Write("data/empty.csv", "")).ok());
  EXPECT_FALSE(Look(Write("data/header.csv", "x,y\n")).ok());
  EXPECT_FALSE(Look(Write("data/control.csv", "x\1,y\n1,2\n")).ok());
  EXPECT_FALSE(Look(Write("data/binary.csv", std::string("x,y\n\0\1\2\n", 8))).ok());
  const absl::Status ragged = Look(Write("data/ragged.csv", "x,y\n1,2\n3\n"));
  EXPECT_THAT(std::string(ragged.message()), HasSubstr("row 2"));
  EXPECT_THAT(std::string(ragged.message()), HasSubstr("ragged.csv"));
}

TEST_F(DataFilesTest, APackedOrEncodedTableIsLookedAtAsItsText) {
  const std::string table =
      "stra\xdf"
      "e,y\nK\xf6nigsallee,2\n";
  for (const std::string& path :
       {Write("data/a.csv", table), Write("data/a.csv.gz", testing_table::Gzip(table)),
        Write("data/a.zip", testing_table::Zip({{"a.csv", table}}))}) {
    const auto file = files_->Look(path);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->header, (std::vector<std::string>{"straße", "y"}));
    EXPECT_EQ((*file)->bytes, 25) << path;
    EXPECT_FALSE((*file)->arrays);
    EXPECT_EQ(files_->ReadTableStart(path)->text, "straße,y\nKönigsallee,2\n");
  }
  const std::string gzip = testing_table::Gzip(table);
  EXPECT_EQ(Look(Write("data/cut.csv.gz", gzip.substr(0, 30))).message(),
            "cut.csv.gz: the file is cut: its packed data do not end");
  EXPECT_EQ(
      Look(Write("data/other.csv", "x,y\n1,2\n\x81\xfc,3\n")).message(),
      "other.csv: row 2 (line 3), column 'x': byte 0x81 is not UTF-8; save the file as UTF-8");
}

TEST_F(DataFilesTest, NamesOfSeveralColumnsAreTold) {
  const auto file = files_->Look(Write("data/twice.csv", "x,x,y\n1,2,3\n"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->header, (std::vector<std::string>{"x", "x.1", "y"}));
  EXPECT_EQ((*file)->repeated, (std::vector<std::string>{"x"}));
}

TEST_F(DataFilesTest, ACharacterAtTheEndOfTheFirstMebibyteMayBeCut) {
  std::string big = "x,y\n";
  while (big.size() < (1 << 20) + 10) big += "\xe2\x82\xac,2\n";
  const auto file = files_->Look(Write("data/big.csv", big));
  ASSERT_TRUE(file.ok()) << file.status();
  for (const char* shift : {"a", "ab"}) {
    EXPECT_EQ(Look(Write("data/big.csv", absl::StrCat(shift, big))), absl::OkStatus());
  }
}

TEST_F(DataFilesTest, OnlyTheFirstMebibyteIsLookedAt) {
  std::string big = "x,y\n";
  while (big.size() < (1 << 20) + 100) big += "1,2\n";
  EXPECT_EQ(Look(Write("data/late.csv", big + "1,2,3\n")), absl::OkStatus());
  EXPECT_FALSE(Look(Write("data/early.csv", "x,y\n1,2,3\n" + big)).ok());
}

TEST_F(DataFilesTest, AChangedFileIsLookedAtAgain) {
  const std::string path = Write("data/a.csv", "x,y\n1,2\n");
  ASSERT_EQ(Look(path), absl::OkStatus());
  Write("data/a.csv", "x,z\n1,2\n");  // the same length as before
  EXPECT_EQ((*files_->Look(path))->header[1], "z");
  Write("data/a.csv", "x,z\n1,2,3\n");
  EXPECT_FALSE(Look(path).ok());
  Write("data/a.csv", "x,z\n1,2\n");
  EXPECT_EQ(Look(path), absl::OkStatus());
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_TRUE(absl::IsNotFound(Look(path)));
}

TEST_F(DataFilesTest, AFileThatIsNoTableIsResolvedBelowTheRootsAlone) {
  const std::string path = Write("data/a.model", "\n\x01");
  ASSERT_EQ(symlink(path.c_str(), (path + ".link").c_str()), 0);
  EXPECT_EQ(*files_->Resolve(path + ".link"), path);
  EXPECT_TRUE(absl::IsInvalidArgument(files_->Resolve("a.model").status()));
  EXPECT_TRUE(absl::IsNotFound(files_->Resolve(path + "s").status()));
  EXPECT_TRUE(absl::IsPermissionDenied(files_->Resolve("/etc/passwd").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(files_->Resolve(path.substr(0, path.rfind('/'))).status()));
}

TEST_F(DataFilesTest, ManyThreadsMayLook) {
  const std::string good = Write("data/a.csv", "x,y\n1,2\n"), bad = Write("data/b.csv", "x\n");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        EXPECT_TRUE(Look(good).ok());
        EXPECT_FALSE(Look(bad).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace traind
