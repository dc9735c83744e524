#include "common/base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "common/base/log_format.h"

namespace traind {
namespace {

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

}  // namespace
}  // namespace traind
