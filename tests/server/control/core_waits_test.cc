// What Jobs that wait are told.
#include <gtest/gtest.h>

#include <string>

#include "tests/server/control/control_core_harness.h"

namespace traind {
namespace {

struct Line {
  explicit Line(int slots) { h.Attach("w", slots); }
  std::string Submit(const std::string& name, int slots = 1, double budget_s = 60) {
    Job job = h.MakeJob(name, 1);
    job.spec.slots = slots;
    job.spec.budget = absl::Seconds(budget_s);
    const std::string id = h.SubmitJob(job);
    h.PrepareJob(id);
    return id;
  }
  // One epoch takes so many seconds; it has 20.
  void Measure(const std::string& id, double epoch_s) {
    const int64_t attempt = h.AttemptOf(id, 1);
    h.Say(attempt, h.Started(100));
    h.Say(attempt, h.Probe(epoch_s / 100));
  }
  Job Seen(const std::string& id) { return *h.core().FindJob(id); }

  CoreHarness h;
};

TEST(WaitsTest, EveryWaitingJobIsToldWhatItLacksItsPlaceAndWhenItMayStart) {
  Line line(2);
  const std::string a = line.Submit("a", 1, 600), b = line.Submit("b", 1, 600);
  const std::string gang = line.Submit("gang", 2, 900), last = line.Submit("last", 1, 1000);
  EXPECT_EQ(line.Seen(gang).pending_reason, PendingReason::kResources);
  EXPECT_EQ(line.Seen(gang).waits_for, "2 slots on one host; 0 free");
  EXPECT_EQ(line.Seen(last).waits_for, "1 slot; 0 free");
  EXPECT_EQ(line.Seen(last).queue_position, 1);  // of those that need one slot
  line.Measure(a, 2);
  line.Measure(b, 4);
  const absl::Time start = line.Seen(gang).expected_start;
  // The longer one has 20 epochs of 4 s.
  EXPECT_GT(start, line.h.now + absl::Seconds(80));
  EXPECT_LT(start, line.h.now + absl::Seconds(90));
  EXPECT_GT(line.Seen(last).expected_start, start);
  line.h.FinishFold(a, 0);
  EXPECT_EQ(line.Seen(gang).waits_for, "2 slots on one host; 1 free");
  EXPECT_EQ(line.Seen(last).waits_for, "1 slot; 1 free, kept for a gang");
  line.h.FinishFold(b, 0);
  EXPECT_EQ(line.Seen(gang).waits_for, "");
  EXPECT_EQ(line.Seen(gang).expected_start, absl::InfiniteFuture());
}

TEST(WaitsTest, ThosePreparedByNobodyAreToldSo) {
  CoreHarness h;
  const std::string id = h.SubmitJob(h.MakeJob("a"));
  EXPECT_EQ(h.core().FindJob(id)->waits_for, "a Worker; none is attached");
  h.Attach("w", 1);
  EXPECT_EQ(h.core().FindJob(id)->pending_reason, PendingReason::kPreparing);
  EXPECT_EQ(h.core().FindJob(id)->waits_for, "");
}

TEST(WaitsTest, AdmissionTellsThatADeadlineCannotHoldBesideTheJobsBefore) {
  Line line(1);
  const std::string a = line.Submit("a", 1, 600);
  const std::string b = line.Submit("b", 1, 900);
  line.Measure(a, 10);
  const std::string late = line.Submit("late", 1, 60);
  ASSERT_EQ(line.Seen(late).warnings.size(), 1u);
  EXPECT_EQ(line.Seen(late).warnings[0].substr(0, 44),
            "deadline: the jobs accepted before it use th");
  const std::string can = line.Submit("can", 1, 3600);
  EXPECT_TRUE(line.Seen(can).warnings.empty());
}

}  // namespace
}  // namespace traind
