#include "server/schedule/preemption.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace traind {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);
constexpr absl::Duration kSoon = absl::Seconds(10);

// A full house: every slot is held, until nobody knows when.
class PreemptionTest : public testing::Test {
 protected:
  void Machine(const std::string& name, int slots, const std::string& network = "") {
    WorkerSlots worker;
    worker.worker = name;
    worker.network = network;
    for (int i = 0; i < slots; ++i) worker.slots.push_back({i, "cpu", true});
    board_.Put(worker);
  }
  Holding& Hold(int64_t attempt, std::vector<GangPart> parts, int priority = 0, double lost_s = 1) {
    for (const GangPart& part : parts) board_.Take(part);
    holdings_.push_back({attempt, priority, std::move(parts), true, Harm::kTime, lost_s});
    return holdings_.back();
  }
  Claim& Wait(int slots, int priority = 1) {
    Claim claim;
    claim.due = true;
    claim.candidate.shape.slots = slots;
    claim.candidate.urgency.priority = priority;
    claim.candidate.urgency.sequence = line_.size();
    line_.push_back(claim);
    return line_.back();
  }
  // The Attempts that go, by claim; empty: none for that one.
  std::vector<std::vector<int64_t>> Choose() {
    std::vector<std::vector<int64_t>> gone(line_.size());
    for (const Preemption& p : ChoosePreemptions(line_, holdings_, kStart, kSoon, board_)) {
      gone[p.claim] = p.attempts;
    }
    return gone;
  }

  SlotBoard board_;
  std::vector<Holding> holdings_;
  std::vector<Claim> line_;
};

TEST_F(PreemptionTest, TheFoldThatLosesLeastGoes) {
  Machine("w", 3);
  Hold(1, {{"w", {0}}}, 0, 50);
  Hold(2, {{"w", {1}}}, 0, 5);
  Hold(3, {{"w", {2}}}, 0, 20);
  Wait(1);
  EXPECT_THAT(Choose(), ElementsAre(ElementsAre(2)));
}

TEST_F(PreemptionTest, HarmCountsBeforePriorityAndPriorityBeforeLoss) {
  Machine("w", 4);
  Hold(1, {{"w", {0}}}, -1, 5).harm = Harm::kModel;
  Hold(2, {{"w", {1}}}, 0, 1).harm = Harm::kTime;
  Hold(3, {{"w", {2}}}, -1, 90).harm = Harm::kTime;
  Hold(4, {{"w", {3}}}, 0, 70).harm = Harm::kExtraModel;
  for (int i = 0; i < 4; ++i) Wait(1);
  EXPECT_THAT(Choose(),
              ElementsAre(ElementsAre(4), ElementsAre(3), ElementsAre(2), ElementsAre(1)));
}

TEST_F(PreemptionTest, NobodyGoesForAnEqualOrALowerOneOrBeforeItIsDue) {
  Machine("w", 1);
  Hold(1, {{"w", {0}}}, 1);
  Wait(1, 1);
  Wait(1, 0);
  Wait(1, 2).due = false;
  EXPECT_THAT(Choose(), ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
}

TEST_F(PreemptionTest, NobodyGoesWhereSlotsAreFreeSoon) {
  Machine("w", 2);
  Hold(1, {{"w", {0}}});
  Hold(2, {{"w", {1}}});
  board_.ExpectFree("w", {1}, kStart + absl::Seconds(8));
  Wait(1);
  EXPECT_THAT(Choose(), ElementsAre(IsEmpty()));
  Wait(1);  // the first one has those
  EXPECT_THAT(Choose(), ElementsAre(IsEmpty(), ElementsAre(1)));
  line_.pop_back();
  line_[0].candidate.urgency.latest_start = kStart + absl::Seconds(5);
  EXPECT_THAT(Choose(), ElementsAre(ElementsAre(1))) << "in 8 s it is too late";
}

TEST_F(PreemptionTest, OneThatMayNotGoStays) {
  Machine("w", 2);
  Hold(1, {{"w", {0}}}).may_go = false;
  Wait(1);
  Hold(2, {{"w", {1}}}, 0, 1000);
  EXPECT_THAT(Choose(), ElementsAre(ElementsAre(2)));
}

TEST_F(PreemptionTest, AGangGetsTheCheapestWorkerAndNoMoreThanItNeeds) {
  Machine("a", 4);
  Machine("b", 4);
  Hold(1, {{"a", {0, 1}}}, 0, 10);
  Hold(2, {{"a", {2}}}, 0, 100);
  Hold(3, {{"a", {3}}}, 0, 100);
  Hold(4, {{"b", {0}}}, 0, 20);
  Hold(5, {{"b", {1}}}, 0, 15);
  Hold(6, {{"b", {2}}}, 0, 30);
  Wait(3);  // a slot of b is free
  EXPECT_THAT(Choose(), ElementsAre(ElementsAre(5, 4)));
  Wait(4).candidate.shape.constraints.labels = {"rack=a"};
  EXPECT_THAT(Choose()[1], IsEmpty()) << "nobody has that label";
}

TEST_F(PreemptionTest, SmallOnesStayWhereALargeOneSuffices) {
  Machine("w", 4);
  Hold(1, {{"w", {0}}}, 0, 1);
  Hold(2, {{"w", {1, 2, 3}}}, 0, 50);
  Wait(3);
  EXPECT_THAT(Choose(), ElementsAre(ElementsAre(2)));
}

TEST_F(PreemptionTest, WhatALargeOneLeavesIsForTheNext) {
  Machine("w", 4);
  Hold(1, {{"w", {0, 1, 2, 3}}});
  Wait(1);
  Wait(1);
  Wait(3);
  EXPECT_THAT(Choose(), ElementsAre(ElementsAre(1), IsEmpty(), IsEmpty()));
}

TEST_F(PreemptionTest, AGangOverWorkersGetsSlotsOfSeveral) {
  Machine("a", 2, "outer");
  Machine("b", 2, "outer");
  Hold(1, {{"a", {0, 1}}});
  Hold(2, {{"b", {0}}});
  Wait(3);
  EXPECT_THAT(Choose(), ElementsAre(IsEmpty())) << "it may not span Workers";
  line_[0].candidate.may_span = true;
  EXPECT_THAT(Choose(), ElementsAre(ElementsAre(1)));
  line_[0].candidate.shape.slots = 4;
  EXPECT_THAT(Choose(), ElementsAre(ElementsAre(1, 2)));
  line_[0].candidate.shape.slots = 5;
  EXPECT_THAT(Choose(), ElementsAre(IsEmpty()));
}

}  // namespace
}  // namespace traind
