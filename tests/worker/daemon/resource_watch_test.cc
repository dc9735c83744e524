// What the Worker measures while folds train.
#include "worker/daemon/resource_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"

namespace traind::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMib = 1 << 20;

ResourceReading Reading(double cpu_s, int64_t resident, double all_s = 0, double steal_s = 0) {
  ResourceReading reading;
  reading.processes = {cpu_s, resident};
  reading.machine = {all_s, steal_s};
  return reading;
}

facts::Epoch EpochOf(int epoch) {
  facts::Epoch fact;
  fact.epoch = epoch;
  return fact;
}

TEST(ResourceWatchTest, ACpuTaskIsToldByItsProcessesAndTheMachine) {
  ResourceWatch watch;
  watch.Start(7, 2, /*gpu=*/false, /*batch=*/512, "2 x cpu", absl::ZeroDuration());
  watch.Read(7, Reading(100, 10 * kMib, 1000, 10), absl::ZeroDuration());
  watch.Read(7, Reading(101.5, 30 * kMib, 1004, 11), absl::Seconds(1));
  facts::Progress progress;
  progress.utilisation = 0.9;
  watch.Fill(7, progress);
  EXPECT_DOUBLE_EQ(progress.cpu_cores, 1.5);
  EXPECT_DOUBLE_EQ(progress.resident_bytes, 30 * kMib);
  EXPECT_DOUBLE_EQ(progress.steal, 0.25);
  EXPECT_EQ(progress.device_utilisation, -1);
  EXPECT_EQ(progress.power_watts, -1);
  watch.Read(7, Reading(103, 20 * kMib, 1008, 11), absl::Seconds(2));
  const facts::Resources sum = *watch.Sum(7);
  EXPECT_DOUBLE_EQ(sum.seconds, 2);
  EXPECT_DOUBLE_EQ(sum.cpu_s, 3);
  EXPECT_EQ(sum.peak_memory_bytes, 30 * kMib);
  // By its processes' time, until it tells the share itself.
  EXPECT_DOUBLE_EQ(sum.utilisation, (0.75 + 0.9) / 2);
  EXPECT_EQ(sum.advice, "");
  EXPECT_EQ(sum.energy_joules, -1);
  EXPECT_FALSE(watch.Sum(8).has_value());
}

TEST(ResourceWatchTest, AnEndedProcessTakesNothingBack) {
  ResourceWatch watch;
  watch.Start(7, 2, false, /*batch=*/512, "", absl::ZeroDuration());
  watch.Read(7, Reading(10, kMib), absl::ZeroDuration());
  watch.Read(7, Reading(12, kMib), absl::Seconds(1));
  watch.Read(7, Reading(6, kMib), absl::Seconds(2));  // a rank has finished
  watch.Read(7, Reading(0, 0), absl::Seconds(3));     // all have
  EXPECT_DOUBLE_EQ(watch.Sum(7)->cpu_s, 2);
  EXPECT_DOUBLE_EQ(watch.Sum(7)->seconds, 2);
}

TEST(ResourceWatchTest, GpusAreTheirMeanTheirSumAndTheHottest) {
  ResourceWatch watch;
  watch.Start(7, 2, /*gpu=*/true, /*batch=*/512, "", absl::ZeroDuration());
  const auto read = [&watch](double joules, absl::Duration at) {
    ResourceReading reading = Reading(1, kMib);
    reading.devices = {{0.5, 100, 200, 60, joules}, {0.9, 300, 100, 70, joules}};
    watch.Read(7, reading, at);
  };
  read(1000, absl::ZeroDuration());
  read(1150, absl::Seconds(1));
  facts::Progress progress;
  progress.data_wait = 0.4;
  watch.Fill(7, progress);
  EXPECT_DOUBLE_EQ(progress.device_utilisation, 0.7);
  EXPECT_DOUBLE_EQ(progress.device_memory_bytes, 400);
  EXPECT_DOUBLE_EQ(progress.power_watts, 300);
  EXPECT_DOUBLE_EQ(progress.temperature_celsius, 70);
  EXPECT_EQ(watch.Advice(7), "") << "too early";
  for (int s = 2; s <= 11; ++s) read(1000 + 150 * s, absl::Seconds(s));
  EXPECT_THAT(watch.Advice(7),
              HasSubstr("utilisation is 70 % (training waits): 36 % of the time goes into putting "
                        "batches together: a larger batch (train.batch: 1024; it is 512)"));
  EXPECT_EQ(watch.Advice(7), "") << "once";
  const facts::Resources sum = *watch.Sum(7);
  EXPECT_DOUBLE_EQ(sum.utilisation, 0.7);
  EXPECT_DOUBLE_EQ(sum.energy_joules, 2 * 11 * 150);
  EXPECT_EQ(sum.peak_device_bytes, 400);
  EXPECT_THAT(sum.advice, HasSubstr("training waits"));
}

TEST(ResourceWatchTest, PowerCountsWhereAGpuTellsNoEnergy) {
  ResourceWatch watch;
  watch.Start(7, 1, true, /*batch=*/512, "", absl::ZeroDuration());
  for (int s = 0; s <= 4; ++s) {
    ResourceReading reading = Reading(1, kMib);
    reading.devices = {{0.85, 1, 250, 60, -1}};
    watch.Read(7, reading, absl::Seconds(s));
  }
  EXPECT_DOUBLE_EQ(watch.Sum(7)->energy_joules, 1000);
  EXPECT_EQ(watch.Sum(7)->advice, "") << "85 % is good";
}

TEST(ResourceWatchTest, EveryTenthEpochGivesALineAboutMemory) {
  ResourceWatch watch;
  watch.Start(7, 1, false, /*batch=*/512, "", absl::ZeroDuration());
  watch.Read(7, Reading(1, 2 * kMib), absl::ZeroDuration());
  watch.Read(7, Reading(2, kMib), absl::Seconds(1));
  EXPECT_EQ(watch.Epoch(7, EpochOf(9), absl::Seconds(9)), "");
  EXPECT_EQ(watch.Epoch(7, EpochOf(10), absl::Seconds(10)),
            "memory after 10 epochs: 1.0 MiB resident (at most 2.0 MiB)");
  EXPECT_EQ(watch.Epoch(7, EpochOf(20), absl::Seconds(10.5)), "") << "two in a second";
  EXPECT_THAT(watch.Epoch(7, EpochOf(30), absl::Seconds(12)), HasSubstr("after 30 epochs"));
  EXPECT_DOUBLE_EQ(watch.Sum(7)->epochs, 22) << "9 to 30: it had 8 behind it at its start";
}

TEST(ResourceWatchTest, DevicesAreToldWithUuidMemoryAndDriver) {
  EXPECT_EQ(
      DeviceSummary({{"cpu", "Xeon", "", 16384 * kMib}, {"cpu", "Xeon", "", 16384 * kMib}}, {}),
      "2 x cpu: Xeon, 16.0 GiB of memory");
  EXPECT_EQ(DeviceSummary({{"cuda", "H200", "GPU-1", 1024 * kMib}}, {"580.65.06", "13.0"}),
            "H200 (GPU-1, 1.0 GiB); driver 580.65.06, for CUDA up to 13.0");
  EXPECT_THAT(DeviceSummary({{"cuda", "H200", "GPU-1", kMib}}, {}), Not(HasSubstr("driver")));
}

TEST(ProcessFiguresTest, DescendantsCount) {
  const pid_t child = fork();
  if (child == 0) {
    if (fork() == 0) {  // uses memory and time without end
      char* const memory = static_cast<char*>(
          mmap(nullptr, 64 * kMib, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      for (volatile int64_t i = 0;; i = i + 4096) memory[i % (64 * kMib)] = 1;
    }
    while (true) pause();
  }
  setpgid(child, child);
  const absl::Duration give_up = SystemClock().MonotonicNow() + absl::Seconds(20);
  ProcessFigures figures;
  while ((figures.cpu_s < 0.1 || figures.resident_bytes < 64 * kMib) &&
         SystemClock().MonotonicNow() < give_up) {
    figures = FiguresOf(child);
  }
  EXPECT_GE(figures.cpu_s, 0.1);
  EXPECT_GE(figures.resident_bytes, 64 * kMib);
  kill(-child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(FiguresOf(child).resident_bytes, 0);
  EXPECT_GT(ReadMachineTime().all_s, 1);
}

}  // namespace
}  // namespace traind::worker
