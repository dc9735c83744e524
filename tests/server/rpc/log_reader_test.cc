#include "server/rpc/log_reader.h"

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace traind {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kLines[] =
    "2026-11-23T06:01:50.193Z I worker/a.cc:7] attempt 13\n"
    "a library speaks\n"
    "2026-11-23T06:01:51.000Z W worker/b.cc:8] slow\n"
    "2026-11-23T06:01:52.000Z E worker/c.cc:9] broken\n";

class LogReaderTest : public testing::Test {
 protected:
  LogReaderTest()
      : path_(absl::StrCat(testing::TempDir(), "/",
                           testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::remove(path_);
  }
  void Append(const std::string& text) const {
    std::ofstream(path_, std::ios::binary | std::ios::app) << text;
  }
  static std::vector<std::string> Read(LogFile& file, const LogFilter& filter = {}, int tail = 0,
                                       bool whole = false) {
    std::vector<std::string> texts;
    file.Read(filter, tail, whole, [&](LogRecord record) {
      texts.push_back(record.text);
      return true;
    });
    return texts;
  }
  const std::string path_;
};

TEST_F(LogReaderTest, ALineHasItsMomentLevelAndText) {
  LogRecord record;
  ASSERT_TRUE(ParseLogLine("2026-11-23T06:01:51.250Z W worker/b.cc:8] slow", record));
  EXPECT_EQ(absl::ToUnixMillis(record.at), 1795413711250);
  EXPECT_EQ(record.level, LogLevel::kWarning);
  EXPECT_EQ(record.text, "worker/b.cc:8] slow");
  for (const char* other : {"", "W slow", "2026-11-23T06:01:51.250Z X worker/b.cc:8] slow",
                            "2026-99-23T06:01:51.250Z W worker/b.cc:8] slow"}) {
    EXPECT_FALSE(ParseLogLine(other, record)) << other;
  }
}

TEST_F(LogReaderTest, ReadingGoesOnWhereItStopped) {
  LogFile file(path_);
  EXPECT_THAT(Read(file), IsEmpty());  // the file is not there yet
  Append("one\ntwo\nthr");
  EXPECT_THAT(Read(file), ElementsAre("one", "two"));
  EXPECT_THAT(Read(file), IsEmpty());
  Append("ee\nfour");
  EXPECT_THAT(Read(file), ElementsAre("three"));
  EXPECT_THAT(Read(file, {}, 0, /*whole=*/true), ElementsAre("four"));
}

TEST_F(LogReaderTest, AnotherReaderBeginsAtAnOffset) {
  Append("one\ntwo\nthree\n");
  LogFile file(path_);
  int64_t offset = 0;
  // Stopped after the first line.
  EXPECT_FALSE(file.Read({}, 0, false, [&](const LogRecord& record) {
    offset = record.offset;
    return false;
  }));
  EXPECT_EQ(offset, 4);
  LogFile later(path_, offset);
  EXPECT_THAT(Read(later), ElementsAre("two", "three"));
}

TEST_F(LogReaderTest, FiltersPassByLevelTimeAndExpression) {
  Append(kLines);
  LogFilter level;
  level.least = LogLevel::kWarning;
  LogFile first(path_);
  EXPECT_THAT(Read(first, level), ElementsAre("worker/b.cc:8] slow", "worker/c.cc:9] broken"));
  LogFilter since;
  since.since = absl::FromUnixMillis(1795413712000);
  LogFile second(path_);
  EXPECT_THAT(Read(second, since), ElementsAre("worker/c.cc:9] broken"));
  LogFilter grep;
  grep.grep = std::make_shared<RE2>("^a lib|attempt \\d+$");
  LogFile third(path_);
  EXPECT_THAT(Read(third, grep), ElementsAre("worker/a.cc:7] attempt 13", "a library speaks"));
}

TEST_F(LogReaderTest, ALibrarysLineHasTheLevelOfTheLineBefore) {
  Append("2026-11-23T06:01:52.000Z E worker/c.cc:9] broken\n  at some place\n");
  LogFilter errors;
  errors.least = LogLevel::kError;
  LogFile file(path_);
  EXPECT_THAT(Read(file, errors), ElementsAre("worker/c.cc:9] broken", "  at some place"));
}

TEST_F(LogReaderTest, TheTailIsOfTheLinesThatPass) {
  Append(kLines);
  LogFilter level;
  level.least = LogLevel::kWarning;
  LogFile file(path_);
  EXPECT_THAT(Read(file, level, 1), ElementsAre("worker/c.cc:9] broken"));
}

TEST_F(LogReaderTest, AFileThatWasCutIsReadFromItsBeginning) {
  Append("one\ntwo\n");
  LogFile file(path_);
  Read(file);
  std::filesystem::resize_file(path_, 0);
  Append("new\n");
  EXPECT_THAT(Read(file), ElementsAre("new"));
}

TEST_F(LogReaderTest, ALineWithoutEndComesInParts) {
  Append(std::string(200'000, 'x'));
  LogFile file(path_);
  size_t bytes = 0;
  for (const std::string& text : Read(file, {}, 0, /*whole=*/true)) {
    bytes += text.size();
  }
  EXPECT_EQ(bytes, 200'000u);
}

TEST_F(LogReaderTest, ALinkIsNotFollowed) {
  Append("secret\n");
  std::filesystem::remove(path_ + ".link");
  std::filesystem::create_symlink(path_, path_ + ".link");
  LogFile file(path_ + ".link");
  EXPECT_THAT(Read(file), IsEmpty());
}

}  // namespace
}  // namespace traind
