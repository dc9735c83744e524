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
  candidate.urgency.latest_start = deadline;
  for (int fold = 0; fold < folds; ++fold) candidate.folds.push_back(fold);
  return candidate;
}

std::vector<std::pair<size_t, int>> Order(const std::vector<Placement>& placements) {
  std::vector<std::pair<size_t, int>> order;
  for (const Placement& p : placements) order.emplace_back(p.candidate, p.fold);
  return order;
}
using Pairs = std::vector<std::pair<size_t, int>>;

// The same on a board; afterwards the Workers are as the board has them.
std::vector<Placement> Place(const std::vector<Candidate>& candidates,
                             std::vector<WorkerSlots>& workers) {
  SlotBoard board;
  for (const WorkerSlots& worker : workers) board.Put(worker);
  std::vector<Placement> placed = PlaceFolds(candidates, kStart, board);
  for (WorkerSlots& worker : workers) worker = *board.Find(worker.worker);
  return placed;
}

std::vector<Outlook> Look(const std::vector<Candidate>& line,
                          const std::vector<WorkerSlots>& workers) {
  SlotBoard board;
  for (const WorkerSlots& worker : workers) board.Put(worker);
  return LookAhead(line, kStart, board);
}

Capacity CapacityOf(const std::vector<WorkerSlots>& workers) {
  Capacity capacity;
  for (const WorkerSlots& worker : workers) capacity.Add(Capacity::KindOf(worker));
  return capacity;
}

TEST(UrgencyTest, PriorityThenGangsThenLatestStartThenAcceptance) {
  Urgency a, b;
  a.priority = 1;
  a.gangs = 5;
  b.latest_start = At(1);
  EXPECT_TRUE(a < b);
  b.priority = 1;
  a.latest_start = At(0);
  EXPECT_TRUE(b < a);  // it has fewer gangs
  a.gangs = 0;
  EXPECT_TRUE(a < b);
  a.latest_start = At(1.9);  // the same second
  a.accepted_at = At(0);
  b.accepted_at = At(-1);
  EXPECT_TRUE(b < a);
  b.accepted_at = a.accepted_at;
  a.sequence = 1;
  b.sequence = 2;
  EXPECT_TRUE(a < b);
  EXPECT_FALSE(b < a);
  b.extra_seeds_only = true;
  b.priority = 9;
  EXPECT_TRUE(a < b);
}

TEST(UrgencyTest, JobsWithoutADeadlineComeAfterTwoGangsOfThoseWithOne) {
  Urgency with, without;
  with.latest_start = At(1);
  with.gangs = 1;
  EXPECT_TRUE(with < without);
  with.gangs = 2;
  EXPECT_TRUE(without < with);
}

TEST(SchedulerTest, AJobAloneTakesAllSlotsInFoldOrder) {
  std::vector<WorkerSlots> workers = {Machine("w", 2)};
  EXPECT_EQ(Order(Place({JobWith(1, 5)}, workers)), (Pairs{{0, 0}, {0, 1}}));
  EXPECT_FALSE(workers[0].slots[0].free);
  EXPECT_FALSE(workers[0].slots[1].free);
}

TEST(SchedulerTest, EachJobGetsOneGangBeforeAnyGetsASecond) {
  std::vector<WorkerSlots> workers = {Machine("w", 3)};
  EXPECT_EQ(Order(Place({JobWith(1, 5), JobWith(2, 5)}, workers)), (Pairs{{0, 0}, {1, 0}, {0, 1}}));
}

TEST(SchedulerTest, GangsThatRunAlreadyCount) {
  Candidate running = JobWith(1, 5);
  running.urgency.gangs = 2;
  std::vector<WorkerSlots> workers = {Machine("w", 2)};
  EXPECT_EQ(Order(Place({running, JobWith(2, 5)}, workers)), (Pairs{{1, 0}, {1, 1}}));
}

TEST(SchedulerTest, TheEarlierDeadlineGoesFirst) {
  std::vector<WorkerSlots> workers = {Machine("w", 1)};
  EXPECT_EQ(Order(Place({JobWith(1, 1), JobWith(2, 1, At(60)), JobWith(3, 1, At(30))}, workers)),
            (Pairs{{2, 0}}));
}

TEST(SchedulerTest, AGangNeedsItsSlotsOnOneWorker) {
  Candidate wide = JobWith(1, 1);
  wide.shape.slots = 2;
  std::vector<WorkerSlots> split = {Machine("a", 1), Machine("b", 1)};
  EXPECT_TRUE(Place({wide}, split).empty());
  std::vector<WorkerSlots> whole = {Machine("a", 1), Machine("b", 2)};
  const auto placed = Place({wide}, whole);
  ASSERT_EQ(placed.size(), 1u);
  EXPECT_EQ(placed[0].parts[0].worker, "b");
  EXPECT_EQ(placed[0].parts[0].slots, (std::vector<int>{0, 1}));
}

TEST(SchedulerTest, AGangIsOfOneDevice) {
  Candidate wide = JobWith(1, 1);
  wide.shape.slots = 2;
  WorkerSlots mixed = Machine("m", 1, "cpu");
  mixed.slots.push_back({1, "cuda", true});
  std::vector<WorkerSlots> workers = {mixed};
  EXPECT_TRUE(Place({wide}, workers).empty());
}

TEST(SchedulerTest, TheDeviceHasToMatch) {
  Candidate gpu = JobWith(1, 1);
  gpu.shape.device = "cuda";
  std::vector<WorkerSlots> cpu = {Machine("c", 4)};
  EXPECT_TRUE(Place({gpu}, cpu).empty());
  std::vector<WorkerSlots> both = {Machine("c", 4), Machine("g", 1, "cuda")};
  EXPECT_EQ(Place({gpu}, both).at(0).parts.at(0).worker, "g");
}

TEST(SchedulerTest, AJobThatDoesNotFitDoesNotHoldUpTheNext) {
  Candidate wide = JobWith(1, 1, At(10));
  wide.shape.slots = 8;
  std::vector<WorkerSlots> workers = {Machine("w", 2)};
  EXPECT_EQ(Order(Place({wide, JobWith(2, 1)}, workers)), (Pairs{{1, 0}}));
}

TEST(SchedulerTest, AClassAboveTakesAllItWantsBeforeTheNext) {
  Candidate high = JobWith(2, 2), low = JobWith(1, 2, At(5));
  high.urgency.priority = 1;
  std::vector<WorkerSlots> workers = {Machine("w", 3)};
  EXPECT_EQ(Order(Place({low, high}, workers)), (Pairs{{1, 0}, {1, 1}, {0, 0}}));
}

TEST(SchedulerTest, OwnersWithoutDeadlinesTakeTurns) {
  Candidate many[3] = {JobWith(1, 1), JobWith(2, 1), JobWith(3, 1)}, late = JobWith(4, 3);
  for (Candidate& job : many) job.owner = "ann";
  late.owner = "bob";
  std::vector<WorkerSlots> workers = {Machine("w", 4)};
  EXPECT_EQ(Order(Place({many[0], many[1], many[2], late}, workers)),
            (Pairs{{0, 0}, {3, 0}, {1, 0}, {3, 1}}));
}

TEST(SchedulerTest, TheOwnerWithTheSmallerShareGoesFirst) {
  Candidate ann = JobWith(1, 1), bob = JobWith(2, 1);
  ann.owner = "ann";
  ann.urgency.share = 1000;
  bob.owner = "bob";
  std::vector<WorkerSlots> workers = {Machine("w", 1)};
  EXPECT_EQ(Order(Place({ann, bob}, workers)), (Pairs{{1, 0}}));
  ann.urgency.latest_start = At(9000);  // shares are for Jobs without a deadline
  workers = {Machine("w", 1)};
  EXPECT_EQ(Order(Place({ann, bob}, workers)), (Pairs{{0, 0}}));
}

// ---- owners who may use only so many slots ----

Candidate Limited(uint64_t sequence, int folds, int left, const std::string& owner = "ann") {
  Candidate candidate = JobWith(sequence, folds);
  candidate.owner = owner;
  candidate.slots_left = left;
  return candidate;
}

TEST(OwnerLimitTest, WhatAnOwnerMayNotHaveIsForTheNextInLine) {
  std::vector<WorkerSlots> workers = {Machine("w", 6)};
  const auto placed = Place({Limited(1, 3, 2), Limited(2, 3, 2), Limited(3, 3, 9, "bob")}, workers);
  EXPECT_EQ(Order(placed), (Pairs{{0, 0}, {2, 0}, {1, 0}, {2, 1}, {2, 2}}));
}

TEST(OwnerLimitTest, WhoMayHaveNoMoreGetsNothing) {
  std::vector<WorkerSlots> workers = {Machine("w", 4)};
  EXPECT_TRUE(Place({Limited(1, 3, 0), Limited(2, 3, -2)}, workers).empty());
}

TEST(OwnerLimitTest, AGangTakesAllOfItsSlotsFromTheLimit) {
  Candidate gangs = Limited(1, 3, 5);
  gangs.shape.slots = 2;
  std::vector<WorkerSlots> workers = {Machine("w", 8)};
  EXPECT_EQ(Order(Place({gangs}, workers)), (Pairs{{0, 0}, {0, 1}}));
}

TEST(OwnerLimitTest, AGangThatItsOwnerMayNotHaveYetKeepsNoSlotsOfOthers) {
  Candidate gang = Limited(1, 1, 1);
  gang.shape.slots = 2;
  std::vector<WorkerSlots> workers = {Machine("w", 2)};
  const auto placed = Place({gang, Limited(2, 1, 1), Limited(3, 2, 9, "bob")}, workers);
  EXPECT_EQ(Order(placed), (Pairs{{2, 0}, {2, 1}}));
}

TEST(OwnerLimitTest, AGangThatNobodyCouldHoldKeepsNothingOfTheLimit) {
  Candidate gang = Limited(1, 1, 3);
  gang.shape.slots = 4;
  std::vector<WorkerSlots> workers = {Machine("w", 2)};
  EXPECT_EQ(Order(Place({gang, Limited(2, 1, 3)}, workers)), (Pairs{{1, 0}}));
}

TEST(OwnerLimitTest, OneThatWaitsForRoomKeepsItsPartOfTheLimit) {
  Candidate gang = Limited(1, 1, 3);
  gang.shape.slots = 2;
  WorkerSlots busy = Machine("w", 2);
  busy.slots[0].free = false;
  std::vector<WorkerSlots> workers = {busy, Machine("v", 1), Machine("u", 1)};
  EXPECT_EQ(Order(Place({gang, Limited(2, 2, 3)}, workers)), (Pairs{{1, 0}}));
}

// ---- a gang that waits ----

// A Worker of 4 slots, of which the first two are busy until 10 s and 20 s.
WorkerSlots Busy() {
  WorkerSlots busy = Machine("w", 4);
  for (int i = 0; i < 2; ++i) {
    busy.slots[static_cast<size_t>(i)].free = false;
    busy.slots[static_cast<size_t>(i)].free_at = At(10 * (i + 1));
  }
  return busy;
}

Candidate GangOf(int slots) {
  Candidate gang = JobWith(1, 1);
  gang.shape.slots = slots;
  return gang;
}

TEST(ReservationTest, SmallFoldsDoNotStarveAGang) {
  std::vector<WorkerSlots> workers = {Busy()};
  EXPECT_TRUE(Place({GangOf(4), JobWith(2, 2)}, workers).empty());
}

TEST(ReservationTest, AFoldThatEndsBeforeTheGangCanStartIsLetThrough) {
  Candidate brief = JobWith(2, 3), slow = JobWith(3, 1);
  brief.takes = absl::Seconds(20);
  slow.takes = absl::Seconds(21);
  std::vector<WorkerSlots> workers = {Busy()};
  EXPECT_EQ(Order(Place({GangOf(4), slow, brief}, workers)), (Pairs{{2, 0}, {2, 1}}));
}

TEST(ReservationTest, OnlyTheSlotsThatTheGangGetsAreKept) {
  std::vector<WorkerSlots> workers = {Busy()};
  // It needs the two free slots and the one that is free at 10 s.
  EXPECT_TRUE(Place({GangOf(3), JobWith(2, 2)}, workers).empty());
  workers = {Busy(), Machine("x", 1)};
  const auto placed = Place({GangOf(3), JobWith(2, 2)}, workers);
  ASSERT_EQ(placed.size(), 1u);
  EXPECT_EQ(placed[0].parts[0].worker, "x");
}

TEST(ReservationTest, WhereNobodyKnowsWhenTheyAreFreeTheSlotsAreKept) {
  WorkerSlots unknown = Machine("w", 2);
  unknown.slots[0].free = false;
  Candidate brief = JobWith(2, 1);
  brief.takes = absl::Seconds(1);
  std::vector<WorkerSlots> workers = {unknown};
  EXPECT_TRUE(Place({GangOf(2), brief}, workers).empty());
}

TEST(ReservationTest, ItIsForTheFirstGangAloneAndNotForExtraSeeds) {
  std::vector<WorkerSlots> workers = {Busy(), Machine("x", 2)};
  workers[1].slots[0].free = false;
  Candidate second = GangOf(2);
  second.urgency.sequence = 2;
  second.shape.device = "cpu";
  // The second gang may have what is not kept for the first.
  EXPECT_EQ(Order(Place({GangOf(4), second, JobWith(3, 1)}, workers)), (Pairs{{2, 0}}));
  workers = {Busy()};
  Candidate extra = GangOf(4);
  extra.urgency.extra_seeds_only = true;
  EXPECT_EQ(Place({extra, JobWith(3, 2)}, workers).size(), 2u);
}

TEST(ReservationTest, AMoreUrgentFoldNeedNotWaitForTheGang) {
  std::vector<WorkerSlots> workers = {Busy()};
  EXPECT_EQ(Place({GangOf(4), JobWith(2, 1, At(30))}, workers).size(), 1u);
}

TEST(LookAheadTest, AGangStartsWhereItsSlotsAreFreeSoonest) {
  const std::vector<WorkerSlots> workers = {Busy(), Machine("x", 1)};
  const auto start = [&](int slots) { return Look({GangOf(slots)}, workers)[0].start; };
  EXPECT_EQ(start(2), kStart);
  EXPECT_EQ(start(3), At(10));
  EXPECT_EQ(start(4), At(20));
  EXPECT_EQ(start(5), absl::InfiniteFuture());
  const Outlook outlook = Look({GangOf(4)}, workers)[0];
  EXPECT_TRUE(outlook.one_worker);
  EXPECT_EQ(outlook.free, 2);
  EXPECT_FALSE(Look({GangOf(5)}, workers)[0].one_worker);
}

TEST(LookAheadTest, WhoIsInFrontIsDoneFirst) {
  WorkerSlots busy = Machine("w", 1);
  busy.slots[0].free = false;
  busy.slots[0].free_at = At(10);
  Candidate first = JobWith(1, 1), second = JobWith(2, 1);
  first.takes = absl::Seconds(7);
  const auto outlooks = Look({first, second, JobWith(3, 1)}, {busy});
  EXPECT_EQ(outlooks[0].start, At(10));
  EXPECT_EQ(outlooks[1].start, At(17));
  EXPECT_EQ(outlooks[2].start, absl::InfiniteFuture());  // nobody knows how long the second takes
}

TEST(LookAheadTest, SlotsThatAreKeptForAGangAreTold) {
  std::vector<WorkerSlots> workers = {Busy()};
  Place({GangOf(4), JobWith(2, 2)}, workers);
  EXPECT_EQ(Look({JobWith(2, 2)}, workers)[0].kept, 2);
}

TEST(SchedulerTest, HomeIsPreferredThenTheFullestWorkerWithRoom) {
  Candidate job = JobWith(1, 1);
  job.home = "big";
  std::vector<WorkerSlots> workers = {Machine("big", 4), Machine("small", 1)};
  EXPECT_EQ(Place({job}, workers).at(0).parts.at(0).worker, "big");
  job.home = "";
  workers = {Machine("big", 4), Machine("small", 1)};
  EXPECT_EQ(Place({job}, workers).at(0).parts.at(0).worker, "small");
}

TEST(SchedulerTest, TakenSlotsAreNotGivenAgain) {
  std::vector<WorkerSlots> workers = {Machine("w", 3)};
  workers[0].slots[1].free = false;
  const auto placed = Place({JobWith(1, 3)}, workers);
  ASSERT_EQ(placed.size(), 2u);
  EXPECT_EQ(placed[0].parts[0].slots, std::vector<int>{0});
  EXPECT_EQ(placed[1].parts[0].slots, std::vector<int>{2});
}

TEST(SchedulerTest, NoMoreThanWantedArePlacedAndTheRestStaysFree) {
  SlotBoard board;
  board.Put(Machine("w", 3));
  EXPECT_EQ(Order(PlaceFolds({JobWith(1, 5)}, kStart, board, 2)), (Pairs{{0, 0}, {0, 1}}));
  EXPECT_EQ(board.free_slots(), 1);
}

TEST(SchedulerTest, NothingToPlaceNothingPlaced) {
  std::vector<WorkerSlots> workers = {Machine("w", 1)};
  EXPECT_TRUE(Place({}, workers).empty());
  std::vector<WorkerSlots> none;
  EXPECT_TRUE(Place({JobWith(1, 1)}, none).empty());
}

TEST(CountGangsTest, CountsPerWorkerAndDevice) {
  WorkerSlots mixed = Machine("m", 3, "cpu");
  mixed.slots.push_back({3, "cuda", false});
  mixed.slots.push_back({4, "cuda", true});
  const std::vector<WorkerSlots> workers = {mixed, Machine("n", 1)};
  EXPECT_EQ(CapacityOf(workers).CountGangs({1, ""}, false), 6);
  EXPECT_EQ(CapacityOf(workers).CountGangs({2, ""}, false), 2);
  EXPECT_EQ(CapacityOf(workers).CountGangs({2, "cuda"}, false), 1);
  EXPECT_EQ(CapacityOf(workers).CountGangs({4, ""}, false), 0);
}

// ---- gangs that span Workers ----

WorkerSlots InNetwork(const std::string& name, int slots, const std::string& network = "outer") {
  WorkerSlots worker = Machine(name, slots);
  worker.network = network;
  return worker;
}

Candidate Wide(int slots) {
  Candidate wide = JobWith(1, 1);
  wide.shape.slots = slots;
  wide.may_span = true;
  return wide;
}

using Parts = std::vector<GangPart>;

TEST(SpanTest, AGangSpansWorkersWhereNoneCouldHoldIt) {
  std::vector<WorkerSlots> workers = {InNetwork("a", 2), InNetwork("b", 2)};
  const auto placed = Place({Wide(4)}, workers);
  ASSERT_EQ(placed.size(), 1u);
  EXPECT_EQ(placed[0].parts, (Parts{{"a", {0, 1}}, {"b", {0, 1}}}));
  EXPECT_FALSE(workers[1].slots[1].free);
}

TEST(SpanTest, AGangThatFitsInOneWorkerWaitsForIt) {
  std::vector<WorkerSlots> workers = {InNetwork("a", 2), InNetwork("b", 2)};
  workers[0].slots[0].free = workers[1].slots[0].free = false;
  EXPECT_TRUE(Place({Wide(2)}, workers).empty());
  EXPECT_TRUE(workers[0].slots[1].free);
}

TEST(SpanTest, ItTakesAsFewWorkersAsPossibleAndLeavesTheLargestGap) {
  std::vector<WorkerSlots> workers = {InNetwork("a", 1), InNetwork("b", 3), InNetwork("c", 2),
                                      InNetwork("d", 4)};
  EXPECT_EQ(Place({Wide(6)}, workers).at(0).parts, (Parts{{"d", {0, 1, 2, 3}}, {"c", {0, 1}}}));
}

TEST(SpanTest, TheHomeOfTheDataLeadsAmongEquals) {
  std::vector<WorkerSlots> workers = {InNetwork("a", 2), InNetwork("b", 2)};
  Candidate wide = Wide(4);
  wide.home = "b";
  EXPECT_EQ(Place({wide}, workers).at(0).parts, (Parts{{"b", {0, 1}}, {"a", {0, 1}}}));
}

TEST(SpanTest, WorkersThatDoNotReachEachOtherHaveNoGang) {
  for (const char* network : {"", "lo of other"}) {
    std::vector<WorkerSlots> workers = {InNetwork("a", 2), InNetwork("b", 2, network)};
    EXPECT_TRUE(Place({Wide(4)}, workers).empty()) << network;
    EXPECT_EQ(CapacityOf(workers).CountGangs({4, ""}, true), 0) << network;
    EXPECT_EQ(CapacityOf(workers).LargestGang({}, true), 2) << network;
  }
}

TEST(SpanTest, AllPartsAreOfOneDeviceAndSuitTheJob) {
  WorkerSlots gpu = InNetwork("b", 0);
  gpu.slots = {{0, "cuda", true}, {1, "cuda", true}};
  std::vector<WorkerSlots> mixed = {InNetwork("a", 2), gpu};
  EXPECT_TRUE(Place({Wide(4)}, mixed).empty());
}

TEST(SpanTest, GangsAreCountedAsTheyArePlaced) {
  const std::vector<WorkerSlots> workers = {InNetwork("a", 3), InNetwork("b", 3),
                                            InNetwork("c", 2)};
  EXPECT_EQ(CapacityOf(workers).CountGangs({4, ""}, true), 2);
  EXPECT_EQ(CapacityOf(workers).CountGangs({4, ""}, false), 0);
  EXPECT_EQ(CapacityOf(workers).CountGangs({3, ""}, true), 2);
  EXPECT_EQ(CapacityOf(workers).LargestGang({}, true), 8);
  EXPECT_EQ(CapacityOf(workers).LargestGang({}, false), 3);
}

TEST(ConstraintsTest, AFoldGoesToAWorkerWithItsLabelsAndItsGpu) {
  std::vector<WorkerSlots> workers = {Machine("a", 1), Machine("b", 1), Machine("c", 1, "cuda")};
  workers[1].labels = {"rack=b"};
  workers[2].labels = {"rack=b"};
  workers[2].slots[0].gpu = "nvidia l4";
  std::vector<Candidate> jobs = {JobWith(1, 2), JobWith(2, 1)};
  jobs[0].shape.constraints.labels = {"rack=b"};
  jobs[0].home = "a";
  jobs[1].shape = {1, "cuda", {{}, "h100"}};
  const std::vector<Placement> placed = Place(jobs, workers);
  ASSERT_EQ(placed.size(), 2u) << "nobody has an H100";
  EXPECT_EQ(placed[0].parts[0].worker, "b") << "not the home of its data";
  EXPECT_EQ(placed[1].parts[0].worker, "c");
}

TEST(ConstraintsTest, OneThatNobodySatisfiesKeepsNoSlots) {
  std::vector<WorkerSlots> workers = {Machine("a", 2)};
  std::vector<Candidate> jobs = {JobWith(1, 1), JobWith(2, 1)};
  jobs[0].shape = {2, "", {{"rack=b"}}};
  EXPECT_EQ(Order(Place(jobs, workers)), (Pairs{{1, 0}}));
  const std::vector<Outlook> outlooks = Look(jobs, workers);
  EXPECT_EQ(outlooks[0].start, absl::InfiniteFuture());
  EXPECT_EQ(outlooks[1].start, kStart);
}

TEST(ConstraintsTest, AGangOverWorkersStaysInOneRackWhereItCan) {
  std::vector<WorkerSlots> workers;
  for (const char* name : {"a", "b", "c", "d"}) {
    workers.push_back(Machine(name, name[0] == 'a' ? 3 : 2));
    workers.back().network = "outer";
    workers.back().labels = {name[0] < 'c' ? "rack=1" : "rack=2"};
  }
  // Those with the most free slots are in both racks, and the first one has too few.
  for (WorkerSlots::Slot& slot : workers[1].slots) slot.free = false;
  Candidate gang = JobWith(1, 1);
  gang.shape.slots = 4;
  gang.may_span = true;
  std::vector<Placement> placed = Place({gang}, workers);
  ASSERT_EQ(placed.size(), 1u);
  EXPECT_EQ(placed[0].parts.size(), 2u);
  for (const GangPart& part : placed[0].parts) EXPECT_GE(part.worker, "c");

  for (WorkerSlots& worker : workers) {
    for (WorkerSlots::Slot& slot : worker.slots) slot.free = true;
  }
  gang.shape.slots = 7;  // no rack has so many
  placed = Place({gang}, workers);
  ASSERT_EQ(placed.size(), 1u);
  EXPECT_EQ(placed[0].parts.size(), 3u);
}

}  // namespace
}  // namespace traind
