// What one owner may have at most: Jobs that are not over, and slots at a time.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

CoreOptions Limits(int jobs, int slots) {
  CoreOptions options;
  options.standalone = true;  // nobody here sends heartbeats
  options.max_owner_jobs = jobs;
  options.max_owner_slots = slots;
  options.preempt_after = absl::Seconds(5);
  options.preempt_least_run = absl::Seconds(2);
  return options;
}

Job Of(const std::string& owner, const std::string& name, int folds = 1) {
  Job job = CoreHarness::MakeJob(name, folds);
  job.owner = owner;
  return job;
}

// ---- Jobs ----

TEST(OwnerJobsTest, ASubmitBeyondThemIsRefusedAndSaysWhatTheLimitIs) {
  CoreHarness h(Limits(2, 0));
  const std::string first = h.SubmitJob(Of("ada", "a"));
  h.SubmitJob(Of("ada", "b"));
  Turn turn = h.Step({Submit{1, Of("ada", "c")}});
  EXPECT_TRUE(absl::IsResourceExhausted(turn.replies.at(0).status));
  EXPECT_EQ(turn.replies[0].status.message(),
            "owner-jobs: ada has 2 Jobs that are not over, and an owner may have 2 (--owner-jobs "
            "of traind)");
  EXPECT_THAT(turn.mutations.jobs, IsEmpty());
  h.SubmitJob(Of("bob", "d"));
  turn = h.Step({Submit{2, Of("ada", "a")}});
  EXPECT_EQ(turn.replies.at(0).status, absl::OkStatus()) << "that is known";
  EXPECT_EQ(turn.replies[0].job->id, first);
  h.CancelJob(first);
  h.SubmitJob(Of("ada", "c"));
}

TEST(OwnerJobsTest, ABatchIsTakenAsAWholeOrNotAtAll) {
  CoreHarness h(Limits(3, 0));
  const std::string known = h.SubmitJob(Of("ada", "a"));
  Turn turn = h.Step({Submit{1, Of("ada", "a"), 1}, Submit{2, Of("ada", "b"), 1},
                      Submit{3, Of("ada", "c"), 1}, Submit{4, Of("ada", "d"), 1},
                      Submit{5, Of("bob", "e"), 1}, Submit{6, Of("ada", "f"), 6},
                      Submit{7, Of("ada", "g"), 6}, Submit{8, Of("ada", "g"), 6}});
  ASSERT_EQ(turn.replies.size(), 8u);
  EXPECT_EQ(turn.replies[0].job->id, known);
  for (int i = 1; i < 5; ++i) {
    EXPECT_TRUE(absl::IsResourceExhausted(turn.replies[i].status)) << i;
    EXPECT_THAT(std::string(turn.replies[i].status.message()), HasSubstr("these 3 are taken"));
  }
  for (int i = 5; i < 8; ++i) ASSERT_EQ(turn.replies[i].status, absl::OkStatus()) << i;
  EXPECT_EQ(turn.replies[6].job->id, turn.replies[7].job->id);
  EXPECT_TRUE(absl::IsResourceExhausted(h.Step({Submit{9, Of("ada", "h")}}).replies[0].status));
}

TEST(OwnerJobsTest, ThoseThatARestartFindsCount) {
  CoreHarness h(Limits(1, 0));
  h.SubmitJob(Of("ada", "a"));
  h.Crash();
  EXPECT_TRUE(absl::IsResourceExhausted(h.Step({Submit{1, Of("ada", "b")}}).replies[0].status));
}

// ---- slots ----

struct Lab {
  explicit Lab(int owner_slots, int slots) : h(Limits(0, owner_slots)) { h.Attach("w", slots); }

  std::string Prepared(Job job) {
    const std::string id = h.SubmitJob(std::move(job));
    h.PrepareJob(id);
    return id;
  }
  static Job Timeless(Job job, int priority = 0) {
    job.spec.budget.reset();
    job.spec.priority = priority;
    return job;
  }
  static Job Gang(Job job, int slots) {
    job.spec.slots = slots;
    return job;
  }
  int Running(const std::string& id) {
    int running = 0;
    for (const Task& task : h.Stored(id).tasks) running += task.state == TaskState::kRunning;
    return running;
  }
  Job Seen(const std::string& id) { return *h.core().FindJob(id); }

  CoreHarness h;
};

TEST(OwnerSlotsTest, FurtherFoldsWaitAndAreToldWhyAndOthersGetTheSlots) {
  for (const bool timeless : {false, true}) {
    Lab lab(/*owner_slots=*/2, /*slots=*/4);
    const auto job = [&](Job of) { return timeless ? Lab::Timeless(std::move(of)) : of; };
    const std::string first = lab.Prepared(job(Of("ada", "a", 3)));
    const std::string second = lab.Prepared(job(Of("ada", "b")));
    EXPECT_EQ(lab.Running(first), 2);
    EXPECT_EQ(lab.Running(second), 0);
    EXPECT_EQ(lab.Seen(second).pending_reason, PendingReason::kQuota);
    EXPECT_EQ(lab.Seen(second).waits_for,
              "1 slot; owner ada uses 2 of the 2 slots that an owner may use at a time");
    const std::string other = lab.Prepared(job(Of("bob", "c", 2)));
    EXPECT_EQ(lab.Running(other), 2);
    lab.h.FinishFold(first, 0);
    EXPECT_EQ(lab.Running(first) + lab.Running(second), 2);
  }
}

// However many Jobs of its owner stand before it.
TEST(OwnerSlotsTest, ThoseOfAnOwnerWhoMayHaveNoMoreAreNotInTheWayOfOthers) {
  for (const bool timeless : {false, true}) {
    Lab lab(1, 3);
    for (int i = 0; i < 120; ++i) {
      Job many = Of("ada", std::to_string(i));
      many.spec.budget = absl::Seconds(60);
      lab.Prepared(timeless ? Lab::Timeless(std::move(many)) : std::move(many));
    }
    Job other = Of("bob", "other");
    other.spec.budget = absl::Seconds(600);
    EXPECT_EQ(lab.Running(lab.Prepared(timeless ? Lab::Timeless(other) : other)), 1);
    Job third = Of("cid", "third");
    third.spec.budget = absl::Seconds(900);
    EXPECT_EQ(lab.Running(lab.Prepared(timeless ? Lab::Timeless(third) : third)), 1);
  }
}

TEST(OwnerSlotsTest, TheyHoldAfterARestart) {
  Lab lab(2, 4);
  const std::string first = lab.Prepared(Of("ada", "a", 3));
  const std::string second = lab.Prepared(Of("ada", "b"));
  lab.h.Crash();
  lab.h.Attach("w", 4, {lab.h.AttemptOf(first, 1), lab.h.AttemptOf(first, 2)});
  lab.h.Wait(absl::Seconds(1));
  EXPECT_EQ(lab.Running(first), 2);
  EXPECT_EQ(lab.Running(second), 0);
}

// What was stopped holds its slots until its Worker says that it is gone.
TEST(OwnerSlotsTest, ASlotCountsUntilItIsFree) {
  Lab lab(1, 2);
  const std::string first = lab.Prepared(Of("ada", "a"));
  const int64_t attempt = lab.h.AttemptOf(first, 1);
  lab.h.CancelJob(first);
  const std::string second = lab.Prepared(Of("ada", "b"));
  EXPECT_EQ(lab.Running(second), 0);
  lab.h.Say(attempt, lab.h.Ended(AttemptEndReason::kCancelledByUser));
  EXPECT_EQ(lab.Running(second), 1);
}

TEST(OwnerSlotsTest, AGangThatNeverFitsIsRefused) {
  Lab lab(2, 4);
  const Turn turn = lab.h.Step({Submit{1, Lab::Gang(Of("ada", "a"), 3)}});
  EXPECT_TRUE(absl::IsInvalidArgument(turn.replies.at(0).status));
  EXPECT_EQ(turn.replies[0].status.message(),
            "resources.slots: 3 are asked for each fold, and an owner may use 2 at a time "
            "(--owner-slots of traind)");
  EXPECT_EQ(lab.Running(lab.Prepared(Lab::Gang(Of("ada", "b", 2), 2))), 1);
}

// Its owner could wait for ever.
TEST(OwnerSlotsTest, AFoldThatNoWorkerCanHoldIsToldSoWhateverItsOwnerUses) {
  Lab lab(2, 1);
  lab.Prepared(Lab::Timeless(Of("ada", "a")));
  Job elsewhere = Lab::Timeless(Of("ada", "b"));
  elsewhere.spec.constraints.labels = {"rack=z"};
  const std::string id = lab.Prepared(elsewhere);
  EXPECT_EQ(lab.Seen(id).pending_reason, PendingReason::kNoMatchingWorker);
  EXPECT_THAT(lab.Seen(id).waits_for, HasSubstr("no Worker has label rack=z"));
}

TEST(OwnerSlotsTest, SmallFoldsOfItsOwnerDoNotPassAGangForEver) {
  Lab lab(3, 6);
  const std::string small = lab.Prepared(Lab::Timeless(Of("ada", "a", 2)));
  const std::string gang = lab.Prepared(Lab::Timeless(Lab::Gang(Of("ada", "b"), 3)));
  const std::string later = lab.Prepared(Lab::Timeless(Of("ada", "c")));
  EXPECT_EQ(lab.Running(later), 0) << "what is left of the limit is kept";
  EXPECT_EQ(lab.Seen(gang).waits_for,
            "3 slots; owner ada uses 2 of the 3 slots that an owner may use at a time");
  EXPECT_EQ(lab.Seen(later).waits_for,
            "1 slot; owner ada uses 2 of the 3 slots that an owner may use at a time, and its "
            "other Jobs go first");
  lab.h.FinishFold(small, 0);
  EXPECT_EQ(lab.Running(gang) + lab.Running(later), 0);
  lab.h.FinishFold(small, 1);
  EXPECT_EQ(lab.Running(gang), 1);
}

TEST(OwnerSlotsTest, NobodyMakesRoomForAFoldWhoseOwnerMayHaveNoMore) {
  Lab lab(1, 2);
  lab.Prepared(Lab::Timeless(Of("ada", "runs"), 1));
  const std::string low = lab.Prepared(Lab::Timeless(Of("bob", "low")));
  lab.h.Wait(absl::Seconds(3));
  lab.Prepared(Lab::Timeless(Of("ada", "high"), 1));
  lab.h.stops.clear();
  lab.h.Wait(absl::Seconds(60));
  EXPECT_THAT(lab.h.stops, IsEmpty());
  lab.Prepared(Lab::Timeless(Of("cid", "high_too"), 1));
  lab.h.Wait(absl::Seconds(10));
  ASSERT_EQ(lab.h.stops.size(), 1u);
  EXPECT_EQ(lab.h.stops[0].attempt, lab.h.AttemptOf(low, 1));
}

// Jobs of an owner who may have two slots stop two folds, not three.
TEST(OwnerSlotsTest, NoMoreFoldsMakeRoomThanTheOwnerMayUse) {
  Lab lab(2, 3);
  lab.Prepared(Lab::Timeless(Of("bob", "low", 2)));
  lab.Prepared(Lab::Timeless(Of("cid", "low_too")));
  lab.h.Wait(absl::Seconds(3));
  lab.h.stops.clear();
  lab.Prepared(Lab::Timeless(Lab::Gang(Of("ada", "high"), 2), 1));
  lab.Prepared(Lab::Timeless(Of("ada", "high_too"), 1));
  lab.h.Wait(absl::Seconds(7));
  EXPECT_EQ(lab.h.stops.size(), 2u) << "those of the gang";
}

// A Plan counts on the gangs that the owner may have, and not on all of the machines.
TEST(OwnerSlotsTest, ThePlanIsMadeForWhatTheOwnerMayHave) {
  const auto planned = [](int owner_slots) {
    Lab lab(owner_slots, 8);
    const std::string id = lab.Prepared(Of("ada", "a", 5));
    for (int fold = 0; fold < 5; ++fold) {
      const Task task = lab.h.TaskOf(id, 1 + fold);
      if (task.state != TaskState::kRunning) continue;
      lab.h.Say(task.attempt, CoreHarness::Started());
      lab.h.Say(task.attempt, CoreHarness::Probe(0.01));  // an epoch takes a second, 20 of them
    }
    return lab.h.Stored(id).plans.back();
  };
  EXPECT_EQ(planned(0).parallel_folds, 5);
  EXPECT_EQ(planned(0).folds * planned(0).epochs, 100);
  EXPECT_EQ(planned(1).parallel_folds, 1);
  EXPECT_LE(planned(1).folds * planned(1).epochs, 60);
}

}  // namespace
}  // namespace traind
