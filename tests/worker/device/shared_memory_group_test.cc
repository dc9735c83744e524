#include "worker/device/shared_memory_group.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"

namespace traind {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);

using Body = std::function<void(SharedMemoryGroup&, int rank)>;

// Runs one thread per rank.
void OnRanks(int world_size, const Body& body, absl::Duration timeout = kTimeout) {
  auto first = SharedMemoryGroup::Create(world_size, timeout);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  std::vector<std::unique_ptr<SharedMemoryGroup>> groups;
  groups.push_back(*std::move(first));
  for (int rank = 1; rank < world_size; ++rank) {
    auto opened = SharedMemoryGroup::Open(groups[0]->address(), rank, world_size, timeout);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    groups.push_back(*std::move(opened));
  }
  for (auto& group : groups) ASSERT_TRUE(group->Seal().ok());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      body(*groups[static_cast<size_t>(rank)], rank);
      groups[static_cast<size_t>(rank)].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

float Value(int rank, size_t i) {
  return static_cast<float>(rank + 1) * 0.37f + static_cast<float>(i % 1013) * 0.11f;
}

std::vector<float> Values(int rank, size_t size) {
  std::vector<float> values(size);
  for (size_t i = 0; i < size; ++i) values[i] = Value(rank, i);
  return values;
}

class WorldTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, WorldTest, testing::Values(2, 3, 4, 7));

TEST_P(WorldTest, SumsAreTakenInTheOrderOfTheRanksOnEach) {
  const int world = GetParam();
  // Less than a chunk, some whole chunks, more than a ring with a rest, fewer
  // values than ranks, and none.
  for (const size_t size : {1000u, 262144u, 2100001u, 1u, 0u}) {
    std::vector<float> expected = Values(0, size);
    for (int rank = 1; rank < world; ++rank) {
      for (size_t i = 0; i < size; ++i) expected[i] += Value(rank, i);
    }
    for (float& value : expected) value *= 0.5f;
    OnRanks(world, [&](SharedMemoryGroup& group, int rank) {
      for (int round = 0; round < 3; ++round) {
        std::vector<float> values = Values(rank, size);
        ASSERT_TRUE(group.Sum(absl::MakeSpan(values), 0.5f).ok());
        ASSERT_EQ(values, expected) << "rank " << rank << " round " << round;
      }
    });
  }
}

TEST_P(WorldTest, BroadcastsGiveRankZerosBytesAndMixWithSums) {
  const int world = GetParam();
  OnRanks(world, [&](SharedMemoryGroup& group, int rank) {
    for (int round = 0; round < 50; ++round) {
      std::string bytes(static_cast<size_t>(1 + round * 50'000), static_cast<char>('a' + rank));
      bytes[0] = static_cast<char>('0' + round % 10 + rank);
      ASSERT_TRUE(group.Broadcast(absl::MakeSpan(&bytes[0], bytes.size())).ok());
      ASSERT_EQ(bytes[0], '0' + round % 10);
      ASSERT_EQ(bytes.find_first_not_of('a', 1), std::string::npos);
      std::vector<float> values{static_cast<float>(rank), static_cast<float>(round)};
      ASSERT_TRUE(group.Sum(absl::MakeSpan(values), 1).ok());
      ASSERT_EQ(values[0], static_cast<float>(world * (world - 1) / 2));
      ASSERT_EQ(values[1], static_cast<float>(world * round));
      ASSERT_TRUE(group.Barrier().ok());
    }
  });
}

TEST(SharedMemoryGroupTest, ManyShortRoundsDoNotMixUp) {
  OnRanks(3, [](SharedMemoryGroup& group, int rank) {
    for (int round = 0; round < 3000; ++round) {
      std::vector<float> values(17, static_cast<float>(round * (rank + 1)));
      ASSERT_TRUE(group.Sum(absl::MakeSpan(values), 1).ok());
      ASSERT_EQ(values[16], static_cast<float>(round * 6));
    }
  });
}

TEST(SharedMemoryGroupTest, ARankThatLeavesEndsTheOthersWait) {
  OnRanks(3, [](SharedMemoryGroup& group, int rank) {
    ASSERT_TRUE(group.Barrier().ok());
    if (rank == 1) return;
    const absl::Duration started = SystemClock().MonotonicNow();
    const absl::Status status = group.Barrier();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status.ToString();
    EXPECT_LT(SystemClock().MonotonicNow() - started, kTimeout / 2);
    EXPECT_TRUE(absl::IsUnavailable(group.Barrier()));  // the failure is permanent
  });
}

TEST(SharedMemoryGroupTest, ARankThatIsLateFailsTheOthersAndThenItself) {
  std::atomic<bool> given_up{false};
  OnRanks(
      2,
      [&](SharedMemoryGroup& group, int rank) {
        if (rank == 0) {
          const absl::Status status = group.Barrier();
          EXPECT_TRUE(absl::IsUnavailable(status));
          EXPECT_TRUE(absl::StrContains(status.message(), "did not come within 100ms"))
              << status.ToString();
          given_up = true;
          return;
        }
        while (!given_up) std::this_thread::yield();
        ASSERT_TRUE(group.Barrier().ok());  // rank 0 has already been here
        EXPECT_TRUE(absl::IsUnavailable(group.Barrier()));
      },
      absl::Milliseconds(100));
}

// One rank is a process of its own, which is killed.
TEST(SharedMemoryGroupTest, AKilledProcessEndsTheOthersWaitAndLeavesNothingBehind) {
  auto group = SharedMemoryGroup::Create(2, kTimeout);
  ASSERT_TRUE(group.ok());
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const std::string address = (*group)->address();
  const pid_t child = fork();
  if (child == 0) {
    auto other = SharedMemoryGroup::Open(address, 1, 2, kTimeout);
    if (!other.ok() || write(ready[1], "x", 1) != 1) _exit(1);
    if (!(*other)->Seal().ok() || !(*other)->Barrier().ok()) _exit(2);
    while (true) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  ASSERT_TRUE((*group)->Seal().ok());
  ASSERT_TRUE((*group)->Barrier().ok());
  std::thread killer([child] { kill(child, SIGKILL); });
  const absl::Duration started = SystemClock().MonotonicNow();
  const absl::Status status = (*group)->Barrier();
  EXPECT_LT(SystemClock().MonotonicNow() - started, kTimeout / 2);
  killer.join();
  int how = 0;
  ASSERT_EQ(waitpid(child, &how, 0), child);
  EXPECT_TRUE(WIFSIGNALED(how));
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_TRUE(absl::StrContains(status.message(), "process of rank 1 has ended"))
      << status.ToString();
  // After Seal() the address cannot be opened any more.
  EXPECT_TRUE(
      absl::IsFailedPrecondition(SharedMemoryGroup::Open(address, 1, 2, kTimeout).status()));
}

TEST(SharedMemoryGroupTest, AddressesOfOtherHostsAndGangsAreRefused) {
  auto group = SharedMemoryGroup::Create(2, kTimeout);
  ASSERT_TRUE(group.ok());
  const std::string address = (*group)->address();
  const auto refusal = [](const std::string& where, int world_size) {
    const auto opened = SharedMemoryGroup::Open(where, 1, world_size, kTimeout);
    EXPECT_TRUE(absl::IsFailedPrecondition(opened.status())) << where;
    return std::string(opened.status().message());
  };
  EXPECT_TRUE(absl::StrContains(refusal("none", 2), "not the address of a segment"));
  EXPECT_TRUE(absl::StrContains(refusal("x" + address, 2), "another host"));
  std::string other = address;
  other.back() = other.back() == '1' ? '2' : '1';
  EXPECT_TRUE(absl::StrContains(refusal(other, 2), "another gang"));
  EXPECT_TRUE(absl::StrContains(refusal(address, 3), "another size"));
}

}  // namespace
}  // namespace traind
