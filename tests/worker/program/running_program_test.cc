#include "worker/program/running_program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "common/base/clock.h"
#include "worker/program/log_quota.h"
#include "worker/program/process_tree.h"

namespace traind {
namespace {

// A real program under the real keeper.
class RunningProgramTest : public testing::Test {
 protected:
  static UserProgramStart StartOf(const std::string& script) {
    UserProgramStart start;
    start.command = {"/bin/sh", "-c", script};
    start.environment = {"TOLD=yes"};
    start.folder = testing::TempDir();
    char real[4096];
    EXPECT_NE(realpath("worker/trainprog", real), nullptr);
    start.keeper = real;
    return start;
  }
  void Start(const std::string& script) { Begin(StartOf(script)); }
  void Begin(const UserProgramStart& start) {
    auto program = RunningProgram::Start(
        start, {[this](absl::string_view line) { output_.emplace_back(line); },
                [this](absl::string_view line) { reports_.emplace_back(line); }});
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
  }
  // Until done() or ten seconds are over.
  template <class Done>
  bool Until(const Done& done) {
    const absl::Duration by = SystemClock().MonotonicNow() + absl::Seconds(10);
    while (!done() && SystemClock().MonotonicNow() < by) program_->Poll(absl::Milliseconds(20));
    return done();
  }
  bool UntilEnd() {
    return Until([this] { return program_->end().has_value(); });
  }
  bool UntilLine(const std::string& line) {
    return Until([&] { return std::find(output_.begin(), output_.end(), line) != output_.end(); });
  }
  // The kernel's list of processes with this in their environment.
  static int Marked() {
    int marked = 0;
    for (const pid_t pid : Descendants(1)) {
      std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
      const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      marked += all.find(std::string("TOLD=yes") + '\0') != std::string::npos;
    }
    return marked;
  }

  std::unique_ptr<RunningProgram> program_;
  std::vector<std::string> output_, reports_;
};

TEST_F(RunningProgramTest, OutputReportsAndStatusAreTold) {
  Start("echo out; echo err >&2; printf '{\"epoch\": 1}\\nrest' >&3; echo $TOLD; exit 7");
  ASSERT_TRUE(UntilEnd());
  EXPECT_EQ(WEXITSTATUS(program_->end()->wait_status), 7);
  EXPECT_EQ(program_->end()->exec_error, 0);
  EXPECT_EQ(output_, (std::vector<std::string>{"out", "err", "yes"}));
  EXPECT_EQ(reports_, (std::vector<std::string>{"{\"epoch\": 1}", "rest"}));
  EXPECT_GT(program_->end()->peak_bytes, 0);
}

TEST_F(RunningProgramTest, ACommandThatIsNotThereIsAnErrorOfTheSystem) {
  UserProgramStart start;
  start.command = {"/no/such/program"};
  start.folder = testing::TempDir();
  char real[4096];
  ASSERT_NE(realpath("worker/trainprog", real), nullptr);
  start.keeper = real;
  Begin(start);
  ASSERT_TRUE(UntilEnd());
  EXPECT_EQ(program_->end()->exec_error, ENOENT);
}

// What a machine cannot do it says; a program never runs with more than it is to have.
TEST_F(RunningProgramTest, AProgramWithoutANetworkReachesNoPortAndHasItsLoopback) {
  UserProgramStart start = StartOf(
      "grep -c : /proc/net/dev; grep -c ' 00000000' /proc/net/route; "
      "echo $(id -u)");
  start.offline = true;
  Begin(start);
  ASSERT_TRUE(UntilEnd());
  if (program_->end()->exec_error != 0) {
    EXPECT_EQ(program_->end()->failed_step, StartStep::kOffline);
    GTEST_SKIP() << "this machine has no namespaces for its users";
  }
  EXPECT_EQ(output_, (std::vector<std::string>{"1", "0", std::to_string(getuid())}));
}

TEST_F(RunningProgramTest, AProgramThatOwnsItsFoldersWritesToThemAlone) {
  // /tmp is open to all programs.
  const std::string own = "own-folder", other = "other-folder";
  for (const std::string& folder : {own, other}) mkdir(folder.c_str(), 0700);
  char real[4096];
  ASSERT_NE(realpath(own.c_str(), real), nullptr);
  if (std::string(real).rfind("/tmp/", 0) == 0) GTEST_SKIP() << "all of it lies below /tmp";
  UserProgramStart start = StartOf(
      "echo x > in.txt; mkdir deep; mv in.txt deep; cat deep/in.txt; "
      "echo y > ../other-folder/out.txt || echo refused; "
      "rm -rf ../other-folder; test -d ../other-folder && echo there");
  start.folder = real;
  start.writable = {real, "/no/such/folder"};
  Begin(start);
  ASSERT_TRUE(UntilEnd());
  if (program_->end()->exec_error != 0) {
    EXPECT_EQ(program_->end()->failed_step, StartStep::kOwnFolders);
    GTEST_SKIP() << "this kernel has no Landlock";
  }
  for (const char* line : {"x", "refused", "there"}) {
    EXPECT_EQ(std::count(output_.begin(), output_.end(), line), 1) << line;
  }
}

TEST_F(RunningProgramTest, AProgramGainsNoPrivileges) {
  Start("grep NoNewPrivs /proc/self/status");
  ASSERT_TRUE(UntilEnd());
  EXPECT_EQ(output_, std::vector<std::string>{"NoNewPrivs:\t1"});
}

TEST_F(RunningProgramTest, AProgramEndsFirstWhereMemoryRunsOutAndLeavesNoImageOfIt) {
  Start("cat /proc/self/oom_score_adj; ulimit -c; ulimit -H -c");
  ASSERT_TRUE(UntilEnd());
  EXPECT_EQ(output_, (std::vector<std::string>{"900", "0", "0"}));
}

TEST_F(RunningProgramTest, ASoftStopReachesWhoCatchesItAndNobodyElse) {
  Start(
      "(sleep 30; echo never) & trap 'echo caught; exit 3' USR1; echo ready; "
      "while :; do sleep 0.05; done");
  ASSERT_TRUE(UntilLine("ready"));
  program_->Order(KeeperOrder::kSoftStop);
  ASSERT_TRUE(UntilEnd());
  EXPECT_EQ(WEXITSTATUS(program_->end()->wait_status), 3);
  EXPECT_NE(std::find(output_.begin(), output_.end(), "caught"), output_.end());
  EXPECT_GE(program_->end()->left_behind, 1);
  EXPECT_EQ(Marked(), 0);
}

TEST_F(RunningProgramTest, AKillReachesProcessesThatLeftTheirGroup) {
  Start(
      "trap '' TERM; (setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' &) ; echo ready; "
      "while :; do sleep 0.1; done");
  ASSERT_TRUE(UntilLine("ready"));
  program_->Order(KeeperOrder::kTerminate);
  program_->Poll(absl::Milliseconds(300));
  EXPECT_FALSE(program_->end().has_value());
  program_->Order(KeeperOrder::kKill);
  ASSERT_TRUE(UntilEnd());
  EXPECT_EQ(WTERMSIG(program_->end()->wait_status), SIGKILL);
  EXPECT_EQ(Marked(), 0);
}

TEST_F(RunningProgramTest, WithoutItsParentNothingStays) {
  Start("(setsid sleep 60 &); echo ready; sleep 60");
  ASSERT_TRUE(UntilLine("ready"));
  EXPECT_GT(Marked(), 0);
  program_.reset();
  EXPECT_EQ(Marked(), 0);
}

TEST_F(RunningProgramTest, AKilledKeeperIsTheEndOfTheProgramToo) {
  Start("(setsid sleep 60 &); echo ready; sleep 60");
  ASSERT_TRUE(UntilLine("ready"));
  for (const pid_t pid : Descendants(getpid())) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline", std::ios::binary);
    std::string command{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (command.find("--keep") != std::string::npos) kill(pid, SIGKILL);
  }
  ASSERT_TRUE(UntilEnd());
  EXPECT_EQ(WTERMSIG(program_->end()->wait_status), SIGKILL);
  EXPECT_EQ(Marked(), 0);
}

TEST_F(RunningProgramTest, MuchOutputIsReadToItsEnd) {
  Start("yes 0123456789 | head -c 20000000; echo; echo end");
  ASSERT_TRUE(UntilEnd());
  size_t bytes = 0;
  for (const std::string& line : output_) bytes += line.size() + 1;
  EXPECT_GE(bytes, 20'000'000u);
  EXPECT_EQ(output_.back(), "end");
}

// Each line takes its reader a millisecond; the program has 50,000 of them ready.
TEST_F(RunningProgramTest, OutputWithoutEndDoesNotKeepItsReaderFromAllElse) {
  SimulatedClock clock(absl::UnixEpoch());
  auto program = RunningProgram::Start(
      StartOf("yes 'a line that says nothing'"),
      {[&clock](absl::string_view) { clock.Advance(absl::Milliseconds(1)); }, nullptr}, clock);
  ASSERT_TRUE(program.ok()) << program.status();
  for (int i = 0; i < 10; ++i) {
    const absl::Duration before = clock.MonotonicNow();
    (*program)->Poll(absl::Seconds(10));
    EXPECT_LT(clock.MonotonicNow() - before, absl::Seconds(1));
  }
  EXPECT_GT(clock.MonotonicNow(), absl::ZeroDuration());
}

TEST(LogQuota, ItTakesABurstThenSoManyLinesASecondAndCountsTheOthers) {
  LogQuota quota;
  const absl::Duration start = absl::Hours(5);
  int taken = 0;
  for (int i = 0; i < 30'000; ++i) taken += quota.Takes(start);
  EXPECT_EQ(taken, 20'000);
  EXPECT_EQ(quota.TakeLeftOut(start), 10'000);
  for (int i = 0; i < 30'000; ++i) taken += quota.Takes(start + absl::Seconds(1));
  EXPECT_EQ(taken, 25'000);
  EXPECT_EQ(quota.TakeLeftOut(start + absl::Milliseconds(999)), 0);
  EXPECT_EQ(quota.TakeLeftOut(start + absl::Seconds(1)), 25'000);
  EXPECT_EQ(quota.TakeLeftOut(absl::InfiniteDuration()), 0);
}

TEST(LineCutter, LinesAreWholeAndLongOnesComeInParts) {
  LineCutter cutter;
  std::vector<std::string> lines;
  const auto take = [&lines](absl::string_view line) { lines.emplace_back(line); };
  cutter.Add("a", take);
  cutter.Add("b\nc\rd\r\n\n", take);
  EXPECT_EQ(lines, (std::vector<std::string>{"ab", "c", "d"}));
  lines.clear();
  cutter.Add(std::string(3 * LineCutter::kMost, 'x'), take);
  cutter.Finish(take);
  size_t bytes = 0;
  for (const std::string& line : lines) bytes += line.size();
  EXPECT_EQ(bytes, 3 * LineCutter::kMost);
}

}  // namespace
}  // namespace traind
