// Whose folds get slots: classes, owners' shares, and gangs that wait.
#include <gtest/gtest.h>

#include <string>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

// A Worker of so many slots, and Jobs of one fold.
struct Lab {
  explicit Lab(int slots, CoreOptions options = {}) : h(options) { h.Attach("w", slots); }

  std::string Submit(const std::string& name, const std::string& owner = "ann", int priority = 0,
                     int slots = 1, bool deadline = false) {
    Job job = h.MakeJob(name, 1);
    job.owner = owner;
    job.spec.priority = priority;
    job.spec.slots = slots;
    if (!deadline) job.spec.budget.reset();
    const std::string id = h.SubmitJob(job);
    h.PrepareJob(id);
    return id;
  }
  bool Runs(const std::string& id) { return h.TaskOf(id, 1).state == TaskState::kRunning; }

  CoreHarness h;
};

TEST(OrderTest, AClassAboveGoesFirstWhateverTheDeadlines) {
  Lab lab(1);
  const std::string first = lab.Submit("first");
  const std::string due = lab.Submit("due", "ann", 0, 1, /*deadline=*/true);
  const std::string high = lab.Submit("high", "ann", 1);
  EXPECT_EQ(lab.h.core().FindJob(high)->queue_position, 1);
  lab.h.FinishFold(first, 0);
  EXPECT_TRUE(lab.Runs(high));
  lab.h.FinishFold(high, 0);
  EXPECT_TRUE(lab.Runs(due));
}

TEST(OrderTest, OwnersShareWhatJobsWithoutDeadlinesUse) {
  Lab lab(1);
  const std::string first = lab.Submit("first", "ann");
  const std::string second = lab.Submit("second", "ann");
  const std::string third = lab.Submit("third", "bob");
  EXPECT_FALSE(lab.Runs(second));
  lab.h.Wait(absl::Seconds(10));
  lab.h.FinishFold(first, 0);
  EXPECT_TRUE(lab.Runs(third));
  EXPECT_FALSE(lab.Runs(second));
}

TEST(OrderTest, SharesOutliveARestart) {
  Lab lab(1);
  const std::string used = lab.Submit("used", "ann");
  lab.h.Wait(absl::Seconds(10));
  lab.h.FinishFold(used, 0);
  const std::string busy = lab.Submit("busy", "carol");
  const std::string ann = lab.Submit("ann", "ann"), bob = lab.Submit("bob", "bob");
  lab.h.Crash();
  lab.h.Attach("w", 1, {lab.h.AttemptOf(busy, 1)});
  lab.h.FinishFold(busy, 0);
  EXPECT_TRUE(lab.Runs(bob));
  EXPECT_FALSE(lab.Runs(ann));
}

TEST(OrderTest, SmallFoldsDoNotStarveAGangThatIsFirst) {
  Lab lab(2);
  const std::string a = lab.Submit("a"), b = lab.Submit("b");
  const std::string gang = lab.Submit("gang", "bob", 0, 2);
  const std::string c = lab.Submit("c");
  lab.h.FinishFold(a, 0);
  EXPECT_FALSE(lab.Runs(c));  // its slot is kept
  lab.h.FinishFold(b, 0);
  EXPECT_TRUE(lab.Runs(gang));
  lab.h.FinishFold(gang, 0);
  EXPECT_TRUE(lab.Runs(c));
}

TEST(OrderTest, AJobMovesFromOneQueueToTheOtherWithItsDeadline) {
  Lab lab(1);
  const std::string busy = lab.Submit("busy");
  const std::string a = lab.Submit("a"), b = lab.Submit("b");
  EXPECT_EQ(lab.h.core().FindJob(b)->queue_position, 2);
  Update update;
  update.job = b;
  update.budget = absl::Seconds(50);
  lab.h.Step({update});
  EXPECT_EQ(lab.h.core().FindJob(b)->queue_position, 1);
  EXPECT_EQ(lab.h.core().FindJob(a)->queue_position, 2);
  lab.h.FinishFold(busy, 0);
  EXPECT_TRUE(lab.Runs(b));
}

}  // namespace
}  // namespace traind
