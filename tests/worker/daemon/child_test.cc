#include "worker/daemon/child.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "common/base/durable_file.h"
#include "common/base/log_format.h"

namespace traind::worker {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kPatienceMs = 20'000;

std::unique_ptr<Child> Shell(const std::string& command, std::vector<std::string> env = {},
                             int nice_add = 0) {
  int error = 0;
  auto child = Child::Start({"/bin/sh", {"-c", command}, std::move(env), nice_add}, &error);
  EXPECT_TRUE(child.ok()) << child.status();
  return *std::move(child);
}

ExitStatus WaitForEnd(Child& child) {
  pollfd fd{child.exit_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&fd, 1, kPatienceMs), 1);
  const std::optional<ExitStatus> status = child.Reap();
  EXPECT_TRUE(status.has_value());
  return status.value_or(ExitStatus{});
}

std::string ReadLine(Child& child) {
  return child.channel().ReadLine(absl::Milliseconds(kPatienceMs)).value_or("(none)");
}

TEST(ChildTest, SpeaksOverItsChannelAndTellsItsExitStatus) {
  const auto child = Shell("read line; echo got $line; exit 7");
  ASSERT_TRUE(child->channel().QueueLine("hello").ok());
  EXPECT_EQ(ReadLine(*child), "got hello");
  const ExitStatus status = WaitForEnd(*child);
  EXPECT_EQ(status.kind, ExitStatus::kExited);
  EXPECT_EQ(status.code, 7);
  EXPECT_FALSE(child->Reap().has_value());
}

TEST(ChildTest, TellsTheSignalAndTheLastWords) {
  const auto child = Shell("echo first >&2; echo 'no memory left' >&2; kill -SEGV $$");
  const ExitStatus status = WaitForEnd(*child);
  EXPECT_EQ(status.kind, ExitStatus::kSignalled);
  EXPECT_EQ(status.code, SIGSEGV);
  EXPECT_EQ(ExitText(status), "signal 11 (Segmentation fault); last said: no memory left");
}

TEST(ChildTest, AMissingProgramIsAnErrorWithItsReason) {
  int error = 0;
  const auto child = Child::Start({"/nowhere/trainrank", {}, {}, 0}, &error);
  EXPECT_EQ(error, ENOENT);
  EXPECT_THAT(child.status().ToString(), HasSubstr("/nowhere/trainrank"));
}

TEST(ChildTest, EnvironmentIsTheWorkersWithTheGivenOver) {
  setenv("TRAIND_TEST_KEPT", "kept", 1);
  setenv("TRAIND_TEST_SET", "old", 1);
  const auto child = Shell("echo $TRAIND_TEST_KEPT $TRAIND_TEST_SET", {"TRAIND_TEST_SET=new"});
  EXPECT_EQ(ReadLine(*child), "kept new");
}

TEST(ChildTest, IsNicerThanTheWorker) {
  const int own = getpriority(PRIO_PROCESS, 0);
  const auto child = Shell("nice", {}, 5);
  EXPECT_EQ(ReadLine(*child), std::to_string(std::min(19, own + 5)));
}

TEST(ChildTest, InheritsNoDescriptors) {
  // One that a library opened without O_CLOEXEC.
  const int leaked = open("/dev/null", O_RDONLY);
  const auto child = Shell("ls /proc/self/fd | wc -l");
  EXPECT_EQ(ReadLine(*child), "4") << "0, 1, 2 and ls's own";
  close(leaked);
}

TEST(ChildTest, StartsWithDefaultSignals) {
  struct sigaction before = {};
  sigaction(SIGUSR1, nullptr, &before);
  signal(SIGUSR1, SIG_IGN);
  sigset_t block, old;
  sigemptyset(&block);
  sigaddset(&block, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &block, &old);
  const auto child = Shell("kill -USR1 $$; echo survived");
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(WaitForEnd(*child).code, SIGUSR1);
}

bool Alive(pid_t pid) {
  // A zombie that nobody reaps is dead.
  const std::string text = ReadFile(absl::StrCat("/proc/", pid, "/stat")).value_or("");
  const size_t paren = text.rfind(')');
  return paren != std::string::npos && text[paren + 2] != 'Z' && text[paren + 2] != 'X';
}

bool DiesSoon(pid_t pid) {
  for (int i = 0; i < kPatienceMs / 10; ++i) {
    if (!Alive(pid)) return true;
    usleep(10'000);
  }
  return false;
}

TEST(ChildTest, KillTakesTheWholeGroup) {
  const auto child = Shell("sleep 1000 & echo $!; wait");
  const pid_t grandchild = std::stoi(ReadLine(*child));
  EXPECT_TRUE(Alive(grandchild));
  child->Kill();
  EXPECT_EQ(WaitForEnd(*child).code, SIGKILL);
  EXPECT_TRUE(DiesSoon(grandchild));
}

TEST(ChildTest, WhatItLeavesBehindEndsWithIt) {
  const auto child = Shell("sleep 1000 & echo $!");
  const pid_t grandchild = std::stoi(ReadLine(*child));
  EXPECT_EQ(WaitForEnd(*child).code, 0);
  EXPECT_TRUE(DiesSoon(grandchild));
}

TEST(ChildTest, DiesWithTheThreadThatStartedIt) {
  std::unique_ptr<Child> child;
  std::thread([&] { child = Shell("while :; do sleep 1; done"); }).join();
  EXPECT_EQ(WaitForEnd(*child).code, SIGKILL);
}

class ChildLogTest : public ::testing::Test {
 protected:
  ChildLogTest() {
    path_ = absl::StrCat(::testing::TempDir(), "/child_log_test/",
                         ::testing::UnitTest::GetInstance()->current_test_info()->name(),
                         "/attempts/1/rank0.log");
    std::filesystem::remove(path_);
  }
  std::string Log() { return ReadFile(path_).value_or("(no file)"); }
  // The lines without their moments.
  std::vector<std::string> Texts() {
    const std::string log = Log();
    std::vector<std::string> texts;
    for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(log, "\n"), '\n')) {
      texts.emplace_back(HasLogHead(line) ? line.substr(kLogHeadBytes - 2) : line);
    }
    return texts;
  }
  std::string path_;
};

TEST_F(ChildLogTest, StderrAndNotesGoToTheFileAndAreAppended) {
  for (int i = 0; i < 2; ++i) {
    const auto child = Shell("read go; echo oops >&2; echo done; read end");
    child->LogTo(path_);
    child->WriteLog(LogLevel::kWarning, "hello");
    ASSERT_TRUE(child->channel().QueueLine("go").ok());
    EXPECT_EQ(ReadLine(*child), "done");
    child->DrainStderr();
  }
  EXPECT_THAT(Texts(), ElementsAre("W hello", "W oops", "W hello", "W oops"));
}

TEST_F(ChildLogTest, ALineWithAMomentKeepsItAndOneWithoutGetsTheLevelOfTheLineBefore) {
  const auto child = Shell(
      "read go; echo '2026-11-21T14:05:09.123Z E a.cc:1] broken' >&2; printf '\\n  at ' >&2; "
      "echo done; read more; echo some place >&2; printf open >&2; echo done; read end");
  child->LogTo(path_);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(child->channel().QueueLine("go").ok());
    EXPECT_EQ(ReadLine(*child), "done");
    child->DrainStderr();
  }
  child->WriteLog(LogLevel::kInfo, "a note");
  EXPECT_THAT(Texts(),
              ElementsAre("E a.cc:1] broken", "", "E   at some place", "E open", "I a note"));
  EXPECT_EQ(Log().substr(0, 24), "2026-11-21T14:05:09.123Z");
}

TEST_F(ChildLogTest, AnEndlessLogKeepsItsBeginningAndItsEndAndTheProcessGoesOn) {
  const auto child = Shell(
      "read go; echo first >&2; yes 0123456789 | head -c 39999993 >&2; echo the cause >&2; echo "
      "done");
  child->LogTo(path_);
  ASSERT_TRUE(child->channel().QueueLine("go").ok());
  pollfd fds[] = {{child->stderr_fd(), POLLIN, 0}, {child->channel().read_fd(), POLLIN, 0}};
  while ((fds[1].revents & POLLIN) == 0) {
    ASSERT_GT(poll(fds, 2, kPatienceMs), 0);
    child->DrainStderr();
    if (child->stderr_fd() < 0) fds[0].fd = -1;
  }
  EXPECT_EQ(ReadLine(*child), "done");
  for (int i = 0; i < 100; ++i) child->DrainStderr();
  EXPECT_LT(Log().size(), (16u << 20) + 100);
  child->LogTo("");
  const std::string log = Log();
  EXPECT_LT(log.size(), (17u << 20));
  EXPECT_GT(log.size(), 15u << 20);
  EXPECT_EQ(log.substr(kLogHeadBytes, 6), "first\n");
  const std::string end = log.substr(log.size() - (66 << 10));
  EXPECT_THAT(end, HasSubstr("This log is full"));
  EXPECT_THAT(end, HasSubstr(" bytes are missing here)\n2"));
  EXPECT_THAT(end, ContainsRegex("Z I 0123456789\n.*Z I the cause\n$"));
}

TEST_F(ChildLogTest, AFolderThatCannotBeMadeDoesNotHurt) {
  const auto child = Shell("read go; echo lost >&2; exit 3");
  child->LogTo("/proc/nowhere/rank0.log");
  ASSERT_TRUE(child->channel().QueueLine("go").ok());
  const ExitStatus status = WaitForEnd(*child);
  EXPECT_EQ(status.code, 3);
  EXPECT_EQ(status.last_line, "lost");
}

}  // namespace
}  // namespace traind::worker
