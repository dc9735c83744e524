// Limits of control groups, read from folders as Docker, Kubernetes and Slurm leave them.
#include "common/base/container.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

namespace traind {
namespace {

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

class ContainerTest : public testing::Test {
 protected:
  ContainerTest() : root_(testing::TempDir() + "/container") {
    std::filesystem::remove_all(root_);
    Write("proc/meminfo",
          "MemTotal:       1000000 kB\nMemFree: 10 kB\nMemAvailable:    600000 kB\n");
    Write("proc/vmstat", "nr_free_pages 7\noom_kill 5\n");
  }
  void Write(const std::string& path, const std::string& text) {
    const std::string whole = root_ + "/" + path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    std::ofstream(whole) << text;
  }
  void WriteGroup(const std::string& path, const std::string& memory_max, int64_t used,
                  const std::string& cpu_max) {
    const std::string folder = "sys/fs/cgroup" + path + "/";
    Write(folder + "cgroup.procs", "1\n");
    Write(folder + "memory.max", memory_max + "\n");
    Write(folder + "memory.current", std::to_string(used) + "\n");
    Write(folder + "memory.stat", "anon 100\ninactive_file 30000000\nactive_file 7\n");
    Write(folder + "memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n");
    Write(folder + "cpu.max", cpu_max + "\n");
  }

  const std::string root_;
};

TEST_F(ContainerTest, WithoutGroupsTheMachineIsTheLimit) {
  const ContainerLimits limits = ReadContainerLimits(root_);
  EXPECT_EQ(limits.memory, kNone);
  EXPECT_EQ(limits.cores, std::numeric_limits<double>::infinity());
  EXPECT_EQ(UsableMemory(root_), int64_t{1000000} << 10);
  EXPECT_EQ(AvailableMemory(root_), int64_t{600000} << 10);
  EXPECT_EQ(OutOfMemoryKills(root_), 5);
}

TEST_F(ContainerTest, TheLeastOfAGroupAndThoseAboveItCounts) {
  Write("proc/self/cgroup", "0::/slurm/job_7/step\n");
  WriteGroup("", "max", 1, "max 100000");
  WriteGroup("/slurm", "max", 900'000'000, "800000 100000");
  WriteGroup("/slurm/job_7", "500000000", 130'000'000, "250000 100000");
  WriteGroup("/slurm/job_7/step", "max", 100'000'000, "max 100000");
  const ContainerLimits limits = ReadContainerLimits(root_);
  EXPECT_EQ(limits.memory, 500'000'000);
  EXPECT_EQ(limits.memory_used, 100'000'000) << "files that the kernel can drop are free";
  EXPECT_EQ(limits.cores, 2.5);
  EXPECT_EQ(UsableMemory(root_), 500'000'000);
  EXPECT_EQ(AvailableMemory(root_), 400'000'000);
  EXPECT_EQ(OutOfMemoryKills(root_), 2);
}

// The container sees its own group as the root, and cannot see the path that the host has for it.
TEST_F(ContainerTest, APathOfTheHostMeansTheContainersOwnGroup) {
  Write("proc/self/cgroup", "0::/../../kubepods/pod1/c2\n");
  WriteGroup("", "200000000", 50'000'000, "100000 100000");
  EXPECT_EQ(UsableMemory(root_), 200'000'000);
  EXPECT_EQ(AvailableMemory(root_), 180'000'000);
  EXPECT_EQ(ReadContainerLimits(root_).cores, 1);
}

TEST_F(ContainerTest, VersionOneHasAHierarchyForEachResource) {
  Write("proc/self/cgroup",
        "4:memory:/docker/ab\n2:cpu,cpuacct:/docker/ab\n1:name=systemd:/x\n0::/\n");
  Write("sys/fs/cgroup/memory/docker/ab/cgroup.procs", "1\n");
  Write("sys/fs/cgroup/memory/docker/ab/memory.stat",
        "inactive_file 9\nhierarchical_memory_limit 400000000\ntotal_inactive_file 50000000\n");
  Write("sys/fs/cgroup/memory/docker/ab/memory.usage_in_bytes", "150000000\n");
  Write("sys/fs/cgroup/memory/docker/ab/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 14\n");
  Write("sys/fs/cgroup/cpu/cgroup.procs", "1\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(UsableMemory(root_), 400'000'000);
  EXPECT_EQ(AvailableMemory(root_), 300'000'000);
  EXPECT_EQ(ReadContainerLimits(root_).cores, 1.5);
  EXPECT_EQ(OutOfMemoryKills(root_), 14);
}

TEST_F(ContainerTest, VersionOneSaysNoLimitByALargeNumber) {
  Write("proc/self/cgroup", "4:memory:/\n2:cpu:/\n");
  Write("sys/fs/cgroup/memory/memory.stat", "hierarchical_memory_limit 9223372036854771712\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ReadContainerLimits(root_).memory, kNone);
  EXPECT_EQ(ReadContainerLimits(root_).cores, std::numeric_limits<double>::infinity());
  EXPECT_EQ(AvailableMemory(root_), int64_t{600000} << 10);
}

TEST(Container, ThisMachineHasMemory) {
  EXPECT_GT(UsableMemory(), int64_t{1} << 28);
  EXPECT_GT(AvailableMemory(), 0);
  EXPECT_LE(AvailableMemory(), UsableMemory());
}

}  // namespace
}  // namespace traind
