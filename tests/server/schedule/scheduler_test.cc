#include "server/schedule/scheduler.h"

#include <gtest/gtest.h>

namespace traind {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }

WorkerSlots Machine(const std::string& name, int slots, const std::string& device = "cpu") {
  WorkerSlots worker;
  worker.worker = name;
  for (int i = 0; i < slots; ++i) worker.slots.push_back({i, device, true});
  return worker;
}

Candidate JobWith(uint64_t sequence, int folds, absl::Time deadline = absl::InfiniteFuture()) {
  Candidate candidate;
  candidate.urgency.sequence = sequence;
  candidate.urgency.accepted_at = At(static_cast<double>(sequence));
  candidate.urgency.deadline = deadline;
  for (int fold = 0; fold < folds; ++fold) candidate.folds.push_back(fold);
  return candidate;
}

std::vector<std::pair<size_t, int>> Order(const std::vector<Placement>& placements) {
  std::vector<std::pair<size_t, int>> order;
  for (const Placement& p : placements) order.emplace_back(p.candidate, p.fold);
  return order;
}
using Pairs = std::vector<std::pair<size_t, int>>;

TEST(UrgencyTest, FewerGangsThenDeadlineThenPriorityThenAcceptance) {
  Urgency a, b;
  a.gangs = 0;
  b.gangs = 1;
  b.deadline = At(1);
  EXPECT_TRUE(a < b);
  b.gangs = 0;
  EXPECT_TRUE(b < a);
  a.deadline = At(1.9);  // the same second
  a.priority = 1;
  EXPECT_TRUE(a < b);
  a.priority = b.priority;
  a.accepted_at = At(0);
  b.accepted_at = At(-1);
  EXPECT_TRUE(b < a);
  b.accepted_at = a.accepted_at;
  a.sequence = 1;
  b.sequence = 2;
  EXPECT_TRUE(a < b);
  EXPECT_FALSE(b < a);
}

TEST(SchedulerTest, AJobAloneTakesAllSlotsInFoldOrder) {
  std::vector<WorkerSlots> workers = {Machine("w", 2)};
  EXPECT_EQ(Order(PlaceFolds({JobWith(1, 5)}, workers)), (Pairs{{0, 0}, {0, 1}}));
  EXPECT_FALSE(workers[0].slots[0].free);
  EXPECT_FALSE(workers[0].slots[1].free);
}

TEST(SchedulerTest, EachJobGetsOneGangBeforeAnyGetsASecond) {
  std::vector<WorkerSlots> workers = {Machine("w", 3)};
  EXPECT_EQ(Order(PlaceFolds({JobWith(1, 5), JobWith(2, 5)}, workers)),
            (Pairs{{0, 0}, {1, 0}, {0, 1}}));
}

TEST(SchedulerTest, GangsThatRunAlreadyCount) {
  Candidate running = JobWith(1, 5);
  running.urgency.gangs = 2;
  std::vector<WorkerSlots> workers = {Machine("w", 2)};
  EXPECT_EQ(Order(PlaceFolds({running, JobWith(2, 5)}, workers)), (Pairs{{1, 0}, {1, 1}}));
}

TEST(SchedulerTest, TheEarlierDeadlineGoesFirst) {
  std::vector<WorkerSlots> workers = {Machine("w", 1)};
  EXPECT_EQ(
      Order(PlaceFolds({JobWith(1, 1), JobWith(2, 1, At(60)), JobWith(3, 1, At(30))}, workers)),
      (Pairs{{2, 0}}));
}

TEST(SchedulerTest, AGangNeedsItsSlotsOnOneWorker) {
  Candidate wide = JobWith(1, 1);
  wide.shape.slots = 2;
  std::vector<WorkerSlots> split = {Machine("a", 1), Machine("b", 1)};
  EXPECT_TRUE(PlaceFolds({wide}, split).empty());
  std::vector<WorkerSlots> whole = {Machine("a", 1), Machine("b", 2)};
  const auto placed = PlaceFolds({wide}, whole);
  ASSERT_EQ(placed.size(), 1u);
  EXPECT_EQ(placed[0].worker, "b");
  EXPECT_EQ(placed[0].slots, (std::vector<int>{0, 1}));
}

TEST(SchedulerTest, AGangIsOfOneDevice) {
  Candidate wide = JobWith(1, 1);
  wide.shape.slots = 2;
  WorkerSlots mixed = Machine("m", 1, "cpu");
  mixed.slots.push_back({1, "cuda", true});
  std::vector<WorkerSlots> workers = {mixed};
  EXPECT_TRUE(PlaceFolds({wide}, workers).empty());
}

TEST(SchedulerTest, TheDeviceHasToMatch) {
  Candidate gpu = JobWith(1, 1);
  gpu.shape.device = "cuda";
  std::vector<WorkerSlots> cpu = {Machine("c", 4)};
  EXPECT_TRUE(PlaceFolds({gpu}, cpu).empty());
  std::vector<WorkerSlots> both = {Machine("c", 4), Machine("g", 1, "cuda")};
  EXPECT_EQ(PlaceFolds({gpu}, both).at(0).worker, "g");
}

TEST(SchedulerTest, AJobThatDoesNotFitDoesNotHoldUpTheNext) {
  Candidate wide = JobWith(1, 1, At(10));
  wide.shape.slots = 8;
  std::vector<WorkerSlots> workers = {Machine("w", 2)};
  EXPECT_EQ(Order(PlaceFolds({wide, JobWith(2, 1)}, workers)), (Pairs{{1, 0}}));
}

TEST(SchedulerTest, HomeIsPreferredThenTheFullestWorkerWithRoom) {
  Candidate job = JobWith(1, 1);
  job.home = "big";
  std::vector<WorkerSlots> workers = {Machine("big", 4), Machine("small", 1)};
  EXPECT_EQ(PlaceFolds({job}, workers).at(0).worker, "big");
  job.home = "";
  workers = {Machine("big", 4), Machine("small", 1)};
  EXPECT_EQ(PlaceFolds({job}, workers).at(0).worker, "small");
}

TEST(SchedulerTest, TakenSlotsAreNotGivenAgain) {
  std::vector<WorkerSlots> workers = {Machine("w", 3)};
  workers[0].slots[1].free = false;
  const auto placed = PlaceFolds({JobWith(1, 3)}, workers);
  ASSERT_EQ(placed.size(), 2u);
  EXPECT_EQ(placed[0].slots, std::vector<int>{0});
  EXPECT_EQ(placed[1].slots, std::vector<int>{2});
}

TEST(SchedulerTest, NothingToPlaceNothingPlaced) {
  std::vector<WorkerSlots> workers = {Machine("w", 1)};
  EXPECT_TRUE(PlaceFolds({}, workers).empty());
  std::vector<WorkerSlots> none;
  EXPECT_TRUE(PlaceFolds({JobWith(1, 1)}, none).empty());
}

TEST(CountGangsTest, CountsPerWorkerAndDevice) {
  WorkerSlots mixed = Machine("m", 3, "cpu");
  mixed.slots.push_back({3, "cuda", false});
  mixed.slots.push_back({4, "cuda", true});
  const std::vector<WorkerSlots> workers = {mixed, Machine("n", 1)};
  EXPECT_EQ(CountGangs({1, ""}, workers), 6);
  EXPECT_EQ(CountGangs({2, ""}, workers), 2);
  EXPECT_EQ(CountGangs({2, "cuda"}, workers), 1);
  EXPECT_EQ(CountGangs({4, ""}, workers), 0);
}

}  // namespace
}  // namespace traind
