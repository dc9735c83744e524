#include "common/base/run_program.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace traind {
namespace {

constexpr size_t kMost = 1 << 20;

TEST(RunProgramTest, OutputAndExitCodeAreTheProgramsOwn) {
  const auto run =
      RunProgram({"/bin/sh", "-c", "cat; printf 'a b'; exit 3"}, absl::Seconds(20), kMost);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->output, "a b");
  EXPECT_EQ(WEXITSTATUS(run->ended), 3);
}

TEST(RunProgramTest, OneThatDoesNotEndIsKilled) {
  const auto run = RunProgram({"/bin/sleep", "1000"}, absl::Milliseconds(50), kMost);
  EXPECT_EQ(run.status().code(), absl::StatusCode::kDeadlineExceeded) << run.status();
}

TEST(RunProgramTest, OneThatOnlyClosesItsOutputIsKilled) {
  const auto run = RunProgram({"/bin/sh", "-c", "printf done; exec sleep 1000 >&-"},
                              absl::Milliseconds(50), kMost);
  EXPECT_EQ(run.status().code(), absl::StatusCode::kDeadlineExceeded) << run.status();
}

TEST(RunProgramTest, OneThatWritesWithoutEndIsKilled) {
  const auto run = RunProgram({"/bin/cat", "/dev/zero"}, absl::Seconds(60), kMost);
  EXPECT_EQ(run.status().code(), absl::StatusCode::kResourceExhausted) << run.status();
}

TEST(RunProgramTest, OneThatIsNotThereIsNamed) {
  const auto run = RunProgram({"/nowhere/program"}, absl::Seconds(1), kMost);
  EXPECT_EQ(run.status().code(), absl::StatusCode::kNotFound) << run.status();
  EXPECT_NE(run.status().message().find("/nowhere/program"), std::string::npos);
}

}  // namespace
}  // namespace traind
