#include "common/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/base/log_format.h"

namespace traind {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

// Puts a pipe in the place of stderr, until it is destroyed.
class StderrPipe {
 public:
  StderrPipe() {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC), 0);
    saved_ = dup(STDERR_FILENO);
    dup2(ends_[1], STDERR_FILENO);
  }
  ~StderrPipe() {
    dup2(saved_, STDERR_FILENO);
    for (const int fd : {ends_[0], ends_[1], saved_}) close(fd);
  }
  // The bytes that are in the pipe now.
  std::string Read() {
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string text(1 << 20, '\0');
    const ssize_t got = read(ends_[0], text.data(), text.size());
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }

 private:
  int ends_[2], saved_;
};

TEST(LogTest, ALineHasItsPlaceAndNoControlBytes) {
  StderrPipe out;
  TRAIND_LOG(INFO) << "a\nb";
  EXPECT_THAT(out.Read(), HasSubstr("log_test.cc"));
  TRAIND_LOG(INFO) << "a\nb";
  EXPECT_THAT(out.Read(), HasSubstr("a\\x0ab\n"));
}

TEST(LogTest, ALongLineIsCut) {
  StderrPipe out;
  TRAIND_LOG(INFO) << std::string(20000, 'x');
  const std::string line = out.Read();
  EXPECT_THAT(line, EndsWith("x...\n"));
  EXPECT_LE(line.size(), size_t{8192} + 4);
}

TEST(LogTest, JsonHasAnObjectPerLine) {
  StderrPipe out;
  SetLogFormat(LogFormat::kJson);
  TRAIND_LOG(WARNING) << "a\nb \"quoted\" \\";
  SetLogFormat(LogFormat::kText);
  const std::string line = out.Read();
  EXPECT_THAT(line, HasSubstr("{\"at\":\"20"));
  EXPECT_THAT(line, HasSubstr("\"level\":\"warning\",\"where\":\""));
  EXPECT_THAT(line, HasSubstr("\"text\":\"a\\u000ab \\\"quoted\\\" \\\\\"}\n"));
}

TEST(LogTest, NobodyWaitsForAReaderThatDoesNotRead) {
  StderrPipe out;
  for (int i = 0; i < 1000; ++i) TRAIND_LOG(INFO) << std::string(1000, 'x');  // a pipe has 64 KiB
  EXPECT_THAT(out.Read(), Not(HasSubstr("missing")));
  TRAIND_LOG(INFO) << "heard again";
  const std::string after = out.Read();
  EXPECT_THAT(after, HasSubstr("lines are missing here)\n"));
  EXPECT_THAT(after, HasSubstr("heard again"));
}

// Writes 12 MB by several threads into a file of at most 1 MB, and gives all files back.
class LogFileTest : public ::testing::Test {
 protected:
  LogFileTest() : saved_(dup(STDERR_FILENO)) { std::filesystem::create_directories(folder_); }
  ~LogFileTest() override {
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    std::filesystem::remove_all(folder_);
  }
  const std::string folder_ = "/tmp/traind-log-test-" + std::to_string(getpid());
  const std::string path_ = folder_ + "/traind.log";

 private:
  const int saved_;
};

TEST_F(LogFileTest, AFloodLeavesFourFilesOfWholeLinesWithTheNewestAtTheEnd) {
  constexpr int64_t kMost = 1'000'000;
  ASSERT_TRUE(LogToFile(path_, kMost).ok());
  constexpr int kThreads = 4, kLines = 3000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kLines; ++i) TRAIND_LOG(INFO) << std::string(900, 'x') << " " << t;
    });
  }
  for (std::thread& thread : threads) thread.join();
  TRAIND_LOG(INFO) << "the last line";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    names.push_back(entry.path().filename());
    EXPECT_LE(static_cast<int64_t>(entry.file_size()), kMost) << entry.path();
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"traind.log", "traind.log.1", "traind.log.2",
                                             "traind.log.3"}));
  std::string last;
  for (const std::string& name : names) {
    std::ifstream in(folder_ + "/" + name);
    std::string line;
    while (std::getline(in, line)) {
      ASSERT_EQ(line.substr(0, 2), "20") << name << ": a line was cut: " << line;
      if (name == "traind.log") last = line;
    }
  }
  EXPECT_THAT(last, HasSubstr("the last line"));
}

TEST_F(LogFileTest, WhereNoOldFileCanBeMadeTheFileGrowsOn) {
  ASSERT_TRUE(LogToFile(path_, 10'000).ok());
  std::filesystem::create_directories(path_ + ".new");  // stands in for a full disk
  for (int i = 0; i < 100; ++i) TRAIND_LOG(INFO) << std::string(900, 'x');
  EXPECT_GT(std::filesystem::file_size(path_), 90'000u);
  EXPECT_FALSE(LogToFile(folder_ + "/none/traind.log", 10'000).ok());
}

}  // namespace
}  // namespace traind
