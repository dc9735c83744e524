// The trainworker program as it is started by hand or by traind.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/base/durable_file.h"
#include "common/base/job_layout.h"
#include "tests/worker/daemon/fake_coordinator.h"

extern char** environ;

// The sanitizers' run times define these; without sanitizers they are null.
extern "C" {
__attribute__((weak)) void __asan_init();
__attribute__((weak)) void __tsan_init();
}

namespace traind::worker {
namespace {

using ::testing::HasSubstr;

constexpr char kTrainworker[] = "worker/trainworker";
constexpr char kFakeRank[] = "tests/worker/daemon/fake_rank";

template <class Condition>
bool Eventually(Condition condition) {
  const absl::Time until = absl::Now() + absl::Seconds(20);
  while (!condition()) {
    if (absl::Now() > until) return false;
    absl::SleepFor(absl::Milliseconds(5));
  }
  return true;
}

// Pids of live processes whose command line holds the text.
std::vector<pid_t> ProcessesWith(const std::string& text) {
  std::vector<pid_t> pids;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string line = ReadFile(entry.path() / "cmdline").value_or("");
    if (absl::StrContains(line, text)) pids.push_back(std::stoi(name));
  }
  return pids;
}

class TrainworkerTest : public ::testing::Test {
 protected:
  TrainworkerTest()
      : state_(absl::StrCat("/tmp/traind-worker-test-", getpid(), "-", ++counter_)),
        coordinator_(absl::StrCat("unix:", state_, "/worker.sock")) {
    std::filesystem::create_directories(state_);
    // A name of its own: to find its processes by.
    rank_ = state_ + "/rank";
    std::filesystem::create_symlink(std::filesystem::absolute(kFakeRank), rank_);
  }
  ~TrainworkerTest() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    coordinator_.Stop();
    EXPECT_TRUE(Eventually([&] { return ProcessesWith(rank_).empty(); }));
    std::filesystem::remove_all(state_);
  }

  pid_t Spawn(const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = {kTrainworker,
                                     "--state",
                                     state_,
                                     "--coordinator",
                                     absl::StrCat("unix:", state_, "/worker.sock"),
                                     "--standalone",
                                     "--slots",
                                     "2",
                                     "--device",
                                     device_,
                                     "--trainrank",
                                     rank_,
                                     "--trainprep",
                                     rank_,
                                     "--log",
                                     state_ + "/log"};
    args.insert(args.end(), more.begin(), more.end());
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    pid_t pid = 0;
    EXPECT_EQ(posix_spawn(&pid, kTrainworker, nullptr, nullptr, argv.data(), environ), 0);
    return pid;
  }
  int ExitCode(pid_t pid) {
    int status = -1;
    const bool ended = Eventually([&] { return waitpid(pid, &status, WNOHANG) == pid; });
    if (pid == pid_) pid_ = 0;
    return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string Log() { return ReadFile(state_ + "/log").value_or(""); }

  static inline int counter_ = 0;
  const std::string state_;
  std::string rank_;
  std::string device_ = "cpu";
  FakeCoordinator coordinator_;
  pid_t pid_ = 0;
};

// Under a driver's management library that lists two GPUs; one of them may be broken.
class GpuWorkerTest : public TrainworkerTest {
 protected:
  GpuWorkerTest() {
    device_ = "auto";
    setenv("LD_LIBRARY_PATH", std::filesystem::absolute("tests/worker/daemon").c_str(), 1);
  }
  ~GpuWorkerTest() override {
    unsetenv("LD_LIBRARY_PATH");
    unsetenv("FAKE_BROKEN_GPU");
    unsetenv("CUDA_VISIBLE_DEVICES");
  }

  void Train(const std::string& script, const std::vector<int>& slots) {
    v1::CoordinatorMessage message;
    v1::StartTask& start = *message.mutable_start();
    start.set_attempt(7);
    start.set_job("job-1");
    start.set_kind(v1::StartTask::KIND_TRAIN);
    start.set_spec_json(absl::StrCat(R"({"script":[)", script, "]}"));
    start.set_remaining_ms(-1);
    start.set_stop_ms(-1);
    for (const int slot : slots) start.add_slots(slot);
    start.set_world_size(static_cast<int>(slots.size()));
    coordinator_.Send(message);
  }
  // What it told of the Attempt's resources, first and last.
  std::vector<v1::Resources> Resources() {
    std::vector<v1::Resources> told;
    for (const v1::WorkerMessage& message : coordinator_.messages()) {
      if (message.report().has_resources()) told.push_back(message.report().resources());
    }
    return told;
  }

  // The slots of the Worker's Hello: device and UUID.
  std::string Slots() {
    coordinator_.Start();
    pid_ = Spawn();
    if (!coordinator_.WaitForHellos(1)) return "no Hello";
    std::string text;
    const v1::Hello hello = coordinator_.hellos()[0];
    for (const v1::SlotInfo& slot : hello.slots()) {
      absl::StrAppend(&text, slot.device(), " ", slot.uuid(), ";");
    }
    return text;
  }
};

TEST_F(GpuWorkerTest, TheGpusOfTheDriverAreTheSlots) {
  EXPECT_EQ(Slots(), "cuda GPU-0;cuda GPU-1;");
}

TEST_F(GpuWorkerTest, HeartbeatsTellOfIdleGpusToo) {
  EXPECT_EQ(Slots(), "cuda GPU-0;cuda GPU-1;");
  EXPECT_TRUE(Eventually([&] { return coordinator_.last_heartbeat().figures_size() == 2; }));
  const v1::Heartbeat heartbeat = coordinator_.last_heartbeat();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(heartbeat.figures(i).slot(), i);
    const v1::DeviceFigures& figures = heartbeat.figures(i).figures();
    EXPECT_EQ(figures.utilisation(), 0.72);
    EXPECT_EQ(figures.memory_bytes(), int64_t{3} << 30);
    EXPECT_EQ(figures.power_watts(), 250);
    EXPECT_EQ(figures.temperature_celsius(), 61);
    EXPECT_EQ(figures.has_energy_joules(), i == 0);
  }
}

TEST_F(GpuWorkerTest, AGpuThatNoRankCanUseIsLeftOutAndItsCauseIsLogged) {
  setenv("FAKE_BROKEN_GPU", "GPU-0", 1);
  EXPECT_EQ(Slots(), "cuda GPU-1;");
  EXPECT_THAT(Log(), HasSubstr("Fake GPU (GPU-0) is left out, as a Rank cannot use it: the NVIDIA "
                               "driver on your system is too old"));
}

TEST_F(GpuWorkerTest, WhileAFoldTrainsItsGpuIsMeasured) {
  EXPECT_EQ(Slots(), "cuda GPU-0;cuda GPU-1;");
  Train(R"("started","train")", {0});
  EXPECT_TRUE(coordinator_.WaitForProgress(
      [](const v1::ProgressReport& p) { return p.power_watts() == 250 && p.steal() >= 0; }));
  EXPECT_TRUE(coordinator_.WaitForProgress([](const v1::ProgressReport& p) {
    return p.device_utilisation() == 0.72 && p.device_memory_bytes() == 3.0 * (1 << 30) &&
           p.temperature_celsius() == 61 && p.resident_bytes() > 1e5 && p.cpu_cores() >= 0;
  }));
  EXPECT_TRUE(Eventually([&] { return Resources().size() == 1; }));
  v1::CoordinatorMessage stop;
  stop.mutable_stop()->set_attempt(7);
  stop.mutable_stop()->set_mode(v1::StopAttempt::PREDICT);
  absl::SleepFor(absl::Milliseconds(2100));  // for readings of the GPU
  coordinator_.Send(stop);
  coordinator_.WaitForEnded(7);
  const std::vector<v1::Resources> told = Resources();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_THAT(told[0].summary(), HasSubstr("Fake GPU (GPU-0, 8.0 GiB); driver 580.65.06, for CUDA "
                                           "up to 13.0"));
  EXPECT_EQ(told[0].seconds(), 0);
  EXPECT_EQ(told[1].summary(), told[0].summary());
  EXPECT_NEAR(told[1].utilisation(), 0.72, 1e-9);
  EXPECT_THAT(told[1].advice(), HasSubstr("utilisation is 72 % (training waits)"));
  EXPECT_GT(told[1].seconds(), 0.5);
  EXPECT_GT(told[1].energy_joules(), 0);
  EXPECT_EQ(told[1].peak_device_bytes(), int64_t{3} << 30);
  EXPECT_GT(told[1].peak_memory_bytes(), 100'000);
}

TEST_F(GpuWorkerTest, WithoutAUsableGpuCoresAreTheSlots) {
  setenv("FAKE_BROKEN_GPU", "GPU-1", 1);
  setenv("CUDA_VISIBLE_DEVICES", "1", 1);
  EXPECT_EQ(Slots(), "cpu ;cpu ;");
  EXPECT_THAT(Log(), HasSubstr("no GPU of this machine can be used, so its cores are the slots"));
}

TEST_F(TrainworkerTest, OnCoresProcTellsWhatAFoldTakes) {
  coordinator_.Start();
  pid_ = Spawn();
  ASSERT_TRUE(coordinator_.WaitForWarmRanks(2));
  v1::CoordinatorMessage message;
  message.mutable_start()->set_attempt(7);
  message.mutable_start()->set_job("job-1");
  message.mutable_start()->set_kind(v1::StartTask::KIND_TRAIN);
  message.mutable_start()->set_spec_json(
      R"({"script":["started","epoch","train:200","epoch","epoch","epoch","epoch","epoch","epoch",)"
      R"("epoch","epoch","epoch","train:20","fold:epochs"]})");
  message.mutable_start()->set_remaining_ms(-1);
  message.mutable_start()->set_stop_ms(-1);
  message.mutable_start()->add_slots(0);
  message.mutable_start()->set_world_size(1);
  coordinator_.Send(message);
  EXPECT_TRUE(coordinator_.WaitForProgress([](const v1::ProgressReport& p) {
    return p.resident_bytes() > 1e5 && p.cpu_cores() >= 0 && p.steal() >= 0 &&
           p.power_watts() < 0 && p.device_utilisation() < 0;
  }));
  coordinator_.WaitForEnded(7);
  v1::Resources last;
  for (const v1::WorkerMessage& told : coordinator_.messages()) {
    if (told.report().has_resources()) last = told.report().resources();
  }
  EXPECT_THAT(last.summary(), HasSubstr("1 x cpu: "));
  EXPECT_EQ(last.epochs(), 10);
  EXPECT_GT(last.seconds(), 0.5);
  EXPECT_GT(last.peak_memory_bytes(), 100'000);
  EXPECT_LT(last.energy_joules(), 0) << "not known";
  const std::string log =
      ReadFile(absl::StrCat(state_, "/", RankLogPath("job-1", 7, 0))).value_or("");
  EXPECT_THAT(log, HasSubstr("resources: 1 x cpu: "));
  EXPECT_THAT(log, HasSubstr("memory after 10 epochs: "));
}

TEST_F(TrainworkerTest, ASecondOneInTheSameFolderExitsWith3AndNamesTheFirst) {
  coordinator_.Start();
  pid_ = Spawn();
  ASSERT_TRUE(coordinator_.WaitForWarmRanks(2));
  EXPECT_EQ(*ReadFile(state_ + "/worker.lock"), absl::StrCat(pid_, "\n"));
  EXPECT_EQ(ExitCode(Spawn()), 3);
  EXPECT_THAT(Log(), HasSubstr(absl::StrCat("another trainworker (process ", pid_, ") holds ")));
  EXPECT_EQ(ProcessesWith(rank_).size(), 3u) << "the first and its two Ranks";
}

TEST_F(TrainworkerTest, KilledItLeavesNoProcessBehind) {
  coordinator_.Start();
  pid_ = Spawn();
  ASSERT_TRUE(coordinator_.WaitForWarmRanks(2));
  v1::CoordinatorMessage message;
  message.mutable_start()->set_attempt(7);
  message.mutable_start()->set_job("job-1");
  message.mutable_start()->set_kind(v1::StartTask::KIND_TRAIN);
  message.mutable_start()->set_spec_json(R"({"script":["started","deaf"]})");
  message.mutable_start()->set_remaining_ms(-1);
  message.mutable_start()->set_stop_ms(-1);
  message.mutable_start()->add_slots(0);
  message.mutable_start()->set_world_size(1);
  coordinator_.Send(message);
  ASSERT_TRUE(coordinator_.WaitForProgress());
  EXPECT_GE(ProcessesWith(rank_).size(), 3u);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
  EXPECT_TRUE(Eventually([&] { return ProcessesWith(rank_).empty(); }));
  // Its lock is free for the next one.
  pid_ = Spawn();
  EXPECT_TRUE(coordinator_.WaitForHellos(2));
  EXPECT_NE(coordinator_.hellos()[0].boot_id(), coordinator_.hellos()[1].boot_id());
  EXPECT_EQ(coordinator_.hellos()[0].worker_id(), coordinator_.hellos()[1].worker_id());
}

TEST_F(TrainworkerTest, SigtermEndsItWith0AndItsRanks) {
  coordinator_.Start();
  pid_ = Spawn();
  ASSERT_TRUE(coordinator_.WaitForWarmRanks(2));
  const pid_t pid = pid_;
  kill(pid, SIGTERM);
  EXPECT_EQ(ExitCode(pid), 0);
  EXPECT_TRUE(ProcessesWith(rank_).empty());
}

TEST_F(TrainworkerTest, AloneItEndsAfterIdleExit) {
  pid_ = Spawn({"--idle-exit", "300ms"});
  EXPECT_EQ(ExitCode(pid_), 0);
  EXPECT_THAT(Log(), HasSubstr("no work and no traind"));
}

TEST_F(TrainworkerTest, WrongFlagsAreRefusedWithTheReason) {
  EXPECT_EQ(ExitCode(Spawn({"--idle-exit", "soon"})), 1);
  EXPECT_THAT(Log(), HasSubstr("soon"));
  EXPECT_EQ(ExitCode(Spawn({"--nonsense"})), 2);
  EXPECT_EQ(ExitCode(Spawn({"--help"})), 0);
  setenv("NCCL_TIMEOUT", "soon", 1);
  EXPECT_EQ(ExitCode(Spawn()), 2);
  unsetenv("NCCL_TIMEOUT");
  setenv("NUM_WORKERS", "many", 1);
  EXPECT_EQ(ExitCode(Spawn()), 2);
  unsetenv("NUM_WORKERS");
  EXPECT_THAT(Log(), HasSubstr("NUM_WORKERS is not from 0 to 1024: many"));
}

TEST_F(TrainworkerTest, IdleItCostsLittle) {
  coordinator_.Start();
  pid_ = Spawn();
  ASSERT_TRUE(coordinator_.WaitForWarmRanks(2));
  std::ifstream status(absl::StrCat("/proc/", pid_, "/status"));
  long rss_kib = 0;
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, "VmRSS:")) rss_kib = std::stol(line.substr(6));
  }
  EXPECT_GT(rss_kib, 0);
  // A sanitizer's shadow counts too.
  if (__asan_init == nullptr && __tsan_init == nullptr) {
    EXPECT_LT(rss_kib, 40 * 1024);
  }
}

}  // namespace
}  // namespace traind::worker
