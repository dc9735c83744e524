#include "server/archive/log_copy.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "common/base/durable_file.h"
#include "common/base/log_files.h"
#include "common/base/write_all.h"

namespace traind {
namespace {

constexpr int64_t kMany = 1 << 20;
const LogNames kNames = {"log", "log.1"};

std::string NewFolder() {
  std::string folder = absl::StrCat(testing::TempDir(), "/log.XXXXXX");
  EXPECT_NE(mkdtemp(folder.data()), nullptr);
  return folder;
}

class LogCopyTest : public testing::Test {
 protected:
  ~LogCopyTest() override {
    if (log_ >= 0) close(log_);
  }
  void Write(const std::string& text) {
    if (log_ < 0) log_ = OpenLogFile(from_ + "/log").value();
    ASSERT_EQ(WriteAll(log_, text, "log"), absl::OkStatus());
  }
  void Rotate() {
    const int fresh = RotateLogFiles(from_ + "/log", {from_ + "/log.1"}).value();
    close(log_);
    log_ = fresh;
  }
  std::string Copied(const std::string& name) const {
    return ReadFile(absl::StrCat(to_, "/", name)).value_or("none");
  }

  const std::string from_ = NewFolder(), to_ = NewFolder();
  int log_ = -1;
};

TEST_F(LogCopyTest, GetsWhatIsNewEachTime) {
  LogCopy copy(from_, to_, kNames);
  EXPECT_EQ(copy.CatchUp(kMany), absl::OkStatus());
  EXPECT_EQ(Copied("log"), "none");
  Write("one\n");
  EXPECT_EQ(copy.CatchUp(kMany), absl::OkStatus());
  EXPECT_EQ(Copied("log"), "one\n");
  Write("two\n");
  EXPECT_EQ(copy.CatchUp(kMany), absl::OkStatus());
  EXPECT_EQ(Copied("log"), "one\ntwo\n");
}

TEST_F(LogCopyTest, ALogThatBecameTheOlderOneIsCopiedToItsEndFirst) {
  LogCopy copy(from_, to_, kNames);
  Write("one\n");
  EXPECT_EQ(copy.CatchUp(kMany), absl::OkStatus());
  Write("two\n");
  Rotate();
  Write("three\n");
  EXPECT_EQ(copy.CatchUp(kMany), absl::OkStatus());
  EXPECT_EQ(Copied("log.1"), "one\ntwo\n");
  EXPECT_EQ(Copied("log"), "three\n");
}

TEST_F(LogCopyTest, ACopyThatIsNotCompleteDoesNotTakeTheNameOfTheOneBefore) {
  ASSERT_EQ(WriteFileDurably(to_ + "/log", "of the traind before"), absl::OkStatus());
  LogCopy copy(from_, to_, kNames);
  Write("0123456789");
  EXPECT_EQ(copy.CatchUp(4), absl::OkStatus());
  EXPECT_EQ(Copied("log"), "of the traind before");
  EXPECT_EQ(copy.CatchUp(kMany), absl::OkStatus());
  EXPECT_EQ(Copied("log"), "0123456789");
}

TEST_F(LogCopyTest, ACopyThatLostItsNameIsMadeAnew) {
  LogCopy copy(from_, to_, kNames);
  Write("one\n");
  EXPECT_EQ(copy.CatchUp(kMany), absl::OkStatus());
  ASSERT_EQ(WriteFileDurably(to_ + "/log", "of one that woke up late"), absl::OkStatus());
  Write("two\n");
  EXPECT_EQ(copy.CatchUp(kMany), absl::OkStatus());
  EXPECT_EQ(Copied("log"), "one\ntwo\n");
}

}  // namespace
}  // namespace traind
